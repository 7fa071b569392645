package fair

import (
	"maps"
	"slices"

	"xtimer/engine/flow"
)

// noteBreaker notes whether the breaker of a gate is not closed. mu is held.
func (q *Queue[T]) noteBreaker(g *gate[T]) {
	if g.IsBroken() {
		q.broken[g.name] = struct{}{}
	} else {
		delete(q.broken, g.name)
	}
}

// comesTo notes a breaker that is not closed, for a lane that comes to its gate: while none waited there, holding may
// have left the breaker out. mu is held.
func (q *Queue[T]) comesTo(g *gate[T]) {
	if g.IsBroken() {
		q.broken[g.name] = struct{}{}
	}
}

// holding are the gates whose breaker holds their calls now: its time is not over, a call is being tried, or calls wait
// for that. A breaker whose time is over and for which no call waits is left out: the next call is tried, but may
// never come. mu is held.
func (q *Queue[T]) holding() map[flow.Name]struct{} {
	now := q.now()
	for n := range q.broken {
		switch g := q.gates[n]; {
		case !g.BreakerHolds(now) && g.stands == 0 && g.lanes.empty():
			delete(q.broken, n)
		case g.users == 0:
			q.gate(n, now) // no lane has brought it up to date with the rules
		}
	}
	return q.broken
}

// Broken are the names of the gates whose breaker holds their calls now.
func (q *Queue[T]) Broken() []flow.Name {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.holding()))
}

// OpenBreakers is the number of breakers that hold their calls now.
func (q *Queue[T]) OpenBreakers() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.holding())
}
