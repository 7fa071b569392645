package scheduler_test

import (
	"testing"
	"time"
)

// Minutes whose timers could not be read are admitted late, and in any order:
// each due of each is called all the same.
func TestMinutesAdmittedLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage()
		w.start()
		from := w.now()
		w.make(timer("always", every(20*time.Second))) // what is in memory goes on
		w.minutely()
		for range 3 {
			time.Sleep(2 * time.Minute)
			away.Store(true)
			time.Sleep(4 * time.Minute)
			away.Store(false)
		}
		time.Sleep(3*time.Minute + 500*time.Millisecond)
		to := w.now()
		w.settle()
		w.wantMinutely(from, to)
	})
}
