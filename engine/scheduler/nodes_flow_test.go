package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/allot"
	"xtimer/engine/flow"
	"xtimer/engine/scheduler"
)

// The rate of a key, or of a target, holds for the calls of three nodes together: while all
// run, and when the node that owns the key is killed. No node starves.
func TestNodesKeepTheRateOfAKey(t *testing.T) {
	t.Parallel()
	t.Run("key", func(t *testing.T) { nodesKeepTheRate(t, keyK, flows("k")) })
	t.Run("target", func(t *testing.T) {
		nodesKeepTheRate(t, flow.Name{Kind: flow.OfTarget, Key: flow.TargetOf("http://127.0.0.1:1")})
	})
}

func nodesKeepTheRate(t *testing.T, name flow.Name, opts ...func(*engine.Definition)) {
	bubble(t, func(t *testing.T, w *world) {
		const rate, each = 20, 300
		ws := w.nodes(3)
		defer endNodes(ws)
		r := perSecond(rate)
		r.Started = true
		silence := startAllotting(ws, name, r)
		time.Sleep(time.Second)
		due := w.now() + 1000
		for i, x := range ws {
			for n := range each {
				x.make(timer(fmt.Sprint(i, "-", n), at(due), opts...))
			}
		}
		by := func(since int64) (by [3]int, all []int64) {
			for i, x := range ws {
				x.mu.Lock()
				for _, c := range x.calls {
					if all = append(all, c.at); c.at >= since {
						by[i]++
					}
				}
				x.mu.Unlock()
			}
			slices.Sort(all)
			return by, all
		}
		time.Sleep(6 * time.Second)
		if n, _ := by(0); min(n[0], n[1], n[2]) < rate {
			t.Errorf("calls by node in 5 s: %v", n)
		}
		seen, err := w.node.table.Look(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		owner := slices.IndexFunc(ws, func(x *world) bool {
			return x.node.life.Load() == seen.Shards[allot.Shard(name)].Holder
		})
		silence(ws[owner])
		ws[owner].kill()
		time.Sleep(6 * time.Second)
		since := w.now()
		time.Sleep(3 * time.Second)
		n, _ := by(since)
		for i := range ws {
			if i != owner && n[i] < rate/2 {
				t.Errorf("calls by node after the owner, node %d, was killed: %v", owner, n)
			}
		}
		time.Sleep(60 * time.Second)
		_, all := by(0)
		if len(all) < len(ws)*each {
			t.Errorf("%d calls of %d tasks", len(all), len(ws)*each)
		}
		for i := rate; i < len(all); i++ {
			if all[i]-all[i-rate] < 1000 {
				t.Fatalf("%d calls within %d ms, from %s on", rate+1, all[i]-all[i-rate], stamp(all[i-rate]))
			}
		}
	})
}

// startAllotting starts nodes that have a rule and grant each other its calls. silence has a node answer no more, until
// it starts again.
func startAllotting(ws []*world, name flow.Name, rule flow.Rule) (silence func(*world)) {
	var nodes sync.Map // the schedulers of the nodes that run, by their addresses
	for _, x := range ws {
		x.tune = func(e *scheduler.Scheduler) {
			e.SetRule(name, &rule)
			nodes.Store(x.node.Node.Address, e)
			e.AllotBy(func(_ context.Context, address string, message []byte) ([]byte, error) {
				if o, ok := nodes.Load(address); ok {
					return o.(*scheduler.Scheduler).Allot(message)
				}
				return nil, errors.New("the node does not answer")
			})
		}
		x.start()
	}
	return func(x *world) { nodes.Delete(x.node.Node.Address) }
}

// The calls of a key that may be called 4 times in 3 minutes count when the key gets another owner:
// the one that is killed, and one that gives its shards away in good order.
func TestNodesKeepTheRateOfASlowKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		const rate, per = 4, 3 * time.Minute
		ws := w.nodes(3)
		defer endNodes(ws)
		silence := startAllotting(ws, keyK, flow.Rule{Limit: &flow.Limit{Rate: rate, Per: per, Burst: rate}, Started: true})
		time.Sleep(time.Second)
		due := w.now() + 1000
		for i, x := range ws {
			for n := range 6 {
				x.make(timer(fmt.Sprint(i, "-", n), at(due), flows("k")))
			}
		}
		for _, end := range []func(*world) error{func(x *world) error { x.kill(); return nil }, (*world).stop} {
			time.Sleep(30 * time.Second)
			seen, err := w.node.table.Look(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			owner := slices.IndexFunc(ws, func(x *world) bool { return x.node.life.Load() == seen.Shards[allot.Shard(keyK)].Holder })
			if owner < 0 {
				t.Fatal("nobody owns the key")
			}
			silence(ws[owner])
			if err := end(ws[owner]); err != nil {
				t.Error(err)
			}
			time.Sleep(30 * time.Second)
			ws[owner].start()
		}
		time.Sleep(per + 30*time.Second)
		var all []int64
		for _, x := range ws {
			x.mu.Lock()
			for _, c := range x.calls {
				all = append(all, c.at)
			}
			x.mu.Unlock()
		}
		slices.Sort(all)
		if len(all) < 2*rate {
			t.Errorf("%d calls", len(all))
		}
		for i := rate; i < len(all); i++ {
			if all[i]-all[i-rate] < per.Milliseconds() {
				t.Fatalf("%d calls within %d ms, from %s on", rate+1, all[i]-all[i-rate], stamp(all[i-rate]))
			}
		}
	})
}

// A call that its owner granted lapses while the gate waits for one that is still being dialed: the node asks for another.
func TestAGrantedCallLapsesBehindASlowOne(t *testing.T) {
	for how, l := range map[string]flow.Limit{
		"1 in 2 s": {Rate: 1, Per: 2 * time.Second, Burst: 1}, "10 in 5 min": {Rate: 10, Per: 5 * time.Minute, Burst: 1}, "10 in 1 s": {Rate: 10, Per: time.Second, Burst: 1},
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(2)
				defer endNodes(ws)
				startAllotting(ws, keyK, flow.Rule{Limit: &l, Started: true})
				time.Sleep(time.Second)
				due := w.now() + 400_000
				behaveAll(ws, "slow", reply{dial: 4 * time.Second})
				for _, name := range []string{"slow", "b", "c"} {
					ws[0].make(timer(name, at(due), flows("k"), func(d *engine.Definition) {
						if name == "slow" {
							d.Priority = 9
						}
					}))
				}
				time.Sleep(400*time.Second + 5*time.Minute)
				var sent []int64
				for _, name := range []string{"slow", "b", "c"} {
					for _, c := range ofAll(ws, name) {
						sent = append(sent, c.at-due)
					}
				}
				slices.Sort(sent)
				every := (l.Per / time.Duration(l.Rate)).Milliseconds()
				if len(sent) != 3 || sent[2] > 4_000+3*every+10_000 {
					t.Errorf("calls at %v", sent)
				}
			})
		})
	}
}
