package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/plan"
)

// A change says how large the definition is that it replaces, or removes: tiers bound their
// commits by that.
func TestChangeTellsItsSize(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const size = 100 << 10
		var told atomic.Int64
		w.before.set(func(_ string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && c.Was > 0 && c.Size >= size && c.Size < 2*size {
				told.Add(1)
			}
			return nil
		})
		w.start()
		for i := range 3 {
			d := timer(fmt.Sprint(i), delay(100*time.Hour))
			d.Callback.HasBody, d.Callback.BodyKind, d.Callback.Body = true, engine.BodyText, bytes.Repeat([]byte{'x'}, size)
			w.make(d)
		}
		for _, a := range []change.BulkAction{change.DisableAll, change.DeleteAll} {
			told.Store(0)
			if op, err := w.StartBulk(t.Context(), change.Bulk{Action: a, Timers: engine.TimerFilter{App: "app"}}); err != nil || op.Done != 3 || told.Load() != 3 {
				t.Errorf("%s: %+v, %v, of %d the size is told", a, op, err, told.Load())
			}
		}
	})
}

// A bulk operation that was answered before it had ended goes on at the next start: with
// what it had selected, not with what was made meanwhile.
func TestBulkGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprint("alone ", alone), func(t *testing.T) { bulkGoesOn(t, alone) })
	}
}

func bulkGoesOn(t *testing.T, alone bool) {
	left, copied := filepath.Join(t.TempDir(), "operations"), filepath.Join(t.TempDir(), "operations")
	bubble(t, func(t *testing.T, w *world) {
		if !alone {
			w.nodesOf(1, 1)
		}
		w.config.OperationsDir = left
		var applied atomic.Int64
		gate := make(chan struct{})
		w.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 && applied.Add(1) > 3500 {
				<-gate
			}
			return nil
		})
		ids := w.stored(10_001)
		w.start()
		time.Sleep(time.Second) // a node gains its shards
		op, err := w.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if err != nil || op.Ended || op.Total != 10_001 {
			t.Fatalf("%+v, %v", op, err)
		}
		time.Sleep(time.Second)
		later := w.make(timer("later", delay(100*time.Hour)))
		if is, _ := w.Operation(op.ID); is.Done < 3000 || is.Done > 3500 {
			t.Fatalf("%d are done before the kill", is.Done)
		}
		if err := os.CopyFS(copied, os.DirFS(left)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, "damaged.operation"), make([]byte, 40), 0o600); err != nil {
			t.Fatal(err)
		}
		w.config.OperationsDir = copied
		w.kill()
		close(gate)
		again := applied.Load()
		w.start()
		time.Sleep(time.Minute)
		is, ok := w.Operation(op.ID)
		if !ok || !is.Ended || is.Done != 10_001 || is.Failed != 0 || is.App != "app" || is.Action != change.DisableAll {
			t.Errorf("%+v", is)
		}
		if n := applied.Load() - again; n > 7500 {
			t.Errorf("%d changes after the start", n)
		}
		for _, id := range ids {
			if v, err := w.Timer(t.Context(), id); err != nil || v.Status != engine.Disabled || v.Reason != "r" {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		if v, err := w.Timer(t.Context(), later); err != nil || v.Status != engine.Enabled {
			t.Errorf("one that was made later: %+v, %v", v, err)
		}
		if files, err := os.ReadDir(copied); err != nil || len(files) != 1 {
			t.Errorf("left behind: %v, %v", files, err)
		}
	})
}

func (m *mortalCold) Timers(ctx context.Context, f engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error) {
	err = m.do("Timers", f, func() (err error) { ts, next, err = m.Cold.Timers(ctx, f, after, limit); return err })
	return ts, next, err
}

// Many who ask for bulk operations at once select one after the other: what all of them
// select is not in memory together.
func TestBulkSelectsByTurns(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		for i := range 10 {
			w.make(timer(fmt.Sprint(i), delay(100*time.Hour)))
		}
		var reading, most atomic.Int64
		w.before.set(func(op string, _ any) error {
			if op == "Timers" {
				most.Store(max(most.Load(), reading.Add(1)))
				time.Sleep(time.Second)
			}
			return nil
		})
		w.after.set(func(op string, _ any) {
			if op == "Timers" {
				reading.Add(-1)
			}
		})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				op, err := w.StartBulk(t.Context(), change.Bulk{Action: change.DeleteAll, Timers: engine.TimerFilter{App: "app"}, DryRun: true})
				if err != nil || op.Total != 10 {
					t.Errorf("%+v, %v", op, err)
				}
			})
		}
		all.Wait()
		if most.Load() != 1 {
			t.Errorf("%d selected at once", most.Load())
		}
	})
}

// stored puts timers of the far future into the cold tier, before the start.
func (w *world) stored(n int) (ids []engine.TimerID) {
	w.t.Helper()
	var cs []*engine.Change
	for i := range n {
		x := &engine.Timer{
			Definition: timer(fmt.Sprint(i), delay(100*time.Hour)), ID: engine.TimerID(i+1) << 21,
			Version: 1, Generation: 1, CreatedAt: w.now(), UpdatedAt: w.now(),
		}
		if err := plan.Resolve(x, nil, w.now()); err != nil {
			w.t.Fatal(err)
		}
		ids, cs = append(ids, x.ID), append(cs, &engine.Change{Timer: x, ID: x.ID, At: w.now()})
	}
	for _, a := range w.cold.ApplyAll(w.t.Context(), cs) {
		if a.Err != nil {
			w.t.Fatal(a.Err)
		}
	}
	return ids
}

// Beyond a number of operations in the background, more are refused.
func TestManyBulkOperations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bubble(t, func(t *testing.T, w *world) {
		w.config.OperationsDir = dir
		w.stored(10_001)
		w.start()
		gate := make(chan struct{})
		w.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
				<-gate
			}
			return nil
		})
		began, refused := 0, 0
		for range 70 {
			switch op, err := w.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Timers: engine.TimerFilter{App: "app"}}); {
			case err == nil && !op.Ended:
				began++
			case code(err) == "too_many_operations":
				refused++
			default:
				t.Fatalf("%+v, %v", op, err)
			}
		}
		if began != 64 || refused != 6 {
			t.Errorf("%d began, %d are refused", began, refused)
		}
		w.kill()
		close(gate)
	})
}
