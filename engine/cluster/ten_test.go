package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"xtimer/engine"
)

// mess makes a state of the table that nobody planned: former lives of the nodes and of others
// hold some of the shards each, and have given some to nodes that are there or not.
func (w *world) mess(rng *rand.Rand) {
	ctx := context.Background()
	all := rng.Perm(engine.Shards)
	for i := range 5 + rng.IntN(10) {
		n := engine.Node{Name: fmt.Sprint("node-", i), Life: 1 + rng.Uint64N(1<<60), Weight: 1, Journal: [16]byte{byte(rng.IntN(2))}, State: engine.NodeState(1 + rng.IntN(3))}
		if err := w.table.Join(ctx, n, engine.Pulse{}); err != nil {
			w.t.Fatal(err)
		}
		mine := all[:rng.IntN(len(all)+1)/2]
		all = all[len(mine):]
		if err := w.table.Take(ctx, n.Life, engine.SetOf(mine...)); err != nil {
			w.t.Fatal(err)
		}
		seen, err := w.table.Look(ctx, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		var given []engine.Handover
		for _, s := range mine[:rng.IntN(len(mine)+1)] {
			given = append(given, engine.Handover{Shard: s, Fence: seen.Shards[s].Fence, Heir: fmt.Sprint("node-", rng.IntN(20)), Unclean: rng.IntN(2) == 0})
		}
		if err := w.table.Give(ctx, n.Life, given); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Ten nodes that find the table in any state end with an owner of each shard, each node at its
// quota, and nothing moves then. A death and a join move as few shards as possible.
func TestTenNodes(t *testing.T) {
	for seed := range uint64(seeds() / 2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			live(t, seed, 10, func(w *world) {
				w.still()
				w.mess(rand.New(rand.NewPCG(seed, 3)))
				t.Logf("settled after %v", w.settles(15*time.Second))
				time.Sleep(2 * time.Second)
				before := w.owners()
				moved := func(but string) (n int) {
					t.Helper()
					time.Sleep(2 * time.Second)
					for shard, by := range w.owners() {
						if len(by) != 1 || by[0] != before[shard][0] {
							if n++; before[shard][0] != but && len(by) == 1 && by[0] != but {
								t.Errorf("shard %d moved from %v to %v", shard, before[shard], by)
							}
						}
					}
					before = w.owners()
					return n
				}
				if n := moved(""); n > 0 {
					t.Errorf("%d shards moved in peace", n)
				}
				s := w.nodes[seed%10]
				had := w.owned(s)
				s.at(func() { s.down = true })
				s.kill()
				w.settles(4 * time.Second)
				if n := moved(s.name); n != had {
					t.Errorf("a death moved %d shards, the dead node had %d", n, had)
				}
				s.at(func() { s.down = false })
				w.settles(15 * time.Second)
				if n := moved(s.name); n != engine.Shards/10 {
					t.Errorf("a join moved %d shards, want %d", n, engine.Shards/10)
				}
			}, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
		})
	}
}
