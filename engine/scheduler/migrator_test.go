package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// How far loading is behind is told while it hangs, not only when it is over.
func TestLagOfALoadThatHangs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		var hangs atomic.Bool
		w.warmFault.set(func(op string) error {
			if op == "Load" && hangs.Load() {
				return engine.ErrGap
			}
			return nil
		})
		w.before.set(func(op string, _ any) error {
			if op == "Due" && hangs.Load() {
				time.Sleep(10 * time.Minute)
			}
			return nil
		})
		lag := func() float64 { return w.metric("xtimer_migrator_lag_seconds") }
		w.start()
		time.Sleep(time.Minute)
		if s := lag(); s != 0 {
			t.Errorf("%v s behind, with nothing amiss", s)
		}
		hangs.Store(true)
		time.Sleep(5 * time.Minute)
		if s := lag(); s < 180 || s > 300 {
			t.Errorf("%v s behind after five minutes in which nothing was loaded", s)
		}
		hangs.Store(false)
		time.Sleep(10 * time.Minute)
		if s := lag(); s != 0 {
			t.Errorf("%v s behind, when it is over", s)
		}
	})
}
