package scheduler

import (
	"container/heap"
	"math"
	"math/bits"
	"sync"
	"time"
)

// ageing is how much longer a task of one priority less has to have waited to
// go first, in ms.
const ageing = 1000

const (
	fewCalls = 48
	slowCall = 5 * time.Millisecond
)

// queue hands waiting tasks to a bounded pool of workers, fairly.
//
// A lane is the tasks of one app for one target, by priority with ageing. A
// lane runs while its target and its app have calls to spare; apps take turns,
// and within an app the lane whose first task is the most urgent goes first. So
// a target that never answers holds at most perTarget workers, a noisy app at
// most perApp, and the order counts only when calls have to wait.
//
//	push → lane (app, target) → app's heap of lanes → ring of apps → worker
type queue struct {
	workers, perTarget, perApp int
	now                        func() time.Time
	run                        func(*task) time.Duration // executes one task, on a worker: how long its call took

	mu      sync.Mutex // guards all below
	apps    map[string]*appQueue
	targets map[string]*target
	lanes   map[laneKey]*lane
	pruneAt int         // at so many lanes the next prune is worth its time
	ring    []*appQueue // apps with a lane that can run, in turns
	turn    int
	idle    []*worker // the last one used is on top: its stack is warm
	started int
	waiting int // tasks in lanes
	flying  int // tasks with a worker
	closed  bool
	wg      sync.WaitGroup
}

type laneKey struct{ app, target string }

type worker struct{ next chan *task }

type target struct {
	name   string
	flying int
	// limit of calls in flight, from fewCalls to perTarget. A target that
	// answers at once gets no more done with more of them: with 256 in flight a
	// call took 20 µs of processor time, with 48 16 µs. One that takes its time
	// does, so each slow call lifts the limit by one, which doubles it with every
	// round; each one that is not lowers it. Slow is what lets the limit make
	// fewer than 9,600 calls a second: slowCall for fewCalls in flight, and more
	// in proportion. By a fixed time, calls that were slow only because there
	// were so many of them would have kept the limit up.
	limit  int
	parked []*lane // lanes that wait for this target
	lanes  int
}

type appQueue struct {
	name   string
	flying int
	ready  laneHeap // lanes with tasks whose target can take one more
	ringed bool     // is in the ring
	lanes  int
}

type lane struct {
	key    laneKey
	app    *appQueue
	target *target
	rows   [10]fifo // by priority
	mask   uint16   // which rows have tasks
	place  int      // in app.ready; -1: not there
	parked bool     // in target.parked
	dead   bool     // forgotten: another may stand in its place
}

func newQueue(workers, perTarget, perApp int, now func() time.Time, run func(*task) time.Duration) *queue {
	return &queue{
		workers: workers, perTarget: perTarget, perApp: perApp, now: now, run: run,
		apps: map[string]*appQueue{}, targets: map[string]*target{}, lanes: map[laneKey]*lane{},
	}
}

// lane finds or makes the lane of an app and a target. Empty ones are forgotten
// when there are too many.
func (q *queue) lane(app, to string) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.laneLocked(laneKey{app, to})
}

func (q *queue) laneLocked(k laneKey) *lane {
	if l := q.lanes[k]; l != nil {
		return l
	}
	if len(q.lanes) >= max(q.pruneAt, 1<<14) {
		q.prune()
	}
	a := q.apps[k.app]
	if a == nil {
		a = &appQueue{name: k.app}
		q.apps[k.app] = a
	}
	t := q.targets[k.target]
	if t == nil {
		t = &target{name: k.target, limit: min(fewCalls, q.perTarget)}
		q.targets[k.target] = t
	}
	l := &lane{key: k, app: a, target: t, place: -1}
	a.lanes++
	t.lanes++
	q.lanes[k] = l
	return l
}

// prune forgets the lanes that are empty. Timers may still point to a dead one:
// push looks it up again by its key. mu is held.
func (q *queue) prune() {
	for k, l := range q.lanes {
		if l.mask != 0 || l.target.flying > 0 {
			continue
		}
		delete(q.lanes, k)
		l.dead = true
		if l.app.lanes--; l.app.lanes == 0 {
			delete(q.apps, k.app)
		}
		if l.target.lanes--; l.target.lanes == 0 {
			delete(q.targets, k.target)
		}
	}
	q.pruneAt = 2 * len(q.lanes)
}

// push queues tasks that are ready and hands them out as far as workers go.
func (q *queue) push(ts []*task) {
	if len(ts) == 0 {
		return
	}
	now := q.now()
	var few [16]handout
	q.mu.Lock()
	for _, t := range ts {
		if t.left == 0 { // else it is back from where it was held, or parked
			t.left = now.UnixMicro()
		}
		l := t.lane
		if l.dead {
			l = q.laneLocked(l.key)
			t.lane = l
		}
		p := t.priority
		l.rows[p].push(t)
		l.mask |= 1 << p
		q.waiting++
		q.enable(l)
	}
	out := q.dispatch(few[:0])
	q.mu.Unlock()
	deliver(out)
}

// handout is a task for a worker that waits for one.
type handout struct {
	to *worker
	t  *task
}

// deliver wakes the workers. mu is not held: a wake-up may take a system call, and
// other workers would wait for it (bench/PROFILE.md, "Locks").
func deliver(out []handout) {
	for _, h := range out {
		h.to.next <- h.t // never blocks: the worker waits and its channel holds one
	}
}

// dispatch starts workers for what may run, and appends to out what idle ones get
// once mu, which is held, is given back.
func (q *queue) dispatch(out []handout) []handout {
	for !q.closed {
		var w *worker
		if n := len(q.idle); n > 0 {
			w = q.idle[n-1]
		} else if q.started == q.workers {
			return out
		}
		t := q.pick()
		if t == nil {
			return out
		}
		if w != nil {
			q.idle = q.idle[:len(q.idle)-1]
			out = append(out, handout{w, t})
			continue
		}
		q.started++
		q.wg.Go(func() { q.work(&worker{make(chan *task, 1)}, t) })
	}
	return out
}

// work runs tasks until the queue is closed.
func (q *queue) work(w *worker, t *task) {
	for t != nil {
		l := t.lane // now: when its retry is queued it may have another
		t = q.swap(w, l, q.run(t))
	}
}

// swap gives a finished task's place back and takes the next task; nil: end.
func (q *queue) swap(w *worker, was *lane, took time.Duration) *task {
	q.mu.Lock()
	switch t := was.target; {
	case took*fewCalls > slowCall*time.Duration(t.limit):
		t.limit = min(t.limit+1, q.perTarget)
	case t.limit > fewCalls:
		t.limit--
	}
	q.release(was)
	next := q.pick()
	if next == nil {
		if q.closed || len(q.idle) >= q.perTarget {
			q.started--
			q.mu.Unlock()
			return nil
		}
		q.idle = append(q.idle, w)
		q.mu.Unlock()
		return <-w.next
	}
	out := q.dispatch(nil) // one end can let two begin: one by its app's cap, one by its target's
	q.mu.Unlock()
	deliver(out)
	return next
}

// release gives back the places that a task had with its app and target.
func (q *queue) release(l *lane) {
	q.flying--
	l.app.flying--
	l.target.flying--
	// All of them: the first may be of an app that is at its cap. Those that
	// find the target full again are parked again, behind the others.
	parked := l.target.parked
	l.target.parked = nil
	for _, p := range parked {
		p.parked = false
		q.enable(p)
	}
	q.enter(l.app)
}

// enable lets a lane that has tasks take part, as its target allows.
func (q *queue) enable(l *lane) {
	switch {
	case l.mask == 0 || l.parked:
	case l.place >= 0:
		heap.Fix(&l.app.ready, l.place)
	case l.target.flying >= l.target.limit:
		l.parked = true
		l.target.parked = append(l.target.parked, l)
	default:
		heap.Push(&l.app.ready, l)
		q.enter(l.app)
	}
}

// enter puts an app into the ring when it has something to run and may.
func (q *queue) enter(a *appQueue) {
	if !a.ringed && len(a.ready) > 0 && a.flying < q.perApp {
		a.ringed = true
		q.ring = append(q.ring, a)
	}
}

// pick takes the next task, in turns over the apps; nil: none may run.
func (q *queue) pick() *task {
	for len(q.ring) > 0 && !q.closed {
		if q.turn >= len(q.ring) {
			q.turn = 0
		}
		a := q.ring[q.turn]
		if len(a.ready) == 0 || a.flying >= q.perApp {
			last := len(q.ring) - 1
			q.ring[q.turn] = q.ring[last]
			q.ring[last] = nil
			q.ring = q.ring[:last]
			a.ringed = false
			continue
		}
		q.turn++
		l := a.ready[0]
		if l.target.flying >= l.target.limit { // another app's calls filled it
			heap.Pop(&a.ready)
			q.enable(l)
			continue
		}
		t := l.pop()
		q.waiting--
		q.flying++
		a.flying++
		l.target.flying++
		switch {
		case l.mask == 0 || l.target.flying >= l.target.limit:
			heap.Pop(&a.ready)
			q.enable(l)
		default:
			heap.Fix(&a.ready, 0)
		}
		return t
	}
	return nil
}

// close ends the handing out: waiting tasks stay due, workers end.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	q.idle = nil
	q.started -= len(idle)
	q.mu.Unlock()
	for _, w := range idle {
		close(w.next)
	}
}

// load tells how many tasks wait and how many have a worker.
func (q *queue) load() (waiting, flying int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting, q.flying
}

// rank orders the lanes of an app: when its most urgent task became ready, put
// forward by its priority. The lowest goes first.
func (l *lane) rank() (rank int64, row int) {
	rank = math.MaxInt64
	for rows := l.mask; rows != 0; rows &= rows - 1 {
		p := bits.TrailingZeros16(rows)
		if r := l.rows[p].head().ready - int64(p)*ageing; r <= rank {
			rank, row = r, p
		}
	}
	return rank, row
}

func (l *lane) pop() *task {
	_, p := l.rank()
	t := l.rows[p].pop()
	if l.rows[p].empty() {
		l.mask &^= 1 << p
	}
	return t
}

// laneHeap is a heap of lanes by rank, see container/heap.
type laneHeap []*lane

func (h laneHeap) Len() int { return len(h) }
func (h laneHeap) Less(i, j int) bool {
	a, _ := h[i].rank()
	b, _ := h[j].rank()
	return a < b
}

func (h laneHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *laneHeap) Push(x any) {
	l := x.(*lane)
	l.place = len(*h)
	*h = append(*h, l)
}

func (h *laneHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.place = -1
	return l
}

// fifo is a queue of tasks that gives its memory back when it runs empty.
type fifo struct {
	ts []*task
	at int
}

func (f *fifo) push(t *task) {
	if len(f.ts) == cap(f.ts) && f.at > len(f.ts)/2 { // one that never runs empty must not grow for ever
		n := copy(f.ts, f.ts[f.at:])
		clear(f.ts[n:])
		f.ts, f.at = f.ts[:n], 0
	}
	f.ts = append(f.ts, t)
}

func (f *fifo) head() *task { return f.ts[f.at] }
func (f *fifo) empty() bool { return f.at == len(f.ts) }
func (f *fifo) pop() *task {
	t := f.ts[f.at]
	f.ts[f.at] = nil
	if f.at++; f.at == len(f.ts) {
		f.ts, f.at = f.ts[:0], 0
		if cap(f.ts) > 1024 {
			f.ts = nil
		}
	}
	return t
}
