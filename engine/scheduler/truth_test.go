package scheduler_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What was cancelled while it waited is not overdue.
func TestOverdueIsWhatWillBeCalled(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("mute", every(10*time.Millisecond)))
		w.replies("mute", slow(time.Hour))
		time.Sleep(time.Minute)
		if n := w.metric("xtimer_tasks_overdue"); n < 1000 {
			t.Fatalf("%v are overdue of a target that does not answer", n)
		}
		if _, err := w.Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if n := w.metric("xtimer_tasks_overdue"); n != 0 {
			t.Errorf("%v are overdue of a timer that was deleted", n)
		}
	})
}

// A cold tier in which timers cannot be read is not ready, and says why.
func TestReadyWantsTimers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var gone atomic.Bool
		w.before = func(op string, _ any) error {
			if op == "Timer" && gone.Load() {
				return errors.New("table 'timers' does not exist")
			}
			return nil
		}
		w.start()
		w.make(timer("a", every(time.Second)))
		gone.Store(true)
		time.Sleep(15 * time.Second)
		if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "table 'timers' does not exist") || w.Tiers()["cold"] {
			t.Errorf("ready: %v, tiers %v", err, w.Tiers())
		}
		gone.Store(false)
		time.Sleep(15 * time.Second)
		if err := w.Ready(); err != nil || !w.Tiers()["cold"] {
			t.Errorf("ready: %v, tiers %v", err, w.Tiers())
		}
	})
}
