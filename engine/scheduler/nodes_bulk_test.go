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
	"xtimer/engine/allot"
	"xtimer/engine/change"
	"xtimer/engine/scheduler"
)

var disableApp = change.Bulk{Action: change.DisableAll, Reason: "r", Timers: engine.TimerFilter{App: "app"}}

// twoWith makes two nodes over so many timers, and has the nodes do each other's items by the way that through gives. A
// change of a timer takes so long.
func (w *world) twoWith(timers int, takes time.Duration, through func(allot.Send) allot.Send) (ws []*world, ids []engine.TimerID) {
	ws = w.nodesOf(2, 1)
	var now sync.Map // by address
	send := func(ctx context.Context, address string, message []byte) ([]byte, error) {
		if o, ok := now.Load(address); ok {
			return o.(*scheduler.Scheduler).DoItem(ctx, message)
		}
		return nil, errors.New("the node does not answer")
	}
	for _, x := range ws {
		x.tune = func(e *scheduler.Scheduler) {
			now.Store(x.node.Node.Address, e)
			e.ItemsBy(through(send))
		}
		x.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" && c.Was > 0 {
				time.Sleep(takes)
			}
			return nil
		})
	}
	return ws, w.stored(timers)
}

func directly(send allot.Send) allot.Send { return send }

// A bulk operation goes on in the background while its node is stopped in good order, and starts again.
func TestBulkGoesOnAfterAStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "operations")
	bubble(t, func(t *testing.T, w *world) {
		ws, ids := w.twoWith(10_001, 20*time.Millisecond, directly)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.config.OperationsDir = dir
		a.start()
		time.Sleep(2 * time.Second)
		op, err := a.StartBulk(t.Context(), disableApp)
		if err != nil || op.Ended || op.Total != 10_001 {
			t.Fatalf("%+v, %v", op, err)
		}
		time.Sleep(time.Second)
		b.start() // joins: half of the shards move, then the first is stopped
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
			n := a
			if !n.Owned().Has(id.Shard()) {
				n = b
			}
			if v, err := n.Timer(t.Context(), id); err != nil || v.Status != engine.Disabled || v.Reason != "r" {
				enabled++
			}
		}
		if !ok || !is.Ended || is.Done != 10_001 || is.Failed != 0 || is.Shards != op.Shards || enabled > 0 {
			t.Errorf("after the restart known %v: %+v; %d timers are as before", ok, is, enabled)
		}
	})
}

// Shards move while a bulk operation is under way, or their owner does no items: the operation fails for those alone
// that no node did for ownedWithin, and waits once for a shard.
func TestBulkWhileShardsMove(t *testing.T) {
	join := func(t *testing.T, b *world) { b.start() }
	for _, x := range []struct {
		name    string
		takes   time.Duration // a change
		through func(allot.Send) allot.Send
		other   func(t *testing.T, b *world)
		fail    int64 // at most
		within  time.Duration
	}{
		{"a node joins", 20 * time.Millisecond, directly, join, 0, time.Minute},
		{"a node joins and stops", 50 * time.Millisecond, directly, func(t *testing.T, b *world) {
			b.start()
			time.Sleep(2500 * time.Millisecond)
			stopWell(t, b)
		}, 0, time.Minute},
		{"a node comes twice", 400 * time.Millisecond, directly, func(t *testing.T, b *world) {
			b.start()
			time.Sleep(6 * time.Second)
			stopWell(t, b)
			time.Sleep(20 * time.Second)
			b.start()
		}, 0, 3 * time.Minute},
		// As one of an earlier version.
		{"a node does no items", 20 * time.Millisecond, func(allot.Send) allot.Send {
			return func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("404") }
		}, join, 5000, 2 * time.Minute},
		{"a node hangs once", 20 * time.Millisecond, hangsOnce, join, 64, 2 * time.Minute},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws, _ := w.twoWith(5000, x.takes, x.through)
				defer endNodes(ws)
				ws[0].start()
				time.Sleep(2 * time.Second)
				go func() {
					time.Sleep(100 * time.Millisecond)
					x.other(t, ws[1])
				}()
				from := time.Now()
				op, err := ws[0].StartBulk(t.Context(), disableApp)
				if took := time.Since(from); err != nil || !op.Ended || op.Done != 5000 || op.Failed > x.fail || took > x.within {
					t.Errorf("%d done, %d failed: %q, %v, after %v", op.Done, op.Failed, op.Error, err, took)
				}
				time.Sleep(time.Minute) // the other node comes and goes
			})
		})
	}
}

func stopWell(t *testing.T, b *world) {
	t.Helper()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

// hangsOnce loses the first 32 items, one of each worker, after 15 s.
func hangsOnce(send allot.Send) allot.Send {
	var asked atomic.Int64
	return func(ctx context.Context, address string, message []byte) ([]byte, error) {
		if asked.Add(1) <= 32 {
			time.Sleep(15 * time.Second)
			return nil, errors.New("lost")
		}
		return send(ctx, address, message)
	}
}
