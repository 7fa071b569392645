package fair

import (
	"time"

	"xtimer/engine/flow"
)

// gate is a key with a limit or a pause, and the lanes that are held by it:
//
//	place → passes ── every gate of the lane admits a call ──► stands for a place in its pool
//	              └── one does not ──► held in its heap, by rank ── admit: its time has come, ──► place
//	                                                              a call has ended, a rule has changed
//
// One lane of a gate with a limit at a time is let out, the one whose item goes next. It takes what the
// gate admits, and then lets out the next. A lane that stands may find no place: its app, or silent targets, have all that
// they may have. Then the gate lets out the next lane as well. All is guarded by the mu of the queue.
type gate[T any] struct {
	flow.Gate
	name   flow.Name
	rule   flow.Rule       // in force
	users  int             // lanes that name it
	stands int             // of them, that stand for a place
	round  int64           // Queue.round when one of those began to stand, or got a place, last
	front  heap[*Lane[T]]  // of those, where the gate keeps order, by the turn of their next item
	lanes  heap[*Lane[T]]  // of them, that it holds
	marks  heap[*Lane[T]]  // of them, by their first marks
	ready  []*Departure[T] // calls that wait for their departures, in the order in which they came
	wake   int             // its place in Queue.wakes; -1: not there
	goesOn bool            // look lets out more lanes, and until then nobody does
	asks   *asks           // of the owner of the key; nil: its calls are not granted by one
	// members are the lanes that name a flow key.
	members map[*Lane[T]]struct{}
}

// pass is a call that went through a gate.
type pass[T any] struct {
	flow.Pass
	gate  *gate[T]
	keeps bool // the place is the item's until Leave
}

// held is what a lane knows of its gates; nil: it has none, and pays nothing for them.
type held[T any] struct {
	gates []*gate[T]
	at    *gate[T] // holds the lane; nil: none does
	place int      // in at.lanes
	since time.Duration
	cause int // of sums, which grows since then
	// broken is for how long the breaker of at was not closed, up to since.
	broken time.Duration
	sums   []HoldSum
	last   []time.Duration // for each of sums, when it held the lane last

	front  []int // for each of gates, its place in the front there
	marks  []int // likewise, in the marks
	marked bool  // it has one
}

// atOnce is how many lanes change their gates, or are let out of one, while mu is held: some
// 0.5 ms. A pause of all apps may hold 100,000.
const atOnce = 256

// Now is the time of rules.
func (q *Queue[T]) Now() time.Duration { return q.now() }

// passes reports whether every gate of a lane with items admits the next one; else one
// of them holds the lane. mu is held.
func (q *Queue[T]) passes(l *Lane[T], now time.Duration) bool {
	g, by := q.refused(l, now)
	if g == nil {
		q.unhold(l, now)
		return true
	}
	h := l.held
	if h.at != g || h.sums[h.cause].By != by {
		q.unhold(l, now)
		h.at, h.since, h.broken, h.cause = g, now, g.Broken(now), l.sum(by, g.name)
		q.held[by] += l.waiting
		q.mark(l, now)
		q.comesTo(g)
	}
	first := key{0, l.rank}
	switch {
	case g.keepsOrder() && l.counts(g):
		first.order = l.turn(g)
	case g.name.Kind == flow.OfQuota:
		first.cost = l.calls // the lanes of an app share evenly
	case l.name.forced:
		first.cost = -1 // when the pause ends, no limit keeps those behind it waiting
	}
	g.lanes.put(l, &h.place, first)
	q.expect(g, now)
	q.want(g, now)
	return false
}

// refused is the gate that does not admit the next item of a lane, nil for none, and why:
// of several, the one that comes first in the order of causes.
func (q *Queue[T]) refused(l *Lane[T], now time.Duration) (at *gate[T], by flow.By) {
	for _, g := range l.held.gates {
		if b, _ := q.ask(g, l, now); b != flow.ByNone && (b == flow.ByPause || l.counts(g)) && (at == nil || b < by) {
			at, by = g, b
		}
	}
	return at, by
}

// unhold takes a lane out of the gate that holds it. mu is held.
func (q *Queue[T]) unhold(l *Lane[T], now time.Duration) {
	h := l.held
	if h == nil || h.at == nil {
		return
	}
	h.at.lanes.drop(&h.place)
	l.note(now)
	q.held[h.sums[h.cause].By] -= l.waiting
	h.at = nil
	q.mark(l, now)
}

// standsAt counts a lane that stands for a place at its gates, or does not any more. mu is
// held.
func (q *Queue[T]) standsAt(l *Lane[T], n int) {
	if l.held != nil && l.place >= 0 {
		for _, g := range l.held.gates {
			if l.counts(g) {
				g.stands += n
			}
		}
		q.front(l, n > 0)
	}
}

// stoodAt counts at its gates a lane that has begun to stand for a place (n is 1), or has ceased to (-1): then it lets
// out others. mu is held.
func (q *Queue[T]) stoodAt(l *Lane[T], n int, now time.Duration) {
	for _, g := range l.held.gates {
		if !l.counts(g) {
			continue // it keeps nobody waiting
		}
		if g.stands += n; n < 0 {
			q.admit(g, now)
			continue
		}
		g.round = q.round
		q.comesTo(g)
		if !g.lanes.empty() {
			q.expect(g, now)
		}
	}
}

// admit lets lanes out of a gate, as it admits calls: all of them out of one that limits
// nothing any more, for one whose target has no place would have the others wait. If these are
// many, look lets out the rest. mu is held.
func (q *Queue[T]) admit(g *gate[T], now time.Duration) {
	if g.goesOn && g.IsOpen(now) {
		return
	}
	stuck := q.isStuck(g)
	for n := 0; !g.lanes.empty() && (g.stands == 0 || g.IsOpen(now) || stuck && n < besides); n++ {
		if n == atOnce {
			g.goesOn = true
			q.lookAt(g, now+1, now)
			return
		}
		l := g.lanes.entries[0].member
		if at, by := q.refused(l, now); at == g {
			if l.held.sums[l.held.cause].By != by {
				q.passes(l, now) // what holds it is another thing now
			}
			q.want(g, now) // a call that was granted may have lapsed meanwhile
			break
		}
		q.unhold(l, now)
		q.place(l, now) // stands, or is held elsewhere
	}
	q.expect(g, now)
}

// expect has a gate looked at when it will admit the next call of a lane that it holds. mu
// is held.
func (q *Queue[T]) expect(g *gate[T], now time.Duration) {
	at := flow.Never
	g.goesOn = false
	if !g.lanes.empty() {
		_, at = q.ask(g, g.lanes.entries[0].member, now)
		if g.stands > 0 && at != flow.Never && !q.isStuck(g) {
			at = max(at, now+findPlaceIn)
		}
	}
	if at == flow.Never {
		q.wakes.drop(&g.wake)
		return
	}
	q.lookAt(g, at, now)
}

const (
	// findPlaceIn is after how long a gate is looked at whose lanes that stand may have found no place.
	findPlaceIn = 100 * time.Millisecond
	// besides is how many lanes the gate lets out then beside the lanes that stand: these may find no place either.
	besides = 16
)

// isStuck reports whether lanes of the gate stand, and there was a place for none of them when pick looked last. mu is held.
func (q *Queue[T]) isStuck(g *gate[T]) bool { return g.stands > 0 && g.round < q.round }

// lookAt has look see to a gate at an instant. mu is held.
func (q *Queue[T]) lookAt(g *gate[T], at, now time.Duration) {
	q.wakes.put(g, &g.wake, key{0, int64(at)})
	q.arm(now)
}

// arm sets the timer to the first gate that is to be looked at. mu is held.
func (q *Queue[T]) arm(now time.Duration) {
	if q.closed || q.wakes.empty() {
		return
	}
	at := time.Duration(q.wakes.entries[0].order)
	if q.armed != 0 && q.armed <= at {
		return
	}
	q.armed = max(at, 1)
	if wait := max(at-now, 0); q.timer == nil {
		q.timer = time.AfterFunc(wait, q.look)
	} else {
		q.timer.Reset(wait)
	}
}

// look lets lanes out of the gates whose time has come.
func (q *Queue[T]) look() {
	q.mu.Lock()
	now := q.now()
	q.armed = 0
	for !q.wakes.empty() && time.Duration(q.wakes.entries[0].order) <= now {
		g := q.wakes.entries[0].member
		q.wakes.drop(&g.wake)
		g.goesOn = false
		q.admit(g, now)
	}
	q.handOut(now)
	q.mu.Lock()
	q.arm(now)
	q.mu.Unlock()
}

// through hands the next item of a lane through its gates. mu is held.
func (q *Queue[T]) through(l *Lane[T], it *Item[T], now time.Duration) (ps []pass[T]) {
	if l.held == nil {
		return nil
	}
	if it.gated == nil { // it came before the gates
		it.gated = newGated[T]()
	}
	it.gated.end(l, now)
	for _, g := range l.held.gates {
		if !l.counts(g) {
			continue
		}
		g.round = q.round
		p := pass[T]{gate: g, keeps: it.keeps(g)}
		p.Pass = g.Take(now, p.keeps)
		if !p.keeps && g.Keeps() {
			p.keeps = true
			it.gated.kept = append(it.gated.kept, g)
			it.holds.Store(true)
		}
		ps = append(ps, p)
	}
	return ps
}

// back gives back what a call has of its gates. mu is held.
func (q *Queue[T]) back(ps []pass[T], res Result, now time.Duration) {
	for _, p := range ps {
		p.gate.Give(p.Pass, flow.Ended{Made: res.Ended != NotMade, Bad: res.Bad, Close: res.Close, Keeps: p.keeps}, now)
		q.noteBreaker(p.gate)
		q.admit(p.gate, now)
		q.gave(p.gate, res.Close, now)
	}
}
