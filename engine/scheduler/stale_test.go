package scheduler_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// A row that a start reads while its task is called and settled is not called again,
// also when the clock is set meanwhile.
func TestStepWhileRowsAreRead(t *testing.T) {
	for _, step := range []time.Duration{0, -3 * time.Second, time.Minute} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.after.set(func(op string, arg any) {
					if op == "OwedIn" {
						time.Sleep(2200 * time.Millisecond)
					}
				})
				w.start()
				time.Sleep(5 * time.Second)
				w.replies("a", fail, ok)
				w.make(timer("a", delay(time.Second), overlap(engine.OverlapSkip), retry(4, 2*time.Second, 1)))
				time.Sleep(1500 * time.Millisecond)
				w.crash(5 * time.Second)
				time.Sleep(1100 * time.Millisecond)
				w.step(step)
				time.Sleep(10 * time.Second)
				w.settle()
				if cs := w.of("a"); len(cs) != 2 {
					t.Errorf("%d calls, want 2: %+v", len(cs), cs)
				}
			})
		})
	}
}

// What a definition was, read before it was changed, does not come into force after
// that, also when the clock is set forward meanwhile.
func TestStaleDefinitionAfterAStepForward(t *testing.T) {
	for _, step := range []time.Duration{0, 6 * time.Minute} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var slow atomic.Bool
				under := make(chan struct{}, 100)
				w.warmFault.set(func(string) error { return errors.New("away") })
				w.after.set(func(op string, _ any) {
					if op == "Due" && slow.Load() {
						under <- struct{}{}
						time.Sleep(500 * time.Millisecond)
					}
				})
				w.start()
				a := w.make(timer("a", every(10*time.Second)))
				b := w.make(timer("b", every(10*time.Second)))
				time.Sleep(10 * time.Second)
				slow.Store(true)
				<-under
				slow.Store(false)
				time.Sleep(time.Millisecond)
				w.disable(a, 0)
				n := len(w.of("a"))
				w.step(step)
				w.disable(b, 0) // a change that forgets old ones
				time.Sleep(2 * time.Minute)
				if more := len(w.of("a")) - n; more > 0 {
					t.Errorf("%d calls after the disable was acknowledged", more)
				}
			})
		})
	}
}

// A change that reads the rows of a timer for longer than what is settled stays in
// memory does not cancel a task that was settled meanwhile.
func TestSlowChangeBesideASettle(t *testing.T) {
	for _, slow := range []time.Duration{time.Second, 7 * time.Second} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var slowChange, slowSettle atomic.Bool
				under := make(chan struct{})
				w.before.set(func(_ string, arg any) error {
					if s, is := arg.(*engine.Settlement); is && len(s.Pay) > 0 && slowSettle.CompareAndSwap(true, false) {
						close(under)
						time.Sleep(300 * time.Millisecond)
					}
					return nil
				})
				w.after.set(func(op string, _ any) {
					if op == "OwedPage" && slowChange.Load() {
						time.Sleep(slow)
					}
				})
				w.start()
				w.replies("a", fail, ok)
				id := w.make(timer("a", every(time.Minute), retry(4, 20*time.Second, 1)))
				time.Sleep(60*time.Second + 19900*time.Millisecond)
				slowSettle.Store(true)
				<-under
				time.Sleep(time.Millisecond)
				slowChange.Store(true)
				w.disable(id, 0)
				slowChange.Store(false)
				w.settle()
				if r := w.records(id)[0]; r.Status != engine.Succeeded {
					t.Errorf("its target took it, and the record says %s", r.Status)
				}
			})
		})
	}
}

// A one-shot that begins while a change looks whether it has keeps its schedule.
func TestOneShotBeginsWhileItIsChanged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var slow atomic.Bool
		w.before.set(func(op string, _ any) error {
			if op == "Task" && slow.CompareAndSwap(true, false) {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		w.start()
		due := w.now() + 10_000
		failing := fail
		failing.after = 200 * time.Millisecond
		w.replies("a", failing, ok)
		id := w.make(timer("a", at(due), retry(4, time.Second, 1)))
		time.Sleep(9980 * time.Millisecond)
		slow.Store(true)
		if err := w.reschedule(id, engine.Schedule{At: due, TimeZone: "Europe/Berlin"}); code(err) != "already_fired" {
			t.Errorf("the change: %v, want already_fired", err)
		}
		time.Sleep(time.Minute)
		w.settle()
		equal(t, "verdicts", w.verdicts(id, due), []string{"0s succeeded"})
		if n := len(w.of("a")); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}
