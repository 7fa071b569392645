package scheduler_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/limit"
)

// TestPauseOfAWeekend: an app with 1,000 minute timers is paused from Friday evening to Monday
// morning, for 60 hours, and resumed as told. What was held costs no memory for each due, and
// all of it is decided, or called, in 3 s. Without XTIMER_TRIALS
// there are 100 timers, and the weekend has ten minutes: with 1,000 timers an hour takes 22 s of
// processor time.
func TestPauseOfAWeekend(t *testing.T) {
	timers, long := 100, 10*time.Minute
	if os.Getenv("XTIMER_TRIALS") != "" {
		timers, long = 1000, 60*time.Hour
	}
	for _, backlog := range []string{engine.BacklogLatest, engine.BacklogSkip} {
		bubble(t, func(t *testing.T, w *world) {
			w.config.MaxWaiting = 20_000
			w.start()
			from := w.now() - w.now()%60_000 + 60_000
			app := limit.AppKey("app")
			w.pauseIt(t, app)
			var ids []engine.TimerID
			for i := range timers {
				ids = append(ids, w.make(timer(fmt.Sprint("t", i), cron("* * * * *"))))
			}
			time.Sleep(time.Duration(from-w.now())*time.Millisecond + long + 30*time.Second)
			to := from + long.Milliseconds()
			if n := w.made(); n != 0 {
				t.Fatalf("%d calls of an app that is paused", n)
			}
			if n := w.Resident(); n > 20_000 {
				t.Errorf("%d tasks are in memory", n)
			}
			began := time.Now()
			w.resumeIt(t, app, backlog)
			time.Sleep(3 * time.Second)
			want := map[string]int{engine.BacklogLatest: timers, engine.BacklogSkip: 0}[backlog]
			if n := w.made(); n != want {
				t.Errorf("%s: %d calls within %v, want %d", backlog, n, time.Since(began), want)
			}
			w.settle()
			records := 0
			for _, id := range ids {
				called, n := w.told(t, id, grid(from-1, to, 60_000, 0))
				records = max(records, n)
				if len(called) != want/timers || want > 0 && called[0] != to {
					t.Fatalf("%s: %d dues of timer %s are called", backlog, len(called), id)
				}
			}
			t.Logf("%s: at most %d records for the %d dues of a timer", backlog, records, int(long.Minutes())+1)
		})
	}
}
