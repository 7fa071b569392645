package fair

import (
	"slices"
	"time"

	"xtimer/engine/flow"
)

// SetRule puts a rule into force for a name, or a pattern; nil removes it. The rule is in
// force for all lanes when SetRule returns. The rules of one name are put one after the other.
func (q *Queue[T]) SetRule(n flow.Name, r *flow.Rule) {
	q.mu.Lock()
	isNew := q.rules.Set(n, r)
	all := q.listed // never changed but at its end, so that others have the queue meanwhile; later lanes have the rule
	q.mu.Unlock()
	if !isNew {
		return
	}
	var lanes []*Lane[T]
	for _, l := range all {
		if l.IsUnder(n) {
			lanes = append(lanes, l)
		}
	}
	for some := range slices.Chunk(lanes, atOnce) {
		now := q.now()
		q.mu.Lock()
		for _, l := range some {
			if !l.dead.Load() {
				q.resolve(l, now)
				q.place(l, now)
			}
		}
		q.handOut(now)
	}
}

// resolve finds the gates of a lane. mu is held.
func (q *Queue[T]) resolve(l *Lane[T], now time.Duration) {
	if q.rules.IsEmpty() && l.held == nil {
		return
	}
	var gates []*gate[T]
	for _, n := range l.name.gates(l.target.key) {
		if g := q.gate(n, now); g != nil {
			gates = append(gates, g)
		}
	}
	var former []*gate[T]
	if l.held != nil {
		former = l.held.gates
	}
	if slices.Equal(gates, former) {
		q.reorder(l)
		return
	}
	q.unhold(l, now)
	q.unmark(l, now)
	q.standsAt(l, -1)
	for _, g := range former {
		g.leaves(l)
	}
	for _, g := range gates {
		g.joins(l)
	}
	switch {
	case len(gates) == 0 && l.waiting == 0:
		l.held = nil // else its items are to be told what has held them
	case l.held == nil:
		l.held = &held[T]{gates: gates, place: -1}
	default:
		l.held.gates = gates
	}
	if l.held != nil {
		l.held.marks, l.held.front = slices.Repeat([]int{-1}, len(gates)), slices.Repeat([]int{-1}, len(gates))
	}
	q.mark(l, now)
	q.reorder(l)
	l.limited.Store(len(gates) > 0)
	q.standsAt(l, 1)
	for _, g := range former {
		q.admit(g, now)
	}
}

// gate finds or makes the gate of a name, and brings it up to date with the rules; nil:
// nothing is said of the name.
func (q *Queue[T]) gate(n flow.Name, now time.Duration) *gate[T] {
	g, rule := q.gates[n], q.rules.Match(n)
	if g == nil {
		if rule == (flow.Rule{}) {
			return nil
		}
		g = &gate[T]{name: n, wake: -1}
		q.gates[n] = g
	}
	if rule == g.rule {
		if rule == (flow.Rule{}) {
			return nil
		}
		return g
	}
	if rule.Limit != g.rule.Limit {
		if g.Set(rule.Limit, now); rule.Started {
			g.Started()
		}
		q.noteBreaker(g)
		q.share(g, now)
	}
	g.Pause(rule.Paused)
	if g.Cool(rule.Cooldown); rule.Opened > g.rule.Opened {
		q.open(g, now)
	}
	g.rule = rule
	q.admit(g, now)
	if rule == (flow.Rule{}) {
		return nil
	}
	return g
}
