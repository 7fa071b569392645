package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// TestAbandon: a life that is abandoned calls no more, and keeps its shards in the table for the
// next life of its node; one that is not frees them when its context ends.
func TestAbandon(t *testing.T) {
	for _, abandoned := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			table, began := memory.NewMembers(memory.NewCold()), time.Now()
			m := New(Config{
				Node: engine.Node{Name: "a", Life: 1, Weight: 1}, Members: table, Times: usual,
				Boot: func() time.Duration { return time.Since(began) }, After: time.After,
				Gain: func([]Gained) {},
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- m.Run(ctx) }()
			time.Sleep(10 * time.Second)
			if !m.Fresh() {
				t.Fatal("the life may not call")
			}
			if abandoned {
				m.Abandon()
				if m.Fresh() {
					t.Error("an abandoned life may call")
				}
				limited, end := context.WithTimeout(t.Context(), time.Minute)
				if err := m.Drain(limited); err != nil {
					t.Errorf("an abandoned life gives its shards away until %v", err)
				}
				end()
			}
			cancel()
			<-ended
			seen, err := table.Look(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, h := range seen.Shards {
				if h.Holder == 1 {
					held++
				}
			}
			if want := map[bool]int{true: engine.Shards}[abandoned]; held != want {
				t.Errorf("abandoned: %v, the table has the life as the holder of %d shards, want %d", abandoned, held, want)
			}
		})
	}
}
