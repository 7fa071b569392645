package fair

import (
	"time"

	"xtimer/engine/flow"
)

// quotaPart is the part of the calls in flight that a quota allows which a lane may have while
// its target does not answer: the other targets of the app need the rest.
const quotaPart = 4

// Ask is Ask of flow.Gate. The cause that the gate of a quota gives is the quota.
func (g *gate[T]) Ask(now time.Duration, keeps bool) (by flow.By, at time.Duration) {
	if by, at = g.Gate.Ask(now, keeps); by == flow.ByFlow && g.name.Kind == flow.OfQuota {
		by = flow.ByQuota
	}
	return by, at
}

// fillsQuota reports whether the target of a lane does not answer, and the lane has its part
// of the quota of its app. mu is held.
func (l *Lane[T]) fillsQuota(now time.Duration) bool {
	if l.held == nil || l.calls == 0 {
		return false
	}
	for _, g := range l.held.gates {
		if limit := g.rule.Limit; limit != nil && g.name.Kind == flow.OfQuota {
			return limit.Concurrency > 0 && l.calls*quotaPart >= limit.Concurrency && !l.target.answers(now)
		}
	}
	return false
}

// CallsOf is how many calls of an app are in flight.
func (q *Queue[T]) CallsOf(app string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.apps[app]; a != nil {
		return a.calls
	}
	return 0
}
