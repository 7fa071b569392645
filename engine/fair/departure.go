package fair

import (
	"time"

	"xtimer/engine/flow"
)

// Departure is the instant at which the first byte of a call leaves, as the gates of its lane have counted it.
type Departure[T any] struct {
	queue *Queue[T]
	at    time.Duration
	gates []departed[T]
}

type departed[T any] struct {
	gate   *gate[T]
	former time.Duration
}

// Depart counts the first byte of a call that was handed out of a lane. The caller sends none before wait is
// over. It reports false if the call would have to wait for more than flow.Ahead: it is to wait in its lane again.
func (q *Queue[T]) Depart(l *Lane[T]) (d Departure[T], wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if l.held == nil {
		return d, 0, true
	}
	d.queue, d.at = q, now
	for _, g := range l.held.gates {
		if l.counts(g) {
			d.at = max(d.at, g.Departs(d.at))
		}
	}
	if wait = d.at - now; wait > flow.Ahead {
		return d, wait, false
	}
	for _, g := range l.held.gates {
		if l.counts(g) {
			d.gates = append(d.gates, departed[T]{g, g.Depart(d.at)})
		}
	}
	return d, wait, true
}

// Stay takes a departure back: no byte was sent.
func (d *Departure[T]) Stay() {
	if len(d.gates) == 0 {
		return
	}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	for _, g := range d.gates {
		g.gate.Stay(g.former, d.at)
	}
	d.gates = nil
}
