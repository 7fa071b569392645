package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

func staleAfter(v time.Duration) func(*engine.Definition) {
	return func(d *engine.Definition) { d.StaleAfter = v }
}

func maxAge(v time.Duration) func(*engine.Definition) {
	return func(d *engine.Definition) { d.Retry.MaxAge = v }
}

// What waited for a target that did not answer is not called when that is no use any
// more: neither while the process lives, nor after a crash.
func TestNothingStaleIsCalled(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*engine.Definition){"stale_after": staleAfter(20 * time.Second), "max_age": maxAge(20 * time.Second)} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", crash ", crash), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.config.MaxCalls = 4 // and so one for the target
					w.start()
					var ids []engine.TimerID
					var mute atomic.Bool
					mute.Store(true)
					for i := range 40 {
						name := fmt.Sprint("t", i)
						w.behave(name, func(*call) reply {
							if mute.Load() {
								return timedOut
							}
							return ok
						})
						ids = append(ids, w.make(timer(name, delay(time.Duration(i)*time.Second), misfire(engine.MisfireLatest, time.Hour), retry(1, time.Second, 1), timeout(15*time.Second), limit)))
					}
					time.Sleep(39 * time.Second)
					mute.Store(false)
					if crash {
						w.crash(time.Second)
					}
					time.Sleep(2 * time.Minute)
					w.settle()
					stale := 0
					for i, id := range ids {
						rec := w.records(id)[0]
						cs := w.of(fmt.Sprint("t", i))
						if rec.Status == engine.Skipped {
							stale++
							if rec.Reason != engine.ReasonStale || len(cs) > 0 || rec.Ended-rec.Key.Due <= 20_000 {
								t.Errorf("t%d: %s %s after %d ms, %d calls", i, rec.Status, rec.Reason, rec.Ended-rec.Key.Due, len(cs))
							}
							continue
						}
						for _, c := range cs {
							late := c.at - c.key.Due
							if name == "max_age" && crash {
								late = min(late, c.at-w.starts[len(w.starts)-1])
							}
							if late > 20_000 && !c.redelivered {
								t.Errorf("t%d was called %d ms after its due", i, late)
							}
						}
					}
					if stale < 5 && !(name == "max_age" && crash) {
						t.Errorf("%d tasks were stale", stale)
					}
				})
			})
		}
	}
}

// What was asked for late is called, however short stale_after is.
func TestWhatIsAskedForLateIsCalled(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		past := w.make(timer("past", at(w.now()-3_600_000), staleAfter(time.Second), maxAge(time.Minute)))
		off := w.make(timer("off", every(time.Second), staleAfter(500*time.Millisecond), maxAge(time.Minute)))
		if _, err := w.Disable(t.Context(), off, 0, "", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, err := w.RunNow(t.Context(), past, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Enable(t.Context(), off, 0, engine.CatchUpAll); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		w.settle()
		if n := len(w.of("past")); n != 2 {
			t.Errorf("%d calls of an instant that was past and by hand", n)
		}
		if n := len(w.of("off")); n < 309 {
			t.Errorf("%d calls, 300 dues were caught up", n)
		}
	})
}
