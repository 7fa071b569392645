package engine_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// Minutes whose timers could not be read are admitted late, and in any order:
// each due of each is called all the same.
func TestMinutesAdmittedLate(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var away atomic.Bool
		w.before = func(string, any) error {
			if away.Load() {
				return fmt.Errorf("the cold tier is away: %w", engine.ErrUnavailable)
			}
			return nil
		}
		w.start()
		from := w.now()
		w.make(timer("always", every(20*time.Second))) // what is in memory goes on
		for i := range 60 {
			w.make(timer(fmt.Sprint(i), cron(fmt.Sprintf("%d * * * * *", i))))
		}
		for range 4 {
			time.Sleep(7 * time.Minute)
			away.Store(true)
			time.Sleep(9 * time.Minute)
			away.Store(false)
		}
		time.Sleep(3*time.Minute + 500*time.Millisecond)
		to := w.now()
		w.settle()
		for i := range 60 {
			name := fmt.Sprint(i)
			want := grid(from, to, 60_000, int64(i)*1000)
			got := slices.DeleteFunc(dues(w.of(name)), func(due int64) bool { return due > to })
			if diff := difference(got, want); diff != "" {
				t.Fatalf("second %d: %s", i, diff)
			}
		}
	})
}
