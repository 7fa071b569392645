package allot

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// A node has a call in flight while the limit goes, or while a node of an earlier version has each keep the limit for
// itself, and the call ends before the limit is that of all nodes again: its place is not counted any more. The same if
// the node has forgotten the key meanwhile.
func TestAPlaceEndsWithoutItsLimit(t *testing.T) {
	for what, f := range map[string]func(x *among, l flow.Limit) (back func()){
		"the limit is deleted": func(x *among, l flow.Limit) func() {
			x.rule(nil)
			return func() { x.set("k", l) }
		},
		"the limit is a cooldown": func(x *among, l flow.Limit) func() {
			x.set("k", flow.Limit{Cooldown: true})
			return func() { x.set("k", l) }
		},
		"an earlier version runs": func(x *among, _ flow.Limit) func() {
			x.change(func(m *engine.Membership) {
				m.Nodes = append(m.Nodes, engine.Node{Name: "old", Life: 9, Address: "9", Speaks: speaks - 1})
			})
			return func() { x.change(func(m *engine.Membership) { m.Nodes = m.Nodes[:2] }) }
		},
	} {
		for _, forgotten := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				withNodes(t, 2, func(t *testing.T, x *among) {
					l := flow.Limit{Concurrency: 1}
					x.set("k", l)
					x.give("k", 1)
					time.Sleep(2 * time.Second)
					x.all[1].push("k", 1, 3*time.Second)
					time.Sleep(time.Second)
					back := f(x, l)
					time.Sleep(10 * time.Second)
					if forgotten {
						x.all[1].forget("k")
					}
					back()
					time.Sleep(time.Second)
					x.all[0].push("k", 1, 0)
					time.Sleep(time.Minute)
					if by := x.by("k", 0); by[1] != 1 || by[2] != 1 {
						t.Errorf("calls by node: %v", by)
					}
				})
			})
		}
	}
}

// An ask is under way when the limit goes, and its answer grants a place: the owner is told that nobody has it.
func TestALimitGoesWhileAPlaceIsGranted(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		l := flow.Limit{Concurrency: 1}
		x.set("k", l)
		x.give("k", 1)
		time.Sleep(2 * time.Second)
		x.delay.Store(int64(100 * time.Millisecond))
		x.all[1].push("k", 1, 0)
		time.Sleep(150 * time.Millisecond)
		x.rule(nil)
		time.Sleep(time.Second)
		x.all[1].forget("k")
		x.set("k", l)
		x.all[0].push("k", 1, 0)
		time.Sleep(time.Minute)
		if by := x.by("k", 0); by[1] != 1 || by[2] != 1 {
			t.Errorf("calls by node: %v", by)
		}
	})
}

// The limit of a key that had a rate only becomes one of places: the calls in flight have places.
func TestAKeyGetsPlacesWhileCallsAreInFlight(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		x.set("k", flow.Limit{Rate: 100, Per: time.Second, Burst: 10})
		x.give("k", 1)
		time.Sleep(3 * time.Second)
		x.all[1].push("k", 3, time.Minute)
		time.Sleep(time.Second)
		x.set("k", flow.Limit{Concurrency: 3})
		time.Sleep(time.Second)
		x.all[0].push("k", 3, time.Minute)
		time.Sleep(3 * time.Minute)
		if n := x.flying("k"); n != 3 {
			t.Errorf("%d calls in flight at most, of 3", n)
		}
		if by := x.by("k", 0); by[1] != 3 || by[2] != 3 {
			t.Errorf("calls by node: %v", by)
		}
	})
}

// An owner gives the key away and gets it back while its answer is under way: it has forgotten the place that it granted,
// and is told of it.
func TestAnOwnerComesBackDuringItsAnswer(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		x.set("k", flow.Limit{Concurrency: 1})
		x.give("k", 1)
		time.Sleep(2 * time.Second)
		x.delay.Store(int64(150 * time.Millisecond))
		x.all[1].push("k", 1, time.Minute)
		time.Sleep(160 * time.Millisecond) // the place is granted, and the answer under way
		x.give("k", 3)
		x.give("k", 1)
		time.Sleep(time.Second)
		x.delay.Store(0)
		x.all[0].push("k", 1, time.Minute)
		time.Sleep(5 * time.Minute)
		if n := x.flying("k"); n != 1 {
			t.Errorf("%d calls in flight at most, of 1", n)
		}
		if by := x.by("k", 0); by[1] != 1 || by[2] != 1 {
			t.Errorf("calls by node: %v", by)
		}
	})
}

// A node dies that owns a key, and the node that gets the key asks for many other keys at that time, without a break: the
// calls of the key go on when that node has told of its places.
func TestTakeoverBesideBusyKeys(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		const busy = 60
		x.delay.Store(int64(3 * time.Millisecond))
		x.set("k", flow.Limit{Concurrency: 5})
		for i := range busy {
			x.set(fmt.Sprint("b", i), flow.Limit{Concurrency: 2})
		}
		x.change(func(m *engine.Membership) { // node 3 owns k, node 1 the others
			for s := range m.Shards {
				m.Shards[s] = engine.Holding{Holder: 1, Fence: 1}
			}
			m.Shards[Shard(name("k"))] = engine.Holding{Holder: 3, Fence: 1}
		})
		time.Sleep(2 * time.Minute)
		for i := range busy {
			for j := range 600 {
				took := time.Duration(50+(j*37+i*13)%100) * time.Millisecond
				x.all[0].push(fmt.Sprint("b", i), 1, took)
				x.all[1].push(fmt.Sprint("b", i), 1, took)
			}
		}
		x.all[0].push("k", 1500, 100*time.Millisecond)
		time.Sleep(3 * time.Second)
		x.all[2].kill()
		x.all[2].bury()
		x.give("k", 1)
		dead := time.Since(x.began)
		time.Sleep(15 * time.Second)
		if by := x.by("k", dead+time.Second); by[1] == 0 {
			t.Error("in 15 s the key of the dead node has no call")
		}
	})
}
