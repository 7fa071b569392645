package fair

import (
	"time"

	"xtimer/engine/flow"
)

// Among several nodes the calls of a flow key or of a target with a limit are granted by the node
// that owns the key (engine/allot):
//
//	passes ── the gate has no call that was granted ──► wants ── Wants ──► the owner ── Grant ──► admit
//	                                                      ▲                                        │
//	                                                      └──── more wait, or a place goes back ◄──┘

// asks is what a gate knows of its asking. It outlives the limit until the owner knows that this node
// has no place: else the owner would count the places for ever.
type asks struct {
	place  int           // in Queue.wants; -1: not there
	under  bool          // an ask is under way
	again  time.Duration // the owner is to be asked for more then
	told   int           // how many places the owner knows that this node has; -1: not known
	closed time.Duration // until when answers have asked that the key be closed
	unused uint64        // the last call that the owner knows not to be made
	fresh  time.Duration // until then the owner may go by a former limit
}

const (
	mostWanted = 1000                   // calls of a key, at once
	retryAsk   = 100 * time.Millisecond // after an ask without an answer
	// heardWithin: so long after the first node every node has heard of a change of a limit, for each looks once a second.
	heardWithin = 2 * time.Second
)

// Want is what a node needs of the owner of a key.
type Want struct {
	Name flow.Name
	flow.Need
	Closed time.Duration // answers have asked that the key be closed for so long
	Slow   bool          // see flow.Limit.IsSlow: the owner stores the calls before it answers
}

// share has the calls of a gate granted by the owner of its key, if its limit is of that
// kind. mu is held.
func (q *Queue[T]) share(g *gate[T], now time.Duration) {
	if q.cfg.Wanting == nil || g.name.Kind == flow.OfApp || g.name.Kind == flow.OfQuota {
		return
	}
	if q.alone || q.cfg.OnlySlow && !g.Limit().IsSlow() {
		g.Unshare()
	} else {
		g.Share()
	}
	if g.IsGranted() && g.asks == nil {
		g.asks = &asks{place: -1}
	}
	q.gave(g, 0, now) // another limit may have other places
	if g.asks == nil {
		return
	}
	if g.asks.again, g.asks.fresh = 0, now+heardWithin; !g.lanes.empty() {
		q.want(g, now)
	}
}

// SetAlone has this node keep the limits of flow keys by itself, or not any more: another node
// does not know of owners of keys.
func (q *Queue[T]) SetAlone(alone bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.alone == alone {
		return
	}
	q.alone = alone
	for _, g := range q.gates {
		q.share(g, now)
		q.admit(g, now)
		if g.asks != nil && !g.lanes.empty() {
			q.want(g, now)
		}
	}
}

// unshare ends the asking of a gate whose owner knows that it has no place. mu is held.
func (q *Queue[T]) unshare(g *gate[T]) {
	if g.asks != nil && g.isTold() {
		q.wants.drop(&g.asks.place)
		g.asks = nil
	}
}

// isTold reports whether the owner of the key knows that this node has no place. mu is held.
func (g *gate[T]) isTold() bool { return g.asks == nil || !g.asks.under && g.asks.told == 0 }

// want has the owner of a gate's key asked for calls, as soon as it may be asked: at once if a
// call that it granted has lapsed, for the owner may grant that anew. mu is held.
func (q *Queue[T]) want(g *gate[T], now time.Duration) {
	a := g.asks
	if a == nil || a.under || !g.IsGranted() {
		return
	}
	if g.Unused(now) != a.unused {
		a.again = now
	}
	q.askAt(g, max(now, a.again))
}

// gave has the owner told at once of places that this node has no more, or has besides, and of
// an answer that closes the key. mu is held.
func (q *Queue[T]) gave(g *gate[T], closes, now time.Duration) {
	a := g.asks
	if a == nil {
		return
	}
	if l := g.Limit(); closes > 0 && l != nil && l.Cooldown {
		a.closed = max(a.closed, now+closes)
	}
	if a.under {
		return
	}
	switch at := g.Lapses(); {
	case a.closed > now || g.Holds(now) != a.told:
		q.askAt(g, now)
	case at > 0:
		q.askAt(g, at+1)
	case !g.IsGranted():
		q.unshare(g)
	}
}

// open opens a gate that responses have asked to be closed. mu is held.
func (q *Queue[T]) open(g *gate[T], now time.Duration) {
	if g.Open(now); g.asks != nil {
		if g.asks.closed, g.asks.again = 0, 0; !g.lanes.empty() {
			q.want(g, now)
		}
	}
}

// askAt has a gate in Wants from an instant on. mu is held.
func (q *Queue[T]) askAt(g *gate[T], at time.Duration) {
	if a := g.asks; a.place >= 0 && time.Duration(q.wants.entries[a.place].order) <= at {
		return
	}
	q.wants.put(g, &g.asks.place, key{0, int64(at)})
	if g.asks.place == 0 {
		q.cfg.Wanting()
	}
}

// waits is how many items wait at a gate for what the owner grants: at least so many, of lanes
// that stand for a place. Those that have kept their place are counted by themselves: at least
// one of a lane, if its next one is. mu is held.
func (g *gate[T]) waits() (n, kept int) {
	n = g.stands
	for i := range g.lanes.entries {
		l := g.lanes.entries[i].member
		if l.held.sums[l.held.cause].By != flow.ByFlow {
			continue
		}
		n += l.waiting
		if l.next().keeps(g) {
			n, kept = n-1, kept+1
		}
		if n >= mostWanted {
			return mostWanted, kept
		}
	}
	return n, kept
}

// Wants are the needs of at most so many keys whose owners are to be asked now. Each is under
// way until Grant. next is when there are more; flow.Never: nobody knows.
func (q *Queue[T]) Wants(most int) (list []Want, next time.Duration) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.wants.empty() {
		first := &q.wants.entries[0]
		if at := time.Duration(first.order); at > now || len(list) == most {
			return list, at
		}
		g := first.member
		q.wants.drop(&g.asks.place)
		if w := g.wanted(now); w.Calls > 0 || w.Kept > 0 || w.Closed > 0 || w.Holds != g.asks.told {
			g.asks.under = true
			list = append(list, w)
		} else if at := g.Lapses(); at > 0 {
			q.askAt(g, at+1)
		}
	}
	return list, flow.Never
}

// wanted is what the gate needs. mu is held.
func (g *gate[T]) wanted(now time.Duration) Want {
	w := Want{Name: g.name, Slow: g.Limit().IsSlow()}
	if g.IsGranted() { // else it has no place, and wants none
		waiting, kept := g.waits()
		w.Need = g.Need(now, waiting, kept)
	}
	if a := g.asks; a.closed > now {
		w.Closed, a.closed = a.closed-now, 0
	}
	return w
}

// Grant ends an ask: sent is when it left, by Now. a is what the owner has granted; nil: it did
// not answer, or does not own the key.
func (q *Queue[T]) Grant(w *Want, a *flow.Granted, sent time.Duration) {
	q.mu.Lock()
	now := q.now()
	g := q.gates[w.Name]
	if g == nil || g.asks == nil {
		q.mu.Unlock() // the gate was made anew: it knows nothing of this ask
		return
	}
	x := g.asks
	x.under = false
	if a == nil {
		x.again, x.told = now+retryAsk, -1 // the owner may have granted places, and its answer is lost
		if w.Closed > 0 {
			x.closed = max(x.closed, sent+w.Closed)
		}
		q.askAt(g, x.again)
		q.mu.Unlock()
		return
	}
	g.Grant(a, sent, now)
	x.told, x.again, x.unused = w.Holds+a.Places, now+a.Again, w.Unused
	if at := g.Hears(); now < at {
		x.again = min(x.again, at) // the owner may not know yet that the key is open
	}
	if now < x.fresh {
		x.again = min(x.again, x.fresh) // when the next call may begin by a former limit is no answer
	}
	q.admit(g, now)
	q.handOut(now)
	q.mu.Lock()
	if g.asks == x { // it still asks
		if !g.lanes.empty() {
			q.want(g, now)
		}
		q.gave(g, 0, now)
	}
	q.mu.Unlock()
}

// Retell has the owners of some keys told anew how many places this node has: they have
// become the owners.
func (q *Queue[T]) Retell(moved func(flow.Name) bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for n, g := range q.gates {
		if g.asks != nil && moved(n) {
			if g.asks.again = 0; g.asks.told != 0 { // else it has told nobody of a place
				g.asks.told = -1
			}
			if !g.asks.under && (g.Holds(now) > 0 || !g.lanes.empty()) {
				q.askAt(g, now)
			}
		}
	}
}

// HasTold reports whether the owners of some keys know how many places this node has.
func (q *Queue[T]) HasTold(of func(flow.Name) bool) bool {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for n, g := range q.gates {
		if a := g.asks; a != nil && g.Holds(now) > 0 && a.told < g.Holds(now) && of(n) {
			return false
		}
	}
	return true
}

// Rule is what the rules say of a name.
func (q *Queue[T]) Rule(n flow.Name) flow.Rule {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rules.Match(n)
}
