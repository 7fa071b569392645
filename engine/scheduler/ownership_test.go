package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
)

// sharedCold is a cold tier that another process may take over.
type sharedCold struct {
	*mortalCold
	owns func(ctx context.Context) error
}

func (c *sharedCold) Owns(ctx context.Context) error { return c.owns(ctx) }

// pausable has the cold tier answer no question while it is on, as if the process was
// stopped, and then whatever is stored in the other.
func (w *world) pausable() (paused *atomic.Bool, answer *atomic.Pointer[error]) {
	paused, answer = &atomic.Bool{}, &atomic.Pointer[error]{}
	w.owns = func(context.Context) error {
		for paused.Load() && !w.t.Failed() {
			time.Sleep(time.Millisecond)
		}
		if err := answer.Load(); err != nil {
			return *err
		}
		return nil
	}
	return paused, answer
}

// ended waits until a life has ended by itself, and returns its error.
func (w *world) ended() error {
	l := w.life
	err := <-l.end
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	close(l.gone)
	w.life, w.Scheduler = nil, nil
	return err
}

// A process that was stopped, and taken over meanwhile, makes no call when it goes on:
// not what became due, and not what it had prepared. All of it is called by the next one,
// once, at_most_once too.
func TestTakenOverWhileStopped(t *testing.T) {
	for how, prepare := range preparations {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				paused, answer := w.pausable()
				w.start()
				opts := prepare(w)
				prepared := w.make(timer("a", delay(time.Second), opts...))
				once := w.make(timer("once", delay(3*time.Second), atMostOnce))
				w.make(timer("fast", every(time.Second)))
				time.Sleep(1500 * time.Millisecond)
				w.journal.tune(0, 0)
				paused.Store(true)
				time.Sleep(3600 * time.Millisecond)
				before := map[string]int{}
				for _, name := range []string{"a", "once", "fast"} {
					before[name] = len(w.of(name))
				}
				taken := error(engine.ErrFenced)
				answer.Store(&taken)
				paused.Store(false)
				if err := w.ended(); !errors.Is(err, engine.ErrFenced) {
					t.Fatalf("it ended with %v", err)
				}
				for name, n := range before {
					if is := len(w.of(name)); is != n {
						t.Errorf("%d calls of %s after it was taken over", is-n, name)
					}
				}
				w.owns, w.journal = nil, &disk{} // on another machine
				w.start()
				w.settle()
				for id, name := range map[engine.TimerID]string{prepared: "a", once: "once"} {
					rec := w.records(id)[0]
					if calls := w.of(name)[before[name]:]; len(calls) != 1 || rec.Status != engine.Succeeded {
						t.Errorf("%s: %d calls by the next process, and it is %v", name, len(calls), rec.Status)
					}
				}
			})
		})
	}
}

// A call that waits for an answer is late, or, when its timer is deleted meanwhile,
// cancelled: nothing of it was sent.
func TestCallWaitsForOwnership(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			paused, _ := w.pausable()
			w.start()
			w.replies("a", reply{dial: 2 * time.Second})
			id := w.make(timer("a", delay(time.Second)))
			time.Sleep(1100 * time.Millisecond)
			paused.Store(true)
			time.Sleep(5 * time.Second)
			if n := len(w.of("a")); n != 0 {
				t.Fatalf("%d calls", n)
			}
			want, calls := engine.Succeeded, 1
			if deletes {
				want, calls = engine.Cancelled, 0
				if result, err := w.Delete(t.Context(), id, 0); err != nil || result != change.DeleteCancelled {
					t.Fatalf("%q, %v", result, err)
				}
			}
			paused.Store(false)
			w.settle()
			if n := len(w.of("a")); n != calls {
				t.Errorf("%d calls", n)
			}
			if rec := w.records(id)[0]; rec.Status != want || calls == 1 && rec.Lateness < 5*time.Second {
				t.Errorf("the record: %+v", rec)
			}
		})
	}
}

// While the cold tier is away nobody can be asked, and calls go on.
func TestOwnershipOfTierAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.owns = func(ctx context.Context) error {
			<-ctx.Done()
			return engine.ErrUnavailable
		}
		w.start()
		time.Sleep(time.Second)
		id := w.make(timer("fast", every(100*time.Millisecond)))
		time.Sleep(10 * time.Second)
		w.disable(id, 0)
		w.settle()
		for _, c := range w.of("fast") {
			if c.at != c.key.Due {
				t.Errorf("a call %d ms late", c.at-c.key.Due)
			}
		}
	})
}
