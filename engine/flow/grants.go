package flow

import (
	"slices"
	"time"
)

// Among several nodes one of them owns a key: it has the bucket and counts the places, and
// grants calls to the nodes (engine/allot). A call that is granted for an instant may be
// handed out for Validity from that instant on.

const (
	// Lookahead is how far ahead an owner grants calls.
	Lookahead = 250 * time.Millisecond
	// unrated is the Validity of calls of a key without a rate.
	unrated = 500 * time.Millisecond
	// StoredIn is how long the owner of a slow key may take to store calls before it tells of them.
	StoredIn = 2 * time.Second
)

// Validity is for how long a call of a key may be handed out after the instant that it was
// granted for.
func Validity(l *Limit) time.Duration {
	switch {
	case l.Rate == 0:
		return unrated
	case l.IsSlow():
		return StoredIn + 2*unrated
	}
	return min(max(l.Per/20, 100*time.Millisecond), unrated)
}

// Run is calls that were granted: N of them, Every apart, the first at At. Each may be
// handed out until For after its instant.
type Run struct {
	At, Every, For time.Duration
	N              int
	Last           uint64 // the number that the owner knows the last of them by
}

// Grants are the calls of a key that its owner has granted to this node and that were not
// handed out, and the places that the node has.
type Grants struct {
	runs   []Run         // in the order of their instants
	places int           // with a call, or for a call of runs
	unused uint64        // see Gate.Unused
	again  time.Duration // before it the owner grants no call, as far as it has told; 0: it has not
}

// first is the first call that may be handed out now or later.
func (g *Grants) first(now time.Duration) (r *Run, ok bool) {
	for len(g.runs) > 0 {
		r := &g.runs[0]
		if late := now - r.At - r.For; late > 0 {
			lapsed := r.N
			if r.Every > 0 {
				lapsed = min(r.N, int((late+r.Every-1)/r.Every))
			}
			if r.At, r.N = r.At+time.Duration(lapsed)*r.Every, r.N-lapsed; lapsed > 0 && r.N == 0 && r.Last != 0 {
				g.unused = r.Last
			}
		}
		if r.N > 0 {
			return r, true
		}
		g.runs = g.runs[1:]
	}
	return nil, false
}

// next is when the next call may be handed out, Never if none is granted.
func (g *Grants) next(now time.Duration) time.Duration {
	if r, ok := g.first(now); ok {
		return max(now, r.At)
	}
	return Never
}

// take takes the next call out.
func (g *Grants) take(now time.Duration) (call Run) {
	r, ok := g.first(now)
	if !ok {
		return Run{}
	}
	if call = (Run{At: r.At, For: r.For, N: 1}); r.N == 1 {
		call.Last = r.Last
	}
	r.At, r.N = r.At+r.Every, r.N-1
	return call
}

// back takes a call back that was not made.
func (g *Grants) back(at, valid time.Duration, last uint64) {
	g.runs = slices.Insert(g.runs, 0, Run{At: at, For: valid, N: 1, Last: last})
}

// count is how many calls are granted.
func (g *Grants) count(now time.Duration) (n int) {
	if _, ok := g.first(now); ok {
		for i := range g.runs {
			n += g.runs[i].N
		}
	}
	return n
}

// lapses is when the last call lapses, 0 if there is none.
func (g *Grants) lapses() (at time.Duration) {
	for i := range g.runs {
		r := &g.runs[i]
		at = max(at, r.At+time.Duration(r.N-1)*r.Every+r.For)
	}
	return at
}

// IsShared reports whether calls of a limit are granted by its owner among several nodes.
func (l *Limit) IsShared() bool { return l != nil && (l.Rate > 0 || l.Concurrency > 0) }

// Share has the calls of the gate granted by the owner of its key, if the limit in force is
// of that kind.
func (g *Gate) Share() {
	if !g.limit.IsShared() {
		g.grants = nil
		return
	}
	if g.grants == nil {
		g.grants = &Grants{}
	}
	g.opens = 0 // the owner waits
}

// Unshare has the gate keep its limit by itself.
func (g *Gate) Unshare() { g.grants = nil }

// IsGranted reports whether the owner of the key grants the calls of the gate.
func (g *Gate) IsGranted() bool { return g.grants != nil }

// Need is what the gate asks the owner of its key for.
type Need struct {
	Calls  int    // more than it has
	Kept   int    // likewise, of tasks that have kept their place
	Holds  int    // places that it has
	Unused uint64 // a call that it has not made and will not make, see Run.Last
}

// Need is what the gate needs where so many calls wait, and so many more of tasks that have
// kept their place.
func (g *Gate) Need(now time.Duration, waiting, kept int) (n Need) {
	x := g.grants
	has := x.count(now)
	n.Holds = g.Holds(now)
	if g.limit.Concurrency > 0 {
		has = min(has, n.Holds-g.calls)
	}
	n.Calls = max(0, waiting-has)
	if g.limit.Rate > 0 {
		n.Kept = max(0, waiting+kept-x.count(now)-n.Calls)
	}
	n.Unused = g.Unused(now)
	return n
}

// Unused is the last call that was granted and lapsed, see Run.Last; 0: none.
func (g *Gate) Unused(now time.Duration) uint64 {
	g.grants.first(now)
	return g.grants.unused
}

// Holds is how many places the gate has: those with a call, and one for each call that is
// granted. So a place goes back when its call ends, or when the call lapses.
func (g *Gate) Holds(now time.Duration) int {
	x := g.grants
	if x == nil || g.limit.Concurrency == 0 {
		return 0
	}
	x.places = max(g.calls, min(x.places, g.calls+x.count(now)))
	return x.places
}

// Lapses is when the gate may have a place less because a call lapses, 0: it does not.
func (g *Gate) Lapses() time.Duration {
	if g.grants == nil || g.limit.Concurrency == 0 || g.grants.places <= g.calls {
		return 0
	}
	return g.grants.lapses()
}

// Granted is what the owner of a key answers. Instants count from when it answered.
type Granted struct {
	Runs   []Run
	Places int
	// Again: a node that needs more is to ask again so much later.
	Again time.Duration
	// Closed: answers have asked that the key be closed for so long.
	Closed time.Duration
}

// Grant takes what the owner has granted, at an instant that the node knows to be between two:
// its request left at sent, and the answer was there at got.
func (g *Gate) Grant(a *Granted, sent, got time.Duration) {
	if a.Closed > 0 && g.limit != nil && g.limit.Cooldown && got >= g.hears {
		g.closed = max(g.closed, got+a.Closed)
	}
	x := g.grants
	if x == nil {
		return
	}
	x.places += a.Places
	if x.again = 0; a.Again > Lookahead {
		x.again = got + a.Again + Lookahead/2
	}
	for _, r := range a.Runs {
		// A tenth is for clocks that do not run equally fast.
		if r.For = r.For - r.For/10 - (got - sent); r.For >= 0 {
			r.At += got
			x.runs = append(x.runs, r)
		} else {
			x.unused = r.Last
		}
	}
}

// Slots is the bucket of a key at its owner: it says for which instants calls are granted.
//
// A call is handed out in [instant, instant+Validity], so the calls of a window of per are
// of instants in a window of per+Validity: the bucket grants no more than rate in that.
type Slots struct {
	limit  Limit
	bucket Bucket
	last   time.Duration // instants are granted in order
	former time.Duration // of the bucket, before the last call; see Back
	taken  bool          // the last call may be given back
	opens  time.Duration
}

// Set puts a limit into force. It reports whether no call counts any more, as of a new rate.
func (s *Slots) Set(l *Limit, now time.Duration) (fresh bool) {
	if fresh = s.limit.Rate != l.Rate || s.limit.Per != l.Per || s.limit.Burst != l.Burst; fresh {
		s.bucket, s.taken = newBucket(l.Rate, l.Per+Validity(l), l.Burst, now), false
	}
	s.limit = *l
	return fresh
}

// Clone is a copy that changes by itself.
func (s *Slots) Clone() Slots {
	c := *s
	if w := s.bucket.window; w != nil {
		c.bucket.window = new(*w)
	}
	return c
}

// Owned has the first call wait for what a former owner may have granted until an instant. Of a slow
// limit that is known, see Restore.
func (s *Slots) Owned(since time.Duration) {
	l := &s.limit
	if l.Rate == 0 {
		return
	}
	wait := l.Per
	if l.Burst <= 1 { // evenly spaced
		wait = s.bucket.every + s.bucket.credit
	}
	s.opens = since + wait + Lookahead + Validity(l)
}

// Next is the next instant that a call can be granted for.
func (s *Slots) Next(now time.Duration) time.Duration {
	return s.bucket.next(max(now, s.last, s.opens))
}

// Take grants a call for an instant, which is Next.
func (s *Slots) Take(at time.Duration) {
	s.last, s.taken = at, true
	s.former = s.bucket.take(at)
}

// Back takes the last call back: its node has not made it, and will not.
func (s *Slots) Back() {
	if s.taken {
		s.bucket.refund(s.former, s.last)
		s.taken = false
	}
}

// IsFull reports whether no call counts any more.
func (s *Slots) IsFull(now time.Duration) bool {
	return now >= s.last && now >= s.opens && s.bucket.isFull(now)
}
