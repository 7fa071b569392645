package fair

import "time"

// worker is a goroutine that runs items, one after the other.
type worker[T any] struct{ next chan run[T] }

// run is an item that has a place.
type run[T any] struct {
	value  T
	lane   *Lane[T] // nil: the worker is to end
	pool   int
	began  time.Duration // by Queue.now
	passed []pass[T]     // the gates that it went through
}

// handout is a run for a worker that waits for one.
type handout[T any] struct {
	to *worker[T]
	run[T]
}

// keptIdle is how many workers are kept that have nothing to do.
const keptIdle = 256

// handOut has workers run all items that may run. The caller holds mu, and handOut unlocks it before
// it wakes idle workers: a wake-up may take a system call, and other workers would wait for it
// (bench/PROFILE.md, "Locks"). A few workers are woken at a time, so the first of many items runs before
// the last one is picked.
func (q *Queue[T]) handOut(now time.Duration) {
	var few [8]handout[T]
	for {
		out := q.dispatch(now, few[:0])
		q.mu.Unlock()
		for _, h := range out {
			h.to.next <- h.run // never blocks: the worker waits and its channel holds one
		}
		if len(out) < len(few) {
			return
		}
		q.mu.Lock()
	}
}

// dispatch picks items that may run: it starts workers for them, or appends to out what idle workers
// get once mu is unlocked, until out is full. mu is held.
func (q *Queue[T]) dispatch(now time.Duration, out []handout[T]) []handout[T] {
	for len(out) < cap(out) {
		r := q.pick(now)
		if r.lane == nil {
			return out
		}
		if n := len(q.idle); n > 0 {
			out = append(out, handout[T]{q.idle[n-1], r})
			q.idle[n-1] = nil
			q.idle = q.idle[:n-1]
			continue
		}
		q.workers.Go(func() { q.work(&worker[T]{make(chan run[T], 1)}, r) })
	}
	return out
}

// work runs items until there is nothing to do, or the queue is closed.
func (q *Queue[T]) work(w *worker[T], r run[T]) {
	for r.lane != nil {
		r = q.swap(w, r, q.run(r))
	}
}

// swap gives the place of a run back and takes the next one; a run without a lane
// ends the worker.
func (q *Queue[T]) swap(w *worker[T], r run[T], res Result) run[T] {
	now := q.now()
	q.mu.Lock()
	q.release(r, res, now)
	next := q.pick(now)
	if next.lane == nil {
		if q.closed || len(q.idle) >= keptIdle {
			q.mu.Unlock()
			return run[T]{}
		}
		q.idle = append(q.idle, w)
		q.mu.Unlock()
		return <-w.next
	}
	q.handOut(now) // one end can let several begin
	return next
}
