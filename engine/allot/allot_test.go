package allot

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// The rate of a key holds for the calls of all nodes together, and none of them starves.
func TestTheRateIsThatOfAllNodes(t *testing.T) {
	for _, l := range []flow.Limit{
		{Rate: 10, Per: time.Second, Burst: 1},
		{Rate: 10, Per: time.Second, Burst: 10},
		{Rate: 300, Per: time.Second, Burst: 1},
		{Rate: 1, Per: 10 * time.Second, Burst: 1},
		{Rate: 30, Per: time.Minute, Burst: 5, Concurrency: 2},
	} {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			withNodes(t, 3, func(t *testing.T, x *among) {
				x.delay.Store(int64(time.Millisecond))
				x.set("k", l)
				x.give("k", 2)
				for _, n := range x.all {
					n.push("k", 20*l.Rate, time.Millisecond)
				}
				time.Sleep(11 * l.Per)
				if n := x.most("k", l.Per); n > l.Rate {
					t.Errorf("%d calls in a window of %v, of %d", n, l.Per, l.Rate)
				}
				by := x.by("k", 0)
				if sum := by[1] + by[2] + by[3]; float64(sum) < 0.8*float64(l.Rate)*10 || min(by[1], by[2], by[3]) < sum/6 {
					t.Errorf("calls by node: %v, of %d in the time", by, 10*l.Rate)
				}
			})
		})
	}
}

// The owner dies, and another node takes the key over: the rate holds over the change.
func TestANewOwnerWaits(t *testing.T) {
	for _, l := range []flow.Limit{{Rate: 10, Per: time.Second, Burst: 1}, {Rate: 10, Per: time.Second, Burst: 10}, {Rate: 200, Per: time.Second, Burst: 1}} {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			withNodes(t, 3, func(t *testing.T, x *among) {
				x.set("k", l)
				x.give("k", 1)
				for _, n := range x.all {
					n.push("k", 40*l.Rate, 0)
				}
				time.Sleep(5 * time.Second)
				for life := range uint64(4) { // a rolling restart moves it again and again
					x.give("k", 1+(life+1)%3)
					time.Sleep(3 * time.Second)
				}
				x.all[1].kill()
				time.Sleep(2 * time.Second)
				x.all[1].bury()
				x.give("k", 3)
				since := time.Since(x.began)
				time.Sleep(6 * time.Second)
				if n := x.most("k", l.Per); n > l.Rate {
					t.Errorf("%d calls in a window of %v, of %d", n, l.Per, l.Rate)
				}
				if by := x.by("k", since); by[1] < l.Rate || by[3] < l.Rate {
					t.Errorf("calls after the takeover: %v", by)
				}
			})
		})
	}
}

// A node that does not reach the owner makes no calls of the key, and the others do. After the
// cut it has its part again.
func TestACutLink(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		l := flow.Limit{Rate: 10, Per: time.Second, Burst: 1, Concurrency: 5}
		x.set("k", l)
		x.give("k", 1)
		for _, n := range x.all {
			n.push("k", 300, 10*time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		x.cut.Store("1", true)
		time.Sleep(2 * time.Second)
		since := time.Since(x.began)
		time.Sleep(5 * time.Second)
		if by := x.by("k", since); by[1] < 30 || by[2]+by[3] > 0 {
			t.Errorf("calls in the cut: %v", by)
		}
		x.cut.Clear()
		since = time.Since(x.began)
		time.Sleep(5 * time.Second)
		if by := x.by("k", since); min(by[1], by[2], by[3]) < 5 {
			t.Errorf("calls after the cut: %v", by)
		}
		if n := x.most("k", l.Per); n > l.Rate {
			t.Errorf("%d calls in a window", n)
		}
	})
}

// Places are those of all nodes together, across a change of the owner and the death of a node.
func TestPlacesAreThoseOfAllNodes(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		x.delay.Store(int64(time.Millisecond))
		x.set("k", flow.Limit{Concurrency: 4})
		x.give("k", 2)
		for _, n := range x.all {
			n.push("k", 2000, 30*time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		by := x.by("k", 0)
		if min(by[1], by[2], by[3]) < 100 {
			t.Errorf("calls by node: %v", by)
		}
		x.give("k", 3)
		time.Sleep(5 * time.Second)
		for s := (fair.GateStats{}); s.InFlight == 0; s, _ = x.all[0].queue.Gate(name("k")) {
			time.Sleep(time.Millisecond)
		}
		since := time.Since(x.began)
		x.all[0].kill()
		x.mu.Lock()
		for i := range x.calls {
			x.calls[i].counts = x.calls[i].by != 1
		}
		x.mu.Unlock()
		time.Sleep(2 * time.Second)
		x.all[0].bury()
		time.Sleep(10 * time.Second)
		if n := x.flying("k"); n > 4 {
			t.Errorf("%d calls in flight, of 4", n)
		}
		if by := x.by("k", since+8*time.Second); by[2]+by[3] < 300 {
			t.Errorf("calls when the places of the dead node are free: %v", by)
		}
		o := x.all[2].asker.owner
		o.mu.Lock()
		defer o.mu.Unlock()
		if d := o.books[name("k")].takers[1]; d != nil {
			t.Errorf("the dead node has %d places", d.holds)
		}
	})
}

// A key that nobody uses costs nothing: its places are given back, and nobody asks.
func TestAnIdleKeyIsSilent(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		x.set("k", flow.Limit{Rate: 100, Per: time.Second, Burst: 1, Concurrency: 10})
		x.give("k", 1)
		x.all[0].push("k", 50, 10*time.Millisecond)
		x.all[1].push("k", 50, 10*time.Millisecond)
		time.Sleep(5 * time.Second)
		if by := x.by("k", 0); by[1] != 50 || by[2] != 50 {
			t.Fatalf("calls by node: %v", by)
		}
		x.all[1].asker.mu.Lock()
		asked := x.all[1].asker.number
		x.all[1].asker.mu.Unlock()
		time.Sleep(10 * time.Second)
		x.all[1].asker.mu.Lock()
		defer x.all[1].asker.mu.Unlock()
		if n := x.all[1].asker.number; n != asked {
			t.Errorf("%d asks of a node that wants nothing", n-asked)
		}
		x.all[0].asker.owner.mu.Lock()
		defer x.all[0].asker.owner.mu.Unlock()
		if b := x.all[0].asker.owner.books[name("k")]; !b.isIdle(time.Hour) {
			t.Errorf("the owner knows of places: %+v", b)
		}
	})
}

// A new owner grants no place before each node has told how many it has.
func TestANewOwnerKnowsThePlaces(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		x.set("k", flow.Limit{Concurrency: 4})
		x.give("k", 2)
		x.all[0].push("k", 4, 5*time.Second)
		time.Sleep(time.Second)
		for _, n := range x.all {
			n.push("k", 10, time.Second)
		}
		x.delay.Store(int64(20 * time.Millisecond))
		x.cut.Store("3", true)
		x.give("k", 3)
		time.Sleep(1500 * time.Millisecond)
		x.cut.Clear()
		time.Sleep(15 * time.Second)
		if n := x.flying("k"); n > 4 {
			t.Errorf("%d calls in flight, of 4", n)
		}
		if by := x.by("k", 0); by[1] != 14 || by[2] != 10 || by[3] != 10 {
			t.Errorf("calls by node: %v", by)
		}
	})
}

// A task that keeps its place until its end is called again within the rate, also while all
// places are taken.
func TestATaskIsCalledAgainInItsPlace(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		x.delay.Store(int64(time.Millisecond))
		l := flow.Limit{Rate: 10, Per: time.Second, Burst: 1, Concurrency: 2, HoldTask: true}
		x.set("k", l)
		x.give("k", 2)
		for _, n := range x.all {
			for range 10 {
				n.add(&item{key: "k", took: 10 * time.Millisecond, again: 2, after: 100 * time.Millisecond})
			}
		}
		time.Sleep(30 * time.Second)
		if by := x.by("k", 0); by[1] != 30 || by[2] != 30 {
			t.Errorf("calls by node: %v, of 30 each", by)
		}
		if n := x.most("k", l.Per); n > l.Rate {
			t.Errorf("%d calls in a window", n)
		}
	})
}

// A call needs two keys, each once a minute: the owner of one does not count a call that had to
// wait for the other.
func TestACallOfTwoSlowKeys(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		x.delay.Store(int64(time.Millisecond))
		l := flow.Limit{Rate: 1, Per: time.Minute, Burst: 1}
		x.set("a", l)
		x.set("b", l)
		x.give("a", 1)
		x.give("b", 2)
		x.all[0].push("a", 1, 0)
		time.Sleep(90 * time.Second)
		x.all[0].push("b", 1, 0)
		time.Sleep(10 * time.Second)
		x.all[0].push("a b", 4, 0)
		time.Sleep(5 * time.Minute)
		if by := x.by("a b", 0); by[1] != 4 {
			t.Errorf("%d calls in 5 minutes, of 4", by[1])
		}
		if n := x.most("a b", time.Minute); n > 1 {
			t.Errorf("%d calls in a minute", n)
		}
	})
}

// While a node of an earlier version runs, each node keeps the limit for itself. After that
// they share it.
func TestAnEarlierVersion(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		l := flow.Limit{Rate: 10, Per: time.Second, Burst: 1, Concurrency: 5}
		x.change(func(m *engine.Membership) {
			m.Nodes = append(m.Nodes, engine.Node{Name: "old", Life: 9, Speaks: speaks - 1})
		})
		time.Sleep(time.Second)
		x.set("k", l)
		x.give("k", 9)
		for _, n := range x.all {
			n.push("k", 200, 10*time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if by := x.by("k", 0); min(by[1], by[2]) < 40 || max(by[1], by[2]) > 51 {
			t.Errorf("calls beside an earlier version: %v", by)
		}
		x.change(func(m *engine.Membership) { m.Nodes = m.Nodes[:2] })
		x.give("k", 1)
		time.Sleep(3 * time.Second)
		since := time.Since(x.began)
		time.Sleep(5 * time.Second)
		if by := x.by("k", since); min(by[1], by[2]) < 10 || by[1]+by[2] > 51 {
			t.Errorf("calls of nodes that share: %v", by)
		}
	})
}

// Whatever happens to nodes, owners and links, no window has more calls than the rate, and in
// the end no node starves.
func TestTheRateHoldsWhateverHappens(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			rate := []int{1, 3, 10, 30, 100}[rng.IntN(5)]
			l := flow.Limit{Rate: rate, Per: time.Duration(1+rng.IntN(3)) * time.Second, Burst: 1 + rng.IntN(2)*rng.IntN(rate), Concurrency: rng.IntN(2) * 1000}
			withNodes(t, 4, func(t *testing.T, x *among) {
				x.delay.Store(rng.Int64N(20e6))
				x.set("k", l)
				x.give("k", 1)
				for range 60 {
					n := x.all[rng.IntN(4)]
					switch rng.IntN(5) {
					case 0, 1:
						n.push("k", 1+rng.IntN(2*rate), time.Duration(rng.IntN(50))*time.Millisecond)
					case 2:
						x.give("k", n.life)
					case 3:
						x.cut.Store(fmt.Sprint(n.life), true)
					case 4:
						x.cut.Clear()
					}
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
				}
				x.cut.Clear()
				for _, n := range x.all {
					n.push("k", 20*rate, 0)
				}
				since := time.Since(x.began)
				time.Sleep(16 * l.Per)
				if n := x.most("k", l.Per); n > l.Rate {
					t.Errorf("%d calls in a window of %v, of %d", n, l.Per, l.Rate)
				}
				if by := x.by("k", since); min(by[1], by[2], by[3], by[4]) == 0 {
					t.Errorf("calls by node at last: %v", by)
				}
			})
		})
	}
}

// The limit of a key is raised while tasks wait for calls that the former limit allows much later: the new limit is in
// force at once, or when the node that hears of it last has.
func TestRaisedLimit(t *testing.T) {
	minutely, daily := flow.Limit{Rate: 1, Per: time.Minute, Burst: 1}, flow.Limit{Rate: 1, Per: 24 * time.Hour, Burst: 1}
	fast := flow.Limit{Rate: 10, Per: time.Second, Burst: 1}
	for _, l := range [][2]flow.Limit{{minutely, fast}, {daily, {Rate: 3600, Per: time.Hour, Burst: 1}}, {daily, fast}, {minutely, {Concurrency: 1}}} {
		for _, first := range []int{0, 1} { // of the nodes to hear of it
			withNodes(t, 2, func(t *testing.T, x *among) {
				x.set("k", l[0])
				x.give("k", 1)
				time.Sleep(3 * time.Minute)
				x.all[0].push("k", 5, 0)
				x.all[1].push("k", 5, 0)
				time.Sleep(5 * time.Second)
				x.all[first].queue.SetRule(name("k"), &flow.Rule{Limit: &l[1]})
				time.Sleep(900 * time.Millisecond)
				x.all[1-first].queue.SetRule(name("k"), &flow.Rule{Limit: &l[1]})
				time.Sleep(20 * time.Second)
				if by := x.by("k", 0); by[1]+by[2] < 10 {
					t.Errorf("%+v, then %+v: %v calls of 10", l[0], l[1], by)
				}
			})
		}
	}
}
