package fair

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"xtimer/engine/flow"
)

// HoldSum is for how long something held calls.
type HoldSum struct {
	By   flow.By
	Name string // the key, the app or the target
	Took time.Duration
}

// gated is what an item knows of the gates of its lane. Items of other lanes have none.
type gated[T any] struct {
	marks []time.Duration // sums of the lane when the item came
	kept  []*gate[T]      // at which it has a place until Leave
	sums  []HoldSum       // what held it, since it was handed out
	place int             // in the line of its lane; -1: it is not there
}

func newGated[T any](kept ...*gate[T]) *gated[T] { return &gated[T]{kept: kept, place: -1} }

// keeps reports whether the item has a place at a gate that it keeps.
func (it *Item[T]) keeps(g *gate[T]) bool {
	return it.gated != nil && slices.Contains(it.gated.kept, g)
}

// Keeps reports whether the item has places that it keeps until Leave.
func (it *Item[T]) Keeps() bool { return it.holds.Load() }

// Leave gives back the places that an item keeps. The caller wants the item to be handed out no more, and may call Leave
// while another goroutine pushes the item. An item that came before Leave leaves the queue; an item that comes
// later is handed out without a place.
func (q *Queue[T]) Leave(it *Item[T]) {
	if !it.holds.Load() {
		return
	}
	now := q.now()
	q.mu.Lock()
	if it.waits {
		q.remove(it) // first: the places say in which row it lies
		q.place(it.Lane, now)
	}
	for _, g := range it.gated.kept {
		g.Leave()
		q.admit(g, now)
		q.gave(g, 0, now)
	}
	it.gated.kept = nil
	it.holds.Store(false)
	q.handOut(now)
}

// Keep has an item that was not pushed yet keep the places that it had before a start. An item that comes when all places of a
// gate are kept waits for one, so the caller begins with the items that were handed out last.
func (q *Queue[T]) Keep(it *Item[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it.Lane.dead.Load() {
		it.Lane = q.laneLocked(it.Lane.name)
	}
	if it.Lane.held == nil || it.Lane.name.forced {
		return
	}
	if it.gated == nil {
		it.gated = newGated[T]()
	}
	for _, g := range it.Lane.held.gates {
		if g.Gate.Keeps() && !it.keeps(g) && g.Gate.Keep() {
			q.gave(g, 0, q.now())
			it.gated.kept = append(it.gated.kept, g)
			it.holds.Store(true)
		}
	}
}

// Held is what held the item before it was handed out.
func (it *Item[T]) Held() []HoldSum {
	if it.gated == nil {
		return nil
	}
	return it.gated.sums
}

// Again makes the item anew, to wait once more.
func (it *Item[T]) Again(value T, l *Lane[T], ready int64, priority uint8) {
	was := it.gated
	*it = Item[T]{Value: value, Lane: l, Ready: ready, Priority: priority}
	if was != nil && len(was.kept) > 0 {
		it.gated = newGated(was.kept...)
		it.holds.Store(true)
	}
}

// gates are the names of the gates that a lane goes through; target is that of its target.
func (n laneName) gates(target string) []flow.Name {
	names := []flow.Name{{Kind: flow.OfApp, App: flow.EachApp}, {Kind: flow.OfApp, App: n.app}, {Kind: flow.OfQuota, App: n.app}, {Kind: flow.OfTarget, Key: target}}
	for key := range strings.FieldsSeq(n.flow) {
		names = append(names, flow.Name{Kind: flow.OfFlow, App: n.app, Key: key})
	}
	return names
}

// concerns reports whether a rule of a name can be of a lane.
func (n laneName) concerns(r flow.Name, target string) bool {
	switch r.Kind {
	case flow.OfTarget:
		return target == r.Key
	case flow.OfApp:
		return r.App == n.app || r.App == flow.EachApp
	case flow.OfQuota:
		return r.App == n.app
	}
	return n.app == r.App && strings.Contains(n.flow, strings.TrimSuffix(r.Key, "*"))
}

// IsUnder reports whether a rule of a name can be of the lane.
func (l *Lane[T]) IsUnder(n flow.Name) bool { return l.name.concerns(n, l.target.key) }

// sum is the index of what the lane knows of a cause.
func (l *Lane[T]) sum(by flow.By, n flow.Name) int {
	h, name := l.held, n.Text()
	for i := range h.sums {
		if h.sums[i].By == by && h.sums[i].Name == name {
			return i
		}
	}
	h.sums, h.last = append(h.sums, HoldSum{By: by, Name: name}), append(h.last, 0)
	return len(h.sums) - 1
}

// note adds to the sums what has held the lane up to now: the breaker of the gate while it was not closed, also where the
// rate or the places of the gate held the lane before.
func (l *Lane[T]) note(now time.Duration) {
	h := l.held
	if h.at == nil {
		return
	}
	took, all, broken := now-h.since, h.at.Broken(now), time.Duration(0)
	if h.sums[h.cause].By != flow.ByPause {
		broken = all - h.broken
	}
	h.since, h.broken = now, all
	h.add(h.cause, took-broken, now)
	if broken > 0 {
		h.add(l.sum(flow.ByBreaker, h.at.name), broken, now)
	}
}

func (h *held[T]) add(i int, took, now time.Duration) {
	h.sums[i].Took, h.last[i] = h.sums[i].Took+took, now
}

// mark notes what the lane has been held for when an item comes.
func (it *Item[T]) mark(l *Lane[T], now time.Duration) {
	if it.gated == nil {
		it.gated = newGated[T]()
	}
	l.note(now)
	g, h := it.gated, l.held
	g.sums, g.marks = nil, make([]time.Duration, len(h.sums))
	for i := range h.sums {
		g.marks[i] = h.sums[i].Took
	}
}

// since is for how long the lane has been held since an item came.
func (g *gated[T]) since(l *Lane[T], now time.Duration) (sums []HoldSum) {
	l.note(now)
	for i, s := range l.held.sums {
		if i < len(g.marks) {
			s.Took -= g.marks[i]
		}
		if s.Took > 0 {
			sums = append(sums, s)
		}
	}
	return sums
}

// end notes what held the item that is handed out.
func (g *gated[T]) end(l *Lane[T], now time.Duration) { g.sums = g.since(l, now) }

// HoldOf is what holds the lane of an item that waits, and what has held the item since it
// came; by is ByNone if nothing does.
func (q *Queue[T]) HoldOf(it *Item[T]) (by HoldSum, sums []HoldSum) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	l := it.Lane
	if !it.waits || l.held == nil {
		return HoldSum{}, nil
	}
	g := it.gated
	if g == nil {
		g = &gated[T]{}
	}
	if l.held.at != nil {
		by = l.held.sums[l.held.cause]
	}
	return by, g.since(l, now)
}

// Causes says what has held a lane for some time up to now: pauses and breakers for as long as they have, so far as the lane
// knows, and for the rest what holds the lane, or has held it for longest.
func (q *Queue[T]) Causes(l *Lane[T], took time.Duration) (sums []HoldSum) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	rest := l.cause(now)
	if h := l.held; h != nil {
		l.note(now)
		from := now - took
		for i, s := range h.sums {
			if s.By != flow.ByPause && s.By != flow.ByBreaker || s.By == rest.By && s.Name == rest.Name {
				continue
			}
			if s.Took = min(s.Took, h.last[i]-from, took); s.Took > 0 {
				sums, took = append(sums, s), took-s.Took
			}
		}
	}
	if rest.Took = took; took > 0 {
		sums = append(sums, rest)
	}
	return sums
}

// Cause is what holds a lane, or has held it for longest.
func (q *Queue[T]) Cause(l *Lane[T]) HoldSum {
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.cause(q.now())
}

// cause: see Cause. mu is held.
func (l *Lane[T]) cause(now time.Duration) (s HoldSum) {
	h := l.held
	switch {
	case h == nil || len(h.gates) == 0 && len(h.sums) == 0:
		return HoldSum{By: flow.ByFlow, Name: cmp.Or(strings.Split(l.name.flow, " ")[0], l.target.key)}
	case h.at != nil:
		return h.sums[h.cause]
	case len(h.sums) > 0:
		return slices.MaxFunc(h.sums, func(a, b HoldSum) int { return cmp.Compare(a.Took, b.Took) })
	}
	s = HoldSum{By: flow.ByFlow, Name: h.gates[0].name.Text()}
	for _, g := range h.gates {
		if by, _ := g.Ask(now, false); by != flow.ByNone {
			return HoldSum{By: by, Name: g.name.Text()}
		}
	}
	return s
}

// PausedSince is when the first pause began (Unix ms) that holds a lane; 0: none does, or it is not
// known.
func (q *Queue[T]) PausedSince(l *Lane[T]) (since int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.held == nil {
		return 0
	}
	now := q.now()
	for _, g := range l.held.gates {
		if r := &g.rule; r.Paused > now && r.PausedSince != 0 && (since == 0 || r.PausedSince < since) {
			since = r.PausedSince
		}
	}
	return since
}

// IsGated reports whether the lane goes through gates, or may. It may be asked without a lock.
func (l *Lane[T]) IsGated() bool { return l.limited.Load() }

// IsPaused reports whether a pause holds the calls of a lane. The pause may have begun after an item was handed out.
func (q *Queue[T]) IsPaused(l *Lane[T]) bool {
	if !l.IsGated() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.isPaused(q.now())
}

// isPaused: see IsPaused. mu is held.
func (l *Lane[T]) isPaused(now time.Duration) bool {
	return l.held != nil && slices.ContainsFunc(l.held.gates, func(g *gate[T]) bool { return g.IsPaused(now) })
}

// HeldItems is how many items wait in lanes that are held, by flow.By.
func (q *Queue[T]) HeldItems() (n [flow.Causes]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// GateStats is how the gate of a name stands.
type GateStats struct {
	flow.State
	Waiting int // items in lanes that it holds
}

// Gate describes the gate of a name; ok is false if no lane goes through one.
func (q *Queue[T]) Gate(n flow.Name) (s GateStats, ok bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.gates[n]
	if g == nil {
		return s, false
	}
	s.State = g.State(now)
	for i := range g.lanes.entries {
		s.Waiting += g.lanes.entries[i].member.waiting
	}
	return s, true
}

// HasRules reports whether any rule is in force.
func (q *Queue[T]) HasRules() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.rules.IsEmpty()
}

// KeepsPlaces reports whether items of a lane keep places until Leave.
func (q *Queue[T]) KeepsPlaces(l *Lane[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.held != nil && slices.ContainsFunc(l.held.gates, func(g *gate[T]) bool { return g.Gate.Keeps() })
}
