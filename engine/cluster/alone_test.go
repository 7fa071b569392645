package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A life that cannot hand over keeps its shards beside a node that has none, its lease is
// fresh whenever a beat was acknowledged, and it can drain.
func TestLifeWithoutCede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, began := memory.NewMembers(memory.NewCold()), time.Now()
		var owned, beats [2]atomic.Int64
		var members [2]*Member
		var ended [2]chan error
		ctx, cancel := context.WithCancel(t.Context())
		for i := range members {
			members[i] = New(Config{
				Node: engine.Node{Name: fmt.Sprint("node-", i), Life: uint64(10 + i)}, Members: table, Times: usual,
				Boot: func() time.Duration { return time.Since(began) }, After: time.After,
				Acknowledged: func() {
					if beats[i].Add(1); !members[i].Fresh() {
						t.Error("the lease is not fresh")
					}
				},
				Gain: func(g []Gained) { owned[i].Add(int64(len(g))) },
			})
			ended[i] = make(chan error, 1)
			go func() { ended[i] <- members[i].Run(ctx) }()
			time.Sleep(5 * time.Second)
		}
		if a, b := owned[0].Load(), owned[1].Load(); a != engine.Shards || b != 0 {
			t.Errorf("the nodes own %d and %d shards", a, b)
		}
		if n := beats[0].Load(); n < 24 || n > 26 {
			t.Errorf("%d beats in 10 s", n)
		}
		if err := members[0].Drain(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		for i := range members {
			if err := <-ended[i]; err != nil || members[i].Fresh() {
				t.Errorf("node %d: %v, fresh %v", i, err, members[i].Fresh())
			}
		}
	})
}

// TestVersionsApart: a life joins lives whose version is one apart, and refuses others with
// their name. A life that is over does not matter.
func TestVersionsApart(t *testing.T) {
	for speaks, older := range map[int]string{1: "that node", 2: "", 3: "", 4: "", 5: "this program"} {
		synctest.Test(t, func(t *testing.T) {
			table, began := memory.NewMembers(memory.NewCold()), time.Now()
			for i, name := range []string{"gone", "other"} {
				n := engine.Node{Name: name, Life: uint64(9 + i), State: engine.Serving, Speaks: speaks + 9 - 9*i, Address: "10.0.0.2:8080"}
				if err := table.Join(t.Context(), n, engine.Pulse{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := table.Leave(t.Context(), 9); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := New(Config{
				Node: engine.Node{Name: "own", Life: 1, Speaks: 3}, Members: table, Times: usual,
				Boot: func() time.Duration { return time.Since(began) }, After: time.After, Gain: func([]Gained) {},
			}).Run(ctx)
			if older == "" && err != nil || older != "" && (err == nil || !strings.HasSuffix(err.Error(), "upgrade "+older+" first")) {
				t.Errorf("beside version %d: %v", speaks, err)
			}
		})
	}
}
