package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xtimer/engine"
)

// table is what the nodes read.
type table struct {
	nodes  []engine.Node
	shards [engine.Shards]engine.Holding
}

func (c *table) plan() Plan { return MakePlan(c.nodes, &c.shards) }

func (c *table) clone() *table { return &table{slices.Clone(c.nodes), c.shards} }

// name is the name of the node that a plan has for a shard.
func (c *table) name(i int) string {
	if i == Nobody {
		return "nobody"
	}
	return c.nodes[i].Name
}

// join adds serving nodes.
func (c *table) join(names ...string) {
	for _, name := range names {
		c.nodes = append(c.nodes, engine.Node{Name: name, Life: uint64(len(c.nodes) + 1), State: engine.Serving, Weight: 1})
	}
}

// die ends the life of a node and frees its shards.
func (c *table) die(i int) {
	for s := range c.shards {
		if c.shards[s].Holder == c.nodes[i].Life {
			c.shards[s] = engine.Holding{}
		}
	}
	c.nodes[i].Life = 0
}

// step makes the next move that a plan asks of one shard: its holder gives it to its heir,
// or the heir takes it. It reports whether there was one.
func (c *table) step(p *Plan, s int) bool {
	h := &c.shards[s]
	if p[s] == Nobody || h.Holder == c.nodes[p[s]].Life {
		return false
	}
	if to := &c.nodes[p[s]]; h.Holder == 0 {
		*h = engine.Holding{Holder: to.Life}
	} else {
		*h = engine.Holding{Heir: to.Name}
	}
	return true
}

// settle carries plans out until nothing moves, and returns how many shards have another
// holder then.
func (c *table) settle() (moved int) {
	was := c.shards
	for p := c.plan(); ; p = c.plan() {
		moves := 0
		for s := range c.shards {
			for c.step(&p, s) {
				moves++
			}
		}
		if moves == 0 {
			break
		}
	}
	for s := range was {
		if was[s].Holder != c.shards[s].Holder {
			moved++
		}
	}
	return moved
}

func (c *table) counts() []int {
	n := make([]int, len(c.nodes))
	for s := range c.shards {
		for i := range c.nodes {
			if l := c.nodes[i].Life; l != 0 && c.shards[s].Holder == l {
				n[i]++
			}
		}
	}
	return n
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("node-", i))
	}
	return all
}

// The moves of a join and a death are the fewest that even quotas need.
func TestJoinAndDeathMoveLeast(t *testing.T) {
	for n, join := range map[int]int{1: 128, 2: 85, 3: 64, 9: 25, 10: 23, 31: 8} {
		c := &table{}
		c.join(names(n)...)
		c.settle()
		if moved := c.settle(); moved != 0 {
			t.Errorf("%d nodes: %d shards move in a settled cluster", n, moved)
		}
		c.join("newcomer")
		if moved := c.settle(); moved != join {
			t.Errorf("a join to %d nodes moves %d shards, want %d", n, moved, join)
		}
		dead := c.counts()[0]
		before := c.shards
		c.die(0)
		if moved := c.settle(); moved != dead {
			t.Errorf("a death among %d moves %d shards, the dead one had %d", n+1, moved, dead)
		}
		for s := range before {
			if h := before[s].Holder; h != 1 && c.shards[s].Holder != h {
				t.Errorf("%d nodes: shard %d of a living node moved", n, s)
			}
		}
	}
}

// What a node gives is spread over the shards, and not the same shards at each node.
func TestJoinTakesOfAll(t *testing.T) {
	c := &table{}
	c.join(names(3)...)
	c.settle()
	before := c.counts()
	c.join("newcomer")
	c.settle()
	for i, n := range c.counts()[:3] {
		if n != 64 || before[i]-n < 21 {
			t.Errorf("node %d had %d shards, has %d", i, before[i], n)
		}
	}
}

// drawTable is any state: nodes in any state of any weight, shards that are free, held, or
// held by a life that no node has, with heirs.
func drawTable(t *rapid.T) *table {
	c := &table{}
	same := rapid.Bool().Draw(t, "same weights")
	for i, name := range names(rapid.IntRange(1, 12).Draw(t, "nodes")) {
		n := engine.Node{Name: name, Life: uint64(i + 1), State: engine.Serving, Weight: 1}
		if rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
			n.Life = 0
		}
		if rapid.IntRange(0, 3).Draw(t, "serves") == 0 {
			n.State = engine.NodeState(rapid.IntRange(1, 3).Draw(t, "state"))
		}
		if !same {
			n.Weight = rapid.IntRange(0, 100).Draw(t, "weight")
		}
		c.nodes = append(c.nodes, n)
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	kinds := rapid.SampledFrom([]int{1, 2, len(c.nodes), len(c.nodes) + 1}).Draw(t, "holders")
	for s := range c.shards {
		if i := rng.IntN(kinds); i < len(c.nodes) {
			c.shards[s].Holder = c.nodes[i].Life
		} else if rng.IntN(2) == 0 {
			c.shards[s].Heir = c.nodes[rng.IntN(len(c.nodes))].Name
		}
	}
	return c
}

// able is the nodes that may own shards, and the sum of their weights.
func (c *table) able() (is []int, weights int) {
	for _, state := range []engine.NodeState{engine.Serving, engine.Unfit} {
		for i, n := range c.nodes {
			if n.Life != 0 && n.State == state {
				is = append(is, i)
				weights += max(n.Weight, 1)
			}
		}
		if len(is) > 0 {
			break
		}
	}
	return is, weights
}

// From any state each shard is planned for one node that may own it, by quota, with the
// fewest moves. The order of the rows does not matter.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		p := c.plan()
		is, weights := c.able()
		owned, planned := c.counts(), make([]int, len(c.nodes))
		gives := 0
		for s, i := range p {
			holds := slices.IndexFunc(c.nodes, func(n engine.Node) bool { return n.Life != 0 && n.Life == c.shards[s].Holder })
			switch {
			case len(is) == 0 && int(i) != holds:
				t.Fatalf("no node may own shards, and shard %d of %s is planned for %s", s, c.name(holds), c.name(int(i)))
			case len(is) > 0 && !slices.Contains(is, int(i)):
				t.Fatalf("shard %d is planned for %s, which may own none", s, c.name(int(i)))
			case len(is) > 0:
				planned[i]++
			}
			if holds >= 0 && int(i) != holds {
				gives++
			}
		}
		rest, above, needed := engine.Shards, 0, 0
		for _, i := range is {
			base := engine.Shards * max(c.nodes[i].Weight, 1) / weights
			if planned[i] != base && planned[i] != base+1 {
				t.Fatalf("%s has %d shards, its quota is %d or one more", c.name(i), planned[i], base)
			}
			rest -= base
			needed += max(0, owned[i]-base)
			if owned[i] > base {
				above++
			}
			owned[i] = 0
		}
		if len(is) > 0 {
			needed -= min(rest, above)
			for _, n := range owned { // of nodes that may own none
				needed += n
			}
			if gives != needed {
				t.Fatalf("%d shards are given, %d have to be", gives, needed)
			}
		}
		reversed := c.clone()
		slices.Reverse(reversed.nodes)
		for s, i := range reversed.plan() {
			if (i == Nobody) != (p[s] == Nobody) || i != Nobody && reversed.nodes[i].Name != c.nodes[p[s]].Name {
				t.Fatalf("shard %d: the order of the nodes changes the plan", s)
			}
		}
	})
}

// A plan that was carried out in part is the plan.
func TestPlanRemains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		for s := range c.shards { // of a holder that no node knows nobody can take
			if h := c.shards[s].Holder; !slices.ContainsFunc(c.nodes, func(n engine.Node) bool { return n.Life == h }) {
				c.shards[s].Holder = 0
			}
		}
		p := c.plan()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		for range rapid.IntRange(1, 600).Draw(t, "moves") {
			c.step(&p, rng.IntN(engine.Shards))
		}
		for s, i := range c.plan() {
			if i != p[s] {
				t.Fatalf("shard %d was planned for %s, then for %s", s, c.name(int(p[s])), c.name(int(i)))
			}
		}
	})
}

// Nodes that read at different instants move shards by plans that differ. When they read
// the same again, each is at its quota after one more plan.
func TestPlansThatDifferConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		past := []*table{c.clone()}
		for range rapid.IntRange(0, 120).Draw(t, "steps") {
			i := rng.IntN(len(c.nodes))
			switch rng.IntN(40) {
			case 0:
				c.die(i)
			case 1:
				c.nodes[i].Life = rng.Uint64()
			case 2:
				c.nodes[i].State = engine.NodeState(1 + rng.IntN(3))
			}
			saw := past[max(0, len(past)-1-rng.IntN(8))]
			p := saw.plan()
			for s, me := range p {
				h, mine := &c.shards[s], c.nodes[i].Life
				switch {
				case mine == 0 || p[s] == Nobody || rng.IntN(8) > 0:
				case h.Holder == mine && int(me) != i:
					*h = engine.Holding{Heir: c.nodes[me].Name}
				case h.Holder == 0 && int(me) == i:
					*h = engine.Holding{Holder: mine}
				}
			}
			past = append(past, c.clone())
		}
		for s := range c.shards { // lives that ended unseen
			if h := c.shards[s].Holder; !slices.ContainsFunc(c.nodes, func(n engine.Node) bool { return n.Life == h }) {
				c.shards[s] = engine.Holding{}
			}
		}
		p := c.plan()
		c.settle()
		if again := c.plan(); again != p {
			t.Fatal("the plan changed while it was carried out")
		}
		for s, i := range p {
			if i != Nobody && c.shards[s].Holder != c.nodes[i].Life {
				t.Fatalf("shard %d is planned for %s, which does not hold it", s, c.name(int(i)))
			}
		}
	})
}

// large is 100 nodes of which a few have just joined and died.
func large() *table {
	c := &table{}
	c.join(names(95)...)
	c.settle()
	c.join("a", "b", "c", "d", "e")
	for i := range 5 {
		c.die(7 * i)
	}
	for i := range c.nodes {
		c.nodes[i].Weight = 1 + i%3
	}
	return c
}

// A plan is made at each look.
func TestPlanAllocatesLittle(t *testing.T) {
	c := large()
	if n := testing.AllocsPerRun(10, func() { _ = c.plan() }); n > 16 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPlan(b *testing.B) {
	c := large()
	b.ReportAllocs()
	for b.Loop() {
		_ = c.plan()
	}
}
