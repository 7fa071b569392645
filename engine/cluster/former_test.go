package cluster

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A node that is started again keeps two shards of its former life, 1. The former life had gained
// shard 6: the journal of the node tells of it. The former life had taken shard 5 from life 9,
// which is over, and had not gained it: the mirror of life 9 is to be read.
func TestFormerLifeOfARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold, began := memory.NewCold(), time.Now()
		table := memory.NewMembers(cold)
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		look := func() engine.Membership {
			seen, err := table.Look(t.Context(), 0)
			ok(err)
			return seen
		}
		gains := func(shard int) {
			ok(cold.Settle(t.Context(), &engine.Settlement{Marks: []engine.Mark{{Shard: shard, Fence: look().Shards[shard].Fence, W: 1}}}))
		}
		ok(table.Join(t.Context(), engine.Node{Name: "a", Life: 1}, engine.Pulse{}))
		ok(table.Join(t.Context(), engine.Node{Name: "b", Life: 9}, engine.Pulse{}))
		ok(table.Take(t.Context(), 9, engine.SetOf(5)))
		gains(5)
		ok(table.Evict(t.Context(), 1, look().Nodes[1].Pulse()))
		ok(table.Take(t.Context(), 1, engine.SetOf(5, 6)))
		gains(6)

		var gained atomic.Pointer[[]Gained]
		m := New(Config{
			Node: engine.Node{Name: "a", Life: 2, Weight: 1}, Members: table, Times: usual,
			Boot: func() time.Duration { return time.Since(began) }, After: time.After,
			Gain: func(list []Gained) { gained.CompareAndSwap(nil, &list) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(5 * time.Second)
		cancel()
		ok(<-ended)
		list := *gained.Load()
		if len(list) != 2 || list[0].Shard != 5 || !list[0].Kept || list[0].Former != 9 || list[1].Shard != 6 || !list[1].Kept || list[1].Former != 0 {
			t.Errorf("gained first: %+v", list)
		}
	})
}
