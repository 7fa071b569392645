package batch

import (
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/resident"
)

// gate is the gate of a call of many tasks: each of them passes its own.
type gate struct {
	b        *engine.BatchCall
	memory   *resident.Memory
	attempts []*resident.Attempt
	leaves   fair.Departure[*resident.Task]
}

// Wait implements engine.Gate. The call counts once.
func (g *gate) Wait() (waited time.Duration, ok bool) {
	if waited, ok = g.attempts[0].Depart(&g.leaves); !ok {
		g.memory.PutBack(g.attempts...)
	}
	if waited > 0 {
		g.memory.PutBackStale(g.attempts...)
	}
	return waited, ok
}

// Stay implements engine.Gate.
func (g *gate) Stay() { g.leaves.Stay() }

// maxEnter is how long the members may take to pass their gates: what the first of them was
// asked then still holds.
const maxEnter = 100 * time.Millisecond

// Enter takes those out of the call that are not wanted any more, and reports whether any
// is left.
func (g *gate) Enter() bool {
	for {
		start := time.Now()
		g.b.Calls = slices.DeleteFunc(g.b.Calls, func(c *engine.Call) bool { return !c.Gate.Enter() })
		if time.Since(start) < maxEnter || len(g.b.Calls) == 0 {
			return len(g.b.Calls) > 0
		}
		g.leave(false)
	}
}

// Leave implements engine.Gate.
func (g *gate) Leave(sent bool) {
	g.leaves.Leave(sent)
	g.leave(sent)
}

func (g *gate) leave(sent bool) {
	for _, c := range g.b.Calls {
		c.Gate.Leave(sent)
	}
}
