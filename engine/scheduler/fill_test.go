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

func (m *mortalWarm) Open(ctx context.Context) error {
	if err := m.w.warmFault.get()("Open"); err != nil {
		return err
	}
	return m.Warm.Open(ctx)
}

func (m *mortalWarm) Seal(ctx context.Context, of engine.Set, from, to int64) error {
	if err := m.w.warmFault.get()("Seal"); err != nil {
		return err
	}
	return m.Warm.Seal(ctx, of, from, to)
}

func (m *mortalWarm) Drop(ctx context.Context, before int64) error {
	if err := m.w.warmFault.get()("Drop"); err != nil {
		return err
	}
	return m.Warm.Drop(ctx, before)
}

var errWarm = fmt.Errorf("the warm tier does not answer: %w", engine.ErrUnavailable)

// crowd makes many one-shots that are due at one instant.
func (w *world) crowd(n int, due int64) {
	w.t.Helper()
	ds := make([]engine.Definition, n)
	for i := range ds {
		ds[i] = timer(fmt.Sprint("crowd-", i), at(due))
	}
	for _, c := range w.CreateAll(context.Background(), ds) {
		if c.Err != nil {
			w.t.Fatal(c.Err)
		}
	}
}

// To fill the hour anew takes longer than the wheel is ahead: what is due
// meanwhile, a retry too, is on time.
func TestLongFillLeavesTheWheelAhead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		var lost, slow atomic.Bool
		var took atomic.Int64
		w.warmFault.set(func(op string) error {
			if op == "Load" && lost.CompareAndSwap(true, false) {
				slow.Store(true)
				return engine.ErrGap
			}
			if op == "Add" && slow.Load() {
				time.Sleep(50 * time.Second)
				took.Add(50)
			}
			return nil
		})
		w.start()
		from := w.now()
		id := w.make(timer("second", every(time.Second)))
		w.replies("again", fail, ok)
		w.make(timer("again", at(from+100_000), retry(2, 5*time.Minute, 1)))
		w.crowd(2600, from+25*60_000) // a slice with five pages
		time.Sleep(time.Minute)
		lost.Store(true)
		time.Sleep(12*time.Minute + 500*time.Millisecond)
		if took.Load() < 300 {
			t.Errorf("it took only %d s to fill the hour", took.Load())
		}
		slow.Store(false)
		w.disable(id, 0)
		to := w.now()
		time.Sleep(15 * time.Minute)
		w.exact("second", id, grid(from, to, 1000, from), 0)
		if cs := w.of("again"); len(cs) != 2 || cs[1].at-cs[0].at != 5*60_000 {
			t.Errorf("the retry: %+v", cs)
		}
	})
}

// A warm tier that refuses what is new is asked again ever less often, and what it
// holds is not given up: without the cold tier too all of the hour fires.
func TestFullWarmTier(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.keeps = true
		var full atomic.Bool
		var adds atomic.Int64
		away := w.outage()
		w.warmFault.set(func(op string) error {
			if op == "Add" && full.Load() {
				adds.Add(1)
				return errors.New("OOM command not allowed")
			}
			return nil
		})
		w.start()
		from := w.now()
		id := w.make(timer("fast", every(5*time.Second)))
		time.Sleep(time.Minute)
		before := w.metric("xtimer_warm_entries")
		full.Store(true)
		time.Sleep(10 * time.Minute)
		if n := w.metric("xtimer_warm_entries"); n > before-9 {
			t.Errorf("it held %v entries, and holds %v after 10 minutes in which it was full", before, n)
		}
		if n := adds.Load(); n < 8 || n > 20 {
			t.Errorf("it was filled %d times in 10 minutes in which it was full", n)
		}
		if w.Tiers()["warm"] {
			t.Error("it says that the warm tier is up")
		}
		away.Store(true)
		time.Sleep(10 * time.Minute)
		away.Store(false)
		full.Store(false)
		time.Sleep(2*time.Minute + 700*time.Millisecond)
		if !w.Tiers()["warm"] {
			t.Error("it says that the warm tier is not up")
		}
		w.disable(id, 0)
		to := w.now()
		w.settle()
		w.exact("fast", id, grid(from, to, 5000, from), 0)
	})
}

// A call that the warm tier does not answer, once or for a while, costs none of
// what it holds: nothing is filled again, and without the cold tier firing goes on
// to the end of the window.
func TestHiccupOfTheWarmTier(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Load", "Drop", "Open"} { // Open: and all others
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.keeps, w.config.Window = true, 20*time.Minute
				var fails atomic.Int64
				var adds atomic.Int64
				away := w.outage()
				w.warmFault.set(func(o string) error {
					if o == "Add" {
						adds.Add(1)
					}
					if (o == op || op == "Open") && fails.Add(-1) >= 0 {
						return errWarm
					}
					return nil
				})
				w.start()
				from := w.now()
				id := w.make(timer("fast", every(5*time.Second)))
				time.Sleep(2 * time.Minute)
				adds.Store(0)
				fails.Store(10)
				time.Sleep(time.Minute)
				if fails.Load() > 9 {
					t.Error("nothing failed")
				}
				fails.Store(0)
				time.Sleep(2 * time.Minute)
				if n := adds.Load(); n > 4 { // the minute that comes into the window
					t.Errorf("%d pages were added in three minutes", n)
				}
				if !w.Tiers()["warm"] {
					t.Error("it says that the warm tier is not up")
				}
				away.Store(true)
				time.Sleep(3 * time.Minute)
				fails.Store(1)
				time.Sleep(5 * time.Minute)
				away.Store(false)
				time.Sleep(time.Minute + 700*time.Millisecond)
				w.disable(id, 0)
				to := w.now()
				w.settle()
				w.exact("fast", id, grid(from, to, 5000, from), 0)
			})
		})
	}
}

// A caller who leaves while his timer goes into the warm tier says nothing about
// that: others are not kept from it.
func TestCallerLeavesTheWarmTier(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx, leave := context.WithCancel(t.Context())
		var leaves atomic.Bool
		w.warmFault.set(func(op string) error {
			if op == "Add" && leaves.CompareAndSwap(true, false) {
				leave()
				return ctx.Err()
			}
			return nil
		})
		w.start()
		time.Sleep(time.Second)
		leaves.Store(true)
		due := w.now() + 30*60_000
		c := w.Create(ctx, timer("a", at(due)), nil)
		if c.Err != nil || leaves.Load() || !w.Tiers()["warm"] {
			t.Errorf("created: %v, left: %v, the warm tier is up: %v", c.Err, !leaves.Load(), w.Tiers()["warm"])
		}
		time.Sleep(31 * time.Minute)
		w.exact("a", c.View.ID, []int64{due}, 0)
	})
}
