package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// Timers whose definitions cannot be read, in whole or behind their heads, keep no other
// from firing: not at a start, not while minutes are loaded, and not in a lane. What is
// owed of them stays, and is called once the definitions can be read.
func TestDefinitionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{false, true} {
		for _, end := range []int{1, -1} {
			t.Run(fmt.Sprint("warm tier keeps definitions ", keeps, ", cut at ", end), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.keeps = keeps
					w.start()
					w.replies("owing", fail, ok) // retries are farther than what is loaded
					w.unread = map[engine.TimerID]bool{
						w.make(timer("owing", delay(time.Second), retry(2, 10*time.Minute, 1))):               true,
						w.make(timer("often", every(10*time.Second))):                                         true,
						w.make(timer("once", at(w.now()+7*time.Minute.Milliseconds()))):                       true,
						w.make(timer("behind", every(time.Second), misfire(engine.MisfireAll, 24*time.Hour))): true,
						w.make(timer("queued", every(time.Minute), overlap(engine.OverlapQueue))):             true,
					}
					from := w.now()
					good := w.make(timer("good", every(10*time.Second), misfire(engine.MisfireAll, 24*time.Hour)))
					w.replies("late", fail, ok)
					w.make(timer("late", delay(time.Second), retry(2, 10*time.Minute, 1)))
					time.Sleep(10 * time.Second)

					w.garbled.set(func(id engine.TimerID, b []byte) []byte {
						if !w.unread[id] {
							return b
						}
						return b[:(len(b)+end)%len(b)]
					})
					w.crash(4 * time.Minute)
					time.Sleep(12 * time.Minute)
					if n := len(w.of("late")); n != 2 {
						t.Errorf("%d calls of a timer that was to be tried again, want 2", n)
					}
					to := w.now() / 10_000 * 10_000
					w.accounted(good, from, to-60_000, 10_000)
					if n := len(w.of("owing")); n != 1 {
						t.Errorf("%d calls of a timer that cannot be read, want the one of before", n)
					}

					w.garbled.set(func(_ engine.TimerID, b []byte) []byte { return b })
					w.crash(time.Second)
					w.settle()
					if n := len(w.of("owing")); n != 2 {
						t.Errorf("%d calls of a timer that can be read again, want 2", n)
					}
				})
			})
		}
	}
}
