package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// Without the warm tier, and with one that comes back empty, everything fires on
// time, and what was deleted or changed meanwhile stays so.
func TestWarmTierAway(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Add", "Load", "all"} {
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.keeps = true
				var away atomic.Bool
				w.warmFault.set(func(o string) error {
					if away.Load() && (op == o || op == "all") {
						return fmt.Errorf("the warm tier is away: %w", engine.ErrUnavailable)
					}
					return nil
				})
				w.start()
				from := w.now()
				id := w.make(timer("fast", every(7*time.Second)))
				gone := w.make(timer("gone", at(from+11*60_000)))
				moved := w.make(timer("moved", at(from+12*60_000)))
				time.Sleep(3 * time.Minute)
				away.Store(true)
				late := w.make(timer("late", at(from+15*60_000)))
				if _, err := w.Delete(t.Context(), gone, 0); err != nil {
					t.Fatal(err)
				}
				if _, _, err := w.Put(t.Context(), timer("moved", at(from+13*60_000)), 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(4 * time.Minute)
				if err := w.Ready(); err != nil || op == "all" && w.Tiers()["warm"] {
					t.Errorf("ready: %v, tiers: %v", err, w.Tiers())
				}
				away.Store(false)
				time.Sleep(10 * time.Minute)
				if !w.Tiers()["warm"] {
					t.Error("the warm tier is not back")
				}
				w.disable(id, 0)
				to := w.now()
				w.settle()
				w.exact("fast", id, grid(from, to, 7000, from), 0)
				w.exact("late", late, []int64{from + 15*60_000}, 0)
				w.exact("moved", moved, []int64{from + 13*60_000}, 0)
				if n := len(w.of("gone")); n != 0 {
					t.Errorf("a deleted timer was called %d times", n)
				}
			})
		})
	}
}

// Without the cold tier firing goes on to the end of what is loaded, on time and
// once; creates are refused; what came of it is settled when the tier is back.
func TestColdTierAway(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash after ", crash), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.keeps = true
				away := w.outage()
				w.start()
				from := w.now()
				id := w.make(timer("fast", every(5*time.Second)))
				w.replies("again", fail, ok)
				again := w.make(timer("again", at(from+5*60_000), retry(3, 3*time.Minute, 1)))
				once := w.make(timer("once", at(from+11*60_000+1)))
				deleted := w.make(timer("deleted", at(from+11*60_000)))
				time.Sleep(time.Minute)
				if _, err := w.Delete(t.Context(), deleted, 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				away.Store(true)
				c := w.Create(context.Background(), timer("refused", delay(0)), nil)
				if !errors.Is(c.Err, engine.ErrUnavailable) {
					t.Errorf("a create without the cold tier: %v", c.Err)
				}
				time.Sleep(14 * time.Minute)
				if err := w.Ready(); err == nil {
					t.Error("it says it is ready")
				}
				away.Store(false)
				time.Sleep(time.Minute + 700*time.Millisecond) // no due falls on the instants looked at
				if err := w.Ready(); err != nil {
					t.Errorf("it says it is not ready: %v", err)
				}
				if crash {
					w.crash(time.Second)
					time.Sleep(30 * time.Second)
				}
				w.disable(id, 0)
				to := w.now()
				w.settle()
				if crash { // what was due in the second without a process came late
					w.accounted(id, from, to, 5000)
					if diff := difference(dues(w.of("fast")), grid(from, to, 5000, from)); diff != "" {
						t.Errorf("fast: %s", diff)
					}
				} else {
					w.exact("fast", id, grid(from, to, 5000, from), 0)
				}
				w.exact("once", once, []int64{from + 11*60_000 + 1}, 0)
				if cs := w.of("again"); len(cs) != 2 || cs[1].at-cs[0].at > 5*60_000 {
					t.Errorf("the retry: %+v", cs)
				}
				if r := w.record(engine.Key{Timer: again, Due: from + 5*60_000}); r.Status != engine.Succeeded {
					t.Errorf("the retry ended as %s", r.Status)
				}
				if n := len(w.of("deleted")); n != 0 {
					t.Errorf("a deleted timer was called %d times", n)
				}
			})
		})
	}
}

// Who has lost the shards stops firing.
func TestFenced(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.make(timer("fast", every(time.Second)))
		time.Sleep(5 * time.Second)
		if _, _, err := w.cold.Take(t.Context(), "another"); err != nil {
			t.Fatal(err)
		}
		err := w.ended()
		if !errors.Is(err, engine.ErrFenced) {
			t.Fatalf("it ended with %v", err)
		}
		before := len(w.of("fast"))
		time.Sleep(5 * time.Second)
		if n := len(w.of("fast")); n != before {
			t.Errorf("%d calls after it ended", n-before)
		}
	})
}
