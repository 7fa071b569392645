package fair

import (
	"sync"
	"time"

	"xtimer/engine/flow"
)

// Config of a Queue.
type Config[T any] struct {
	// Places bounds the calls in flight; PerApp those of one app, PerTarget those
	// to one target; of these two see SetPart.
	Places, PerApp, PerTarget int
	// Run makes one call, on a worker. RunBatch makes one of an item of a BatchLane, and of
	// what it takes from More; it is needed where there are such lanes.
	Run      func(T) Result
	RunBatch func(T, *More[T]) Result
	// Wanting, if set, has the calls of flow keys with a limit granted by the owner of the key
	// (Wants, Grant). It is told when Wants has more to tell, and must not block.
	Wanting func()
	// OnlySlow: that is so only of limits that are slow (flow.Limit.IsSlow): the process is alone.
	OnlySlow bool
}

// Queue hands waiting items to workers; see the package comment. Its methods may be
// called by many goroutines at once.
type Queue[T any] struct {
	cfg     Config[T]
	started time.Time
	workers sync.WaitGroup

	mu      sync.Mutex // guards all below, lanes, targets and apps
	places  int        // cfg.Places, or what SetPlaces said
	bounds             // of the configuration, or what SetPart said
	calls   int        // in flight
	waiting int        // items in lanes
	turn    int64      // how many items were handed out
	round   int64      // how often pick has found no lane that may have a place
	came    uint64     // how many have come
	closed  bool
	halts   int           // calls of Halt without their Resume yet, and one while the queue yields
	yields  bool          // see Yield
	turned  time.Duration // when yields changed
	idle    []*worker[T]  // the last one used is on top: its stack is warm

	pools   [pools]pool[T]
	hungry  []*target[T] // which have parked lanes and may have room
	limited []*target[T] // which make lanes wait, or were lowered by timeouts

	apps    map[string]*app[T]
	targets map[string]*target[T]
	lanes   map[laneName]*Lane[T]
	listed  []*Lane[T] // the same lanes; only appended to, and made anew by prune: see Lanes
	pruneAt int        // at so many lanes the next prune is worth its time

	rules flow.Rules
	gates map[flow.Name]*gate[T]
	wakes heap[*gate[T]] // by when they are to be looked at
	wants heap[*gate[T]] // by when their owners are to be asked
	alone bool           // see SetAlone
	known int64          // see SetKnown
	// unknown: it has held a lane, which is to go on when it moves.
	unknown bool
	timer   *time.Timer
	armed   time.Duration    // when timer fires; 0: it does not
	held    [flow.Causes]int // items in lanes that are held, by what holds them
	// broken are the gates whose breaker is not closed, except those that holding has left out.
	broken map[flow.Name]struct{}
}

// New makes a Queue.
func New[T any](cfg Config[T]) *Queue[T] {
	return &Queue[T]{
		cfg: cfg, started: time.Now(), places: cfg.Places, bounds: bounds{cfg.PerApp, cfg.PerTarget},
		apps: map[string]*app[T]{}, targets: map[string]*target[T]{}, lanes: map[laneName]*Lane[T]{}, gates: map[flow.Name]*gate[T]{},
		broken: map[flow.Name]struct{}{}, known: None,
	}
}

// now is the monotonic time since the queue was made: no step of the clock makes a
// call look old.
func (q *Queue[T]) now() time.Duration { return time.Since(q.started) }

// Push adds items to their lanes, and hands out what may run.
func (q *Queue[T]) Push(items ...*Item[T]) {
	if len(items) == 0 {
		return
	}
	now := q.now()
	q.mu.Lock()
	for _, it := range items {
		if it.Lane.dead.Load() {
			it.Lane = q.laneLocked(it.Lane.name)
		}
		q.waiting++
		if q.push(it, now) {
			q.place(it.Lane, now)
		}
		it.Lane.come()
	}
	q.handOut(now)
}

// push adds an item to its lane and reports whether it goes next. mu is held.
func (q *Queue[T]) push(it *Item[T], now time.Duration) bool {
	h := it.Lane.held
	if h != nil && len(h.gates) == 0 && it.Lane.waiting == 0 {
		it.Lane.held, h = nil, nil
	}
	if h != nil {
		it.mark(it.Lane, now)
		if h.at != nil {
			q.held[h.sums[h.cause].By]++
		}
	} else if it.gated != nil && len(it.gated.kept) == 0 {
		it.gated = nil
	}
	q.came++
	it.Lane.number(it, q.came)
	return it.Lane.push(it)
}

// remove takes an item out of its lane. mu is held.
func (q *Queue[T]) remove(it *Item[T]) {
	q.waiting--
	if h := it.Lane.held; h != nil && h.at != nil {
		q.held[h.sums[h.cause].By]--
	}
	it.Lane.remove(it)
}

// Remove takes an item out of its lane and reports whether it waited there.
func (q *Queue[T]) Remove(it *Item[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !it.waits {
		return false
	}
	q.remove(it)
	q.place(it.Lane, q.now())
	return true
}

// SetPlaces changes how many calls may be in flight in all: at least one. Calls that
// are in flight beyond it may end.
func (q *Queue[T]) SetPlaces(n int) {
	q.mu.Lock()
	q.places = max(n, 1)
	q.handOut(q.now())
}

// Close ends the handing out: items that wait keep waiting, and workers end with the
// call they make.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	idle := q.idle
	q.idle = nil
	q.mu.Unlock()
	for _, w := range idle {
		close(w.next)
	}
}

// Wait returns when all workers of a closed queue have ended.
func (q *Queue[T]) Wait() { q.workers.Wait() }

// pick gives a place to the lane whose turn it is; no lane: none may have one. mu is
// held.
func (q *Queue[T]) pick(now time.Duration) run[T] {
	for !q.closed && q.halts == 0 {
		q.feed(now)
		l := q.cheapest()
		switch {
		case l == nil && len(q.hungry) == 0:
			q.round++
			return run[T]{}
		case l == nil:
		case l.target.full(), l.pool != l.kind(now):
			q.place(l, now) // elsewhere
		case l.held != nil && !q.passes(l, now):
			q.place(l, now) // likewise
		default:
			return q.take(l, now)
		}
	}
	return run[T]{}
}

// cheapest is the lane that costs least of those that a place is free for; nil: none.
// mu is held.
func (q *Queue[T]) cheapest() *Lane[T] {
	var first *entry[*share[T]]
	for kind := range q.pools {
		if p := &q.pools[kind]; p.fits(kind, q.places, q.places-q.calls) {
			if e := &p.shares.entries[0]; first == nil || e.before(first.key) {
				first = e
			}
		}
	}
	if first == nil {
		return nil
	}
	return first.member.lanes.entries[0].member
}

// take gives a lane a place for its next item. mu is held.
func (q *Queue[T]) take(l *Lane[T], now time.Duration) run[T] {
	it := l.next()
	q.remove(it)
	passed := q.through(l, it, now)
	s := &l.app.shares[l.pool]
	q.turn++
	s.turn = q.turn
	q.calls++
	q.pools[l.pool].calls++
	s.calls++
	l.app.calls++
	l.start.begin(l.calls, now)
	l.calls++
	l.target.begin(now)
	l.gathers = l.name.class != 0
	if !l.name.backlog {
		q.onTimeNow(l.target, now)
	}
	r := run[T]{it.Value, l, l.pool, now, passed}
	q.place(l, now)
	for _, p := range passed {
		q.admit(p.gate, now)
	}
	return r
}

// release gives a place back. mu is held.
func (q *Queue[T]) release(r run[T], res Result, now time.Duration) {
	l := r.lane
	t := l.target
	q.calls--
	q.pools[r.pool].calls--
	l.app.shares[r.pool].calls--
	l.app.calls--
	l.calls--
	l.start.ended = now
	t.end(r.began, now, res, q.perTarget)
	if (t.silent > 0 || t.filled) && t.answers(now) {
		t.filled = false
		for _, other := range t.lanes {
			q.place(other, now)
		}
	}
	if t.parked != nil && !t.full() && !t.hungry {
		t.hungry = true
		q.hungry = append(q.hungry, t)
	}
	q.place(l, now)
	q.list(t)
	if r.passed != nil {
		q.back(r.passed, res, now)
	}
}

// feed lets one lane that was parked stand for a place again, if its target has room.
// One for each item that is handed out is enough for all to have their turn, and a
// target with a thousand lanes costs no more than one with two. mu is held.
func (q *Queue[T]) feed(now time.Duration) {
	for n := len(q.hungry); n > 0; n = len(q.hungry) {
		t := q.hungry[n-1]
		found := t.parked != nil && !t.full()
		if found {
			q.place(t.unpark(), now)
		}
		if t.parked == nil || t.full() {
			t.hungry = false
			q.hungry[n-1] = nil
			q.hungry = q.hungry[:n-1]
			q.list(t)
		}
		if found {
			return
		}
	}
}

// place puts a lane where it belongs: among those that stand for a place in a pool,
// among those that wait for their target's limit, or, being empty, nowhere. It is
// called whenever something changed that this or the lane's turn depends on. mu is
// held.
func (q *Queue[T]) place(l *Lane[T], now time.Duration) {
	t, kind := l.target, -1
	stands := l.waiting > 0 && !l.parked && l.open(now)
	if l.held != nil {
		if stands {
			stands = q.passes(l, now)
		} else {
			q.unhold(l, now)
		}
	}
	if stands {
		kind = l.kind(now)
	}
	stood := l.place >= 0
	if l.place >= 0 && (!stands || l.pool != kind) {
		l.app.shares[l.pool].lanes.drop(&l.place)
		if l.pool == silent {
			t.silent--
		}
	}
	switch {
	case stands:
		if kind == silent && l.place < 0 {
			t.silent++
		}
		l.pool = kind
		l.app.shares[kind].lanes.put(l, &l.place, l.key())
	case l.waiting > 0 && !l.parked:
		q.wait(l, now)
	}
	q.stand(l.app)
	q.lead(l, now)
	if l.held == nil {
		return
	}
	q.front(l, stands)
	switch {
	case stands && !stood:
		q.stoodAt(l, 1, now)
	case stood && !stands:
		q.stoodAt(l, -1, now)
	}
}

// wait notes why a lane with items stands for no place: its target is full, or is to answer first, or the lane leaves
// room. A gate notes its own lanes. mu is held.
func (q *Queue[T]) wait(l *Lane[T], now time.Duration) {
	t := l.target
	switch {
	case t.full() && (l.held == nil || l.held.at == nil):
		t.park(l)
		q.list(t)
	case l.fillsQuota(now):
		t.filled = true
	case !l.start.waits && l.leavesRoom(now):
		t.starts(l)
	}
}

// stand puts an app into the pools in which one of its lanes may have a place, as far
// as the app's limit goes. mu is held.
func (q *Queue[T]) stand(a *app[T]) {
	for kind := range a.shares {
		s, p := &a.shares[kind], &q.pools[kind]
		if s.fits(kind, q.perApp, q.perApp-a.calls) {
			p.shares.put(s, &s.place, key{s.cost(), s.turn})
		} else {
			p.shares.drop(&s.place)
		}
	}
}
