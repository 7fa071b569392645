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

// deliver wakes the workers. mu is not held: a wake-up may take a system call, and
// other workers would wait for it (bench/PROFILE.md, "Locks").
func deliver[T any](out []handout[T]) {
	for _, h := range out {
		h.to.next <- h.run // never blocks: the worker waits and its channel holds one
	}
}

// dispatch starts workers for what may run, and appends to out what idle ones get
// once mu, which is held, is given back.
func (q *Queue[T]) dispatch(now time.Duration, out []handout[T]) []handout[T] {
	for {
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
	out := q.dispatch(now, nil) // one end can let several begin
	q.mu.Unlock()
	deliver(out)
	return next
}
