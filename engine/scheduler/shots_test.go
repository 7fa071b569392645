package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// A start reads no definition of one-shots that wait in rows, however many there are. Each
// is judged when its turn comes, by what the start found: beyond its window it is missed.
func TestOneShotsThatWaitAtAStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 40
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 8, 8, 8
		var starts, answers atomic.Bool
		var read atomic.Int64 // definitions, by a start
		w.before.set(func(op string, arg any) error {
			if ids, is := arg.([]engine.TimerID); is && starts.Load() {
				read.Add(int64(len(ids)))
			}
			return nil
		})
		w.start()
		var ids []engine.TimerID
		windows := []time.Duration{2 * time.Minute, time.Hour}
		due := w.now() + 5_000
		for i := range 600 {
			name := fmt.Sprint("shot", i)
			w.behave(name, func(*call) reply {
				if answers.Load() {
					return ok
				}
				return slow(15 * time.Second)
			})
			ids = append(ids, w.make(timer(name, at(due), misfire(engine.MisfireLatest, windows[i%2]))))
		}
		time.Sleep(12 * time.Second)
		w.kill()
		time.Sleep(10 * time.Minute)
		answers.Store(true)
		starts.Store(true)
		w.start()
		starts.Store(false)
		if n := read.Load(); n > 300 { // refill reads some before it is looked at
			t.Errorf("a start read %d definitions", n)
		}
		time.Sleep(5 * time.Minute) // and they are judged by the start, not by when their turn comes
		missed, called := 0, 0
		for i, id := range ids {
			switch v := w.verdicts(id, due); {
			case len(v) != 1:
				t.Fatalf("shot%d: %q", i, v)
			case v[0] == "0s missed misfire_window" && i%2 == 0 && len(w.of(fmt.Sprint("shot", i))) == 0:
				missed++
			case v[0] == "0s succeeded":
				called++
			default:
				t.Fatalf("shot%d: %q, %d calls", i, v, len(w.of(fmt.Sprint("shot", i))))
			}
		}
		if missed < 290 || called < 300 {
			t.Errorf("%d missed and %d called", missed, called)
		}
		if n := w.metric(`xtimer_fires_total{result="missed"}`); int(n) != missed {
			t.Errorf("%v counted as missed, not %d", n, missed)
		}
	})
}
