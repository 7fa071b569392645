package fair

import (
	"time"

	"xtimer/engine/flow"
)

// maxBatches is how many calls of a batch lane are in flight, unless the limit of a key says
// how many. With one call under way the next one fills; more of them only make each smaller.
const maxBatches = 4

// More are the items of a lane that may share a call. The worker that has the call takes
// them: each of its lane's places is for a call, whatever the number of its items.
type More[T any] struct {
	q     *Queue[T]
	lane  *Lane[T]
	taken bool
}

// filling is a call that waits for more items.
type filling struct {
	items, bytes int
	full         chan struct{} // cap 1
}

// run makes a call.
func (q *Queue[T]) run(r run[T]) Result {
	if r.lane.name.class == 0 {
		return q.cfg.Run(r.value)
	}
	more := &More[T]{q: q, lane: r.lane}
	res := q.cfg.RunBatch(r.value, more)
	if !more.taken {
		more.Take(0, 0, 0) // the lane waits for it
	}
	return res
}

// batched reports whether the lane takes no further place: a call has still to take its items,
// or so many are in flight that the next items wait for each other. mu is held.
func (l *Lane[T]) batched() bool {
	if l.name.class == 0 {
		return false
	}
	return l.gathers || l.calls >= maxBatches && !l.limitsCalls()
}

// open reports whether a place could be taken for the lane, so far as its target and its own
// calls are concerned. mu is held.
func (l *Lane[T]) open(now time.Duration) bool {
	return !l.target.full() && !l.batched() && !l.fillsQuota(now) && !l.leavesRoom(now)
}

// limitsCalls reports whether a gate of the lane says how many calls may be in flight.
func (l *Lane[T]) limitsCalls() bool {
	if l.held != nil {
		for _, g := range l.held.gates {
			if lim := g.rule.Limit; lim != nil && lim.Concurrency > 0 && g.name.Kind != flow.OfQuota {
				return true
			}
		}
	}
	return false
}

// come tells the call that waits for items that there are enough. mu is held.
func (l *Lane[T]) come() {
	if f := l.filling; f != nil && !l.room(f) {
		select {
		case f.full <- struct{}{}:
		default:
		}
	}
}

// room reports whether the items that wait leave room in a call.
func (l *Lane[T]) room(f *filling) bool { return l.waiting < f.items && l.bytes < f.bytes }

// Take takes up to so many items, of so many bytes, in the order in which they go. Take waits
// for more of them for the duration, and the lane gets no other place meanwhile. Where items
// keep places of a gate, Take takes none: those items go one by one. Nor does Take during a pause,
// which may have begun meanwhile.
func (m *More[T]) Take(items, bytes int, wait time.Duration) (taken []T) {
	q, l := m.q, m.lane
	m.taken = true
	q.mu.Lock()
	if f := (&filling{items, bytes, make(chan struct{}, 1)}); wait > 0 && items > 0 && !l.keeps() && l.room(f) {
		l.filling = f
		q.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-f.full:
		case <-timer.C:
		}
		timer.Stop()
		q.mu.Lock()
		l.filling = nil
	}
	now := q.now()
	if l.keeps() || l.isPaused(now) {
		items = 0
	}
	for len(taken) < items && l.waiting > 0 && int(l.next().Bytes) <= bytes {
		it := l.next()
		q.remove(it)
		bytes -= int(it.Bytes)
		if it.gated != nil && l.held != nil {
			it.gated.end(l, now)
		}
		taken = append(taken, it.Value)
	}
	l.gathers = false
	q.place(l, now)
	q.handOut(now)
	return taken
}

// keeps reports whether items of the lane keep places of a gate.
func (l *Lane[T]) keeps() bool {
	if l.held != nil {
		for _, g := range l.held.gates {
			if g.Gate.Keeps() {
				return true
			}
		}
	}
	return false
}
