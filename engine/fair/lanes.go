package fair

import (
	"maps"
	"slices"
	"strings"
	"time"

	"xtimer/engine/flow"
)

// manyLanes is how many may be remembered before those that are empty are forgotten.
const manyLanes = 1 << 14

// Lane finds or makes the lane of an app, a target and flow keys (engine.Flow). An item may keep it: when
// the lane is forgotten meanwhile, Push finds another.
func (q *Queue[T]) Lane(app, to, flow string) *Lane[T] { return q.BatchLane(app, to, flow, 0) }

// BatchLane is Lane for items that may share a call with others of their class; 0: with none.
func (q *Queue[T]) BatchLane(app, to, flow string, class uint64) *Lane[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.laneLocked(laneName{app: app, target: to, flow: flow, class: class})
}

// BacklogLane is BatchLane for items that a former process left. The lane has turns of its own, and
// leaves room for items that come on time: see leavesRoom.
func (q *Queue[T]) BacklogLane(app, to, flow string, class uint64) *Lane[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.laneLocked(laneName{app: app, target: to, flow: flow, class: class, backlog: true})
}

// ForcedLane is BatchLane for items that no limit of a target or of a flow key holds, and that
// count at none.
func (q *Queue[T]) ForcedLane(app, to, flow string, class uint64) *Lane[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.laneLocked(laneName{app: app, target: to, flow: flow, class: class, forced: true})
}

func (q *Queue[T]) laneLocked(n laneName) *Lane[T] {
	if l := q.lanes[n]; l != nil {
		return l
	}
	if len(q.lanes) >= max(q.pruneAt, manyLanes) {
		q.prune()
	}
	// Names may be views of a whole record, which a lane must not keep in memory.
	n.app, n.target, n.flow = strings.Clone(n.app), strings.Clone(n.target), strings.Clone(n.flow)
	a := q.apps[n.app]
	if a == nil {
		a = newApp[T](n.app)
		q.apps[n.app] = a
	}
	t := q.targets[n.target]
	if t == nil {
		t = &target[T]{name: n.target, key: flow.TargetOf(n.target), limit: limit{most: min(startLimit, q.perTarget)}, limited: -1, onTime: q.now() - time.Second}
		q.targets[n.target] = t
	}
	l := &Lane[T]{name: n, app: a, target: t, place: -1}
	a.lanes++
	t.lanes = append(t.lanes, l)
	q.lanes[n] = l
	q.listed = append(q.listed, l)
	q.resolve(l, q.now())
	return l
}

// Living returns a lane, or the lane that stands in the place of a forgotten lane. A caller that keeps a lane in
// which nothing waits calls Living before each use.
func (q *Queue[T]) Living(l *Lane[T]) *Lane[T] {
	if !l.dead.Load() {
		return l
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.living(l)
}

// living is Living. mu is held.
func (q *Queue[T]) living(l *Lane[T]) *Lane[T] {
	if l.dead.Load() {
		return q.laneLocked(l.name)
	}
	return l
}

// prune forgets lanes that are empty and have no call in flight, and apps and targets
// without lanes. mu is held.
func (q *Queue[T]) prune() {
	for n, l := range q.lanes {
		if l.waiting > 0 || l.calls > 0 || l.parked || !l.outside.empty() {
			continue
		}
		delete(q.lanes, n)
		l.dead.Store(true)
		l.limited.Store(true) // nobody knows: another lane may stand in its place
		if l.held != nil {
			for _, g := range l.held.gates {
				g.leaves(l)
			}
			l.held = nil
		}
		if l.app.lanes--; l.app.lanes == 0 {
			delete(q.apps, n.app)
		}
	}
	for name, t := range q.targets {
		isDead := func(l *Lane[T]) bool { return l.dead.Load() }
		t.lanes, t.starting = slices.DeleteFunc(t.lanes, isDead), slices.DeleteFunc(t.starting, isDead)
		if len(t.lanes) == 0 {
			delete(q.targets, name)
			t.parked, t.parkedLast = nil, nil
			q.list(t)
		}
	}
	q.pruneGates(q.now())
	q.listed = slices.AppendSeq(make([]*Lane[T], 0, len(q.lanes)), maps.Values(q.lanes))
	q.pruneAt = 2 * len(q.lanes)
}

// pruneGates forgets the gates that no lane names and that know nothing. mu is held.
func (q *Queue[T]) pruneGates(now time.Duration) {
	for n, g := range q.gates {
		if g.users > 0 {
			continue
		}
		if !g.IsIdle(now) {
			q.gate(n, now) // no lane has brought it up to date with the rules
		}
		if g.IsIdle(now) && g.isTold() {
			q.wakes.drop(&g.wake)
			q.unshare(g)
			delete(q.gates, n)
			delete(q.broken, n)
		}
	}
}
