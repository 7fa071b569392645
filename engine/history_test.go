package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// Few results are settled twice a second; many sooner, in shorter pieces.
func TestSettlePace(t *testing.T) {
	for _, x := range []struct{ timers, least, most int }{{1, 1, 2}, {30, 2, 4}, {100, 9, 10}} {
		t.Run(fmt.Sprint(x.timers*100, " fires a second"), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var settles atomic.Int64
				w.after = func(op string, _ any) {
					if op == "Settle" {
						settles.Add(1)
					}
				}
				w.start()
				for i := range x.timers {
					w.make(timer(fmt.Sprint(i), every(10*time.Millisecond)))
				}
				time.Sleep(1500 * time.Millisecond)
				before := settles.Load()
				time.Sleep(time.Second)
				if n := int(settles.Load() - before); n < x.least || n > x.most {
					t.Errorf("%d settles a second, want %d to %d", n, x.least, x.most)
				}
			})
		})
	}
}
