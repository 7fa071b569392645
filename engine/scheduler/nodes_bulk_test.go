package scheduler_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/scheduler"
)

// A bulk operation goes on in the background while its node is stopped in good order, and starts again.
func TestBulkGoesOnAfterAStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "operations")
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a := ws[0]
		a.config.OperationsDir = dir
		doItemsTogether(ws)
		slow := func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		}
		ids := w.stored(10_001)
		a.start()
		time.Sleep(2 * time.Second)
		a.before.set(slow)
		op, err := a.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if err != nil || op.Ended || op.Total != 10_001 {
			t.Fatalf("%+v, %v", op, err)
		}
		time.Sleep(time.Second)
		ws[1].start() // joins: half of the shards move, then the first is stopped
		time.Sleep(time.Second)
		if err := a.stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		a.start()
		time.Sleep(2 * time.Minute)
		is, ok := a.Operation(op.ID)
		enabled := 0
		for _, id := range ids {
			n := ws[0]
			if !n.Owned().Has(id.Shard()) {
				n = ws[1]
			}
			if v, err := n.Timer(t.Context(), id); err != nil || v.Status != engine.Disabled || v.Reason != "r" {
				enabled++
			}
		}
		if !ok || !is.Ended || is.Done != 10_001 || is.Failed != 0 || enabled > 0 {
			t.Errorf("after the restart known %v: %+v; %d timers are as before", ok, is, enabled)
		}
	})
}

// doItemsTogether has nodes do items for each other.
func doItemsTogether(ws []*world) {
	var now sync.Map
	for _, x := range ws {
		x.tune = func(e *scheduler.Scheduler) {
			now.Store(x.node.Node.Address, e)
			e.ItemsBy(func(ctx context.Context, address string, message []byte) ([]byte, error) {
				if o, ok := now.Load(address); ok {
					return o.(*scheduler.Scheduler).DoItem(ctx, message)
				}
				return nil, errors.New("the node does not answer")
			})
		}
	}
}

// A node joins while a bulk operation is under way: nothing of it fails.
func TestBulkWhileANodeJoins(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a := ws[0]
		doItemsTogether(ws)
		w.stored(5000)
		a.start()
		time.Sleep(2 * time.Second)
		a.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		go func() {
			time.Sleep(100 * time.Millisecond)
			ws[1].start()
		}()
		op, err := a.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if err != nil || !op.Ended || op.Failed != 0 {
			t.Errorf("%+v, %v", op, err)
		}
	})
}

// A node of an older version does no items: an operation waits for it once, not for each item.
func TestBulkBesideANodeThatDoesNoItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a := ws[0]
		a.tune = func(e *scheduler.Scheduler) {
			e.ItemsBy(func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("404") })
		}
		w.stored(5000)
		a.start()
		time.Sleep(2 * time.Second)
		a.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		go func() {
			time.Sleep(100 * time.Millisecond)
			ws[1].start()
		}()
		from := time.Now()
		op, err := a.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if took := time.Since(from); err != nil || op.Done != 5000 || took > 2*time.Minute {
			t.Errorf("%d done, %d failed, %v, after %v", op.Done, op.Failed, err, took)
		}
	})
}

// The node that does items of another is stopped in good order meanwhile: none fails.
func TestBulkWhileAnOwnerStops(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a := ws[0]
		doItemsTogether(ws)
		w.stored(5000)
		a.start()
		time.Sleep(2 * time.Second)
		for _, x := range ws {
			x.before.set(func(op string, arg any) error {
				if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
					time.Sleep(50 * time.Millisecond)
				}
				return nil
			})
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			ws[1].start()
			time.Sleep(2500 * time.Millisecond)
			if err := ws[1].stop(); err != nil {
				t.Error(err)
			}
		}()
		op, err := a.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if err != nil || !op.Ended || op.Failed != 0 {
			t.Errorf("%+v, %v", op, err)
		}
		time.Sleep(20 * time.Second)
	})
}

// An owner leaves, comes back and takes the shards again: none fails, since each hand-over is short.
func TestBulkWhileAnOwnerComesTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a := ws[0]
		doItemsTogether(ws)
		w.stored(5000)
		a.start()
		time.Sleep(2 * time.Second)
		for _, x := range ws {
			x.before.set(func(op string, arg any) error {
				if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
					time.Sleep(400 * time.Millisecond)
				}
				return nil
			})
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			ws[1].start()
			time.Sleep(6 * time.Second)
			if err := ws[1].stop(); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
			ws[1].start()
		}()
		op, err := a.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if err != nil || !op.Ended || op.Failed != 0 {
			t.Errorf("%d of %d failed: %q, %v", op.Failed, op.Total, op.Error, err)
		}
		time.Sleep(20 * time.Second)
	})
}

// The owner answers nothing for 15 s, once, and does all items from then on.
func TestBulkWhileAnOwnerHangsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a := ws[0]
		var now sync.Map
		var hung atomic.Int64
		for _, x := range ws {
			x.tune = func(e *scheduler.Scheduler) {
				now.Store(x.node.Node.Address, e)
				e.ItemsBy(func(ctx context.Context, address string, message []byte) ([]byte, error) {
					if hung.Add(1) <= 32 {
						time.Sleep(15 * time.Second)
						return nil, errors.New("lost")
					}
					o, _ := now.Load(address)
					return o.(*scheduler.Scheduler).DoItem(ctx, message)
				})
			}
		}
		w.stored(5000)
		a.start()
		time.Sleep(2 * time.Second)
		a.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		go func() {
			time.Sleep(100 * time.Millisecond)
			ws[1].start()
		}()
		op, err := a.StartBulk(t.Context(), change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}})
		if err != nil || !op.Ended || op.Failed > 64 {
			t.Errorf("32 items were lost, %d of %d failed: %q, %v", op.Failed, op.Total, op.Error, err)
		}
	})
}
