package fair

import (
	"slices"
	"time"
)

// Departure is how a call leaves that was handed out, at the gates of its lane:
//
//	Depart ── every gate lets the first byte leave ──► counted there ── Stay: no byte was sent
//	      └── one does not ──► waits at the gates, behind those that came first
//	                           └── for too long ──► not counted: the call is to wait in its lane again
//
// A Departure belongs to one goroutine; the mu of the queue guards the fields that gates read.
type Departure[T any] struct {
	Waited time.Duration // all times together
	queue  *Queue[T]
	target *target[T]
	since  time.Duration // when the wait began
	shift  time.Duration // by which its target counts the call as younger
	at     time.Duration // when the call is expected to leave, or has left
	counts []departed[T] // the gates that have counted the call; nil: none
	waits  []*gate[T]    // the gates at which the call waits
}

type departed[T any] struct {
	gate   *gate[T]
	former time.Duration
}

const (
	// longestDeparture is the longest that a call waits. It is for a limit that was put or lowered while calls
	// were prepared: else they wait for no longer than their preparation took.
	longestDeparture = 10 * time.Second
	// lookAgain is how often a call looks that waits: its limit may have been lifted.
	lookAgain = time.Second
)

// Depart waits until the first byte of a call that was handed out of a lane may leave, and counts it. It reports
// false if that would take longer than longestDeparture. A call that is counted already goes on.
func (q *Queue[T]) Depart(l *Lane[T], d *Departure[T]) (ok bool) {
	if d.counts != nil || !l.IsGated() {
		return true
	}
	d.queue, d.target = q, l.target
	for began := q.now(); ; {
		now := q.now()
		wait, closed := q.depart(l, d, now)
		if ok = wait == 0; ok || closed || now+wait-began > longestDeparture {
			d.cease(now)
			return ok
		}
		time.Sleep(min(wait, lookAgain))
	}
}

// depart counts a call, or puts the call among those that wait and returns for how long that is expected to take.
func (q *Queue[T]) depart(l *Lane[T], d *Departure[T], now time.Duration) (wait time.Duration, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var gates []*gate[T]
	d.at = now
	if l.held != nil {
		for _, g := range l.held.gates {
			if l.counts(g) {
				gates = append(gates, g)
				d.at = max(d.at, g.departs(d, now))
			}
		}
	}
	if wait = d.at - now; wait == 0 {
		d.counts = make([]departed[T], len(gates))
		for i, g := range gates {
			d.counts[i] = departed[T]{g, g.Depart(now)}
		}
		return 0, false
	}
	if d.waits == nil {
		d.since = now
		d.target.waits++
		d.target.since += now
	}
	for _, g := range gates {
		if !slices.Contains(d.waits, g) {
			d.waits = append(d.waits, g)
			g.setReady(append(g.ready, d))
		}
	}
	return wait, q.closed
}

// departs is when a call can leave through a gate, behind those that came first and leave no later.
func (g *gate[T]) departs(d *Departure[T], now time.Duration) time.Duration {
	at := g.Departs(now)
	for _, other := range g.ready {
		if other == d {
			break
		}
		if other.at <= at {
			at += g.Every()
		}
	}
	return at
}

// setReady sets which calls wait for their departures.
func (g *gate[T]) setReady(calls []*Departure[T]) {
	g.ready = calls
	g.Ready(len(calls))
}

// cease ends the wait of a call at its gates, which may hand out others.
func (d *Departure[T]) cease(now time.Duration) {
	if d.waits == nil {
		return
	}
	q := d.queue
	q.mu.Lock()
	waited, t := now-d.since, d.target
	d.Waited, d.shift = d.Waited+waited, d.shift+waited
	t.waits--
	t.since -= d.since
	t.begun += waited
	for _, g := range d.waits {
		g.setReady(slices.DeleteFunc(g.ready, func(other *Departure[T]) bool { return other == d }))
		q.admit(g, now)
	}
	d.waits = nil
	q.handOut(now)
}

// Leave ends a departure: sent reports whether the first byte has left.
func (d *Departure[T]) Leave(sent bool) {
	if !sent {
		d.Stay()
	}
	d.counts = nil
}

// End ends a departure, and the wait of which its target knows: the call is over.
func (d *Departure[T]) End() {
	d.Stay()
	if d.shift != 0 {
		d.queue.mu.Lock()
		d.target.begun -= d.shift
		d.shift = 0
		d.queue.mu.Unlock()
	}
}

// Stay takes a departure back that has not ended, if there is one: no byte was sent.
func (d *Departure[T]) Stay() {
	if d.counts == nil {
		return
	}
	q := d.queue
	q.mu.Lock()
	now := q.now()
	for _, c := range d.counts {
		c.gate.Stay(c.former, d.at)
		q.admit(c.gate, now)
	}
	d.counts = nil
	q.handOut(now)
}
