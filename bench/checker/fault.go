package checker

import "slices"

const (
	// unsynced is how long before a crash (ms) a call may have been answered
	// without its outcome being durable.
	unsynced = 2000
	// onTheWay is how long (ms) a call whose first byte had left before a change was
	// answered may take until a receiver notes it, on a machine with more to do than it
	// has cores.
	onTheWay = 1000
	// misfireAfter is how late (ms) a start must find a due for it to be a misfire.
	misfireAfter = 10_000
)

func anyFault(*Broken) bool { return true }

// forgets reports whether a fault may make the service forget what it has just
// done. A process that was told to end forgets nothing.
func (f *Broken) forgets() bool {
	return f.Fault != Terminate && f.Fault != Receiver && f.Fault != Start && f.Fault != Clock
}

// between finds the first fault that touches [from, to] (Unix ms) and is of a kind.
func (c *court) between(from, to int64, kind func(*Broken) bool) *Broken {
	// healed[i] is when the last of the faults up to the i-th was over.
	i, _ := slices.BinarySearch(c.healed, from)
	for ; i < len(c.faults) && c.faults[i].From <= to; i++ {
		if f := &c.faults[i]; f.To >= from && kind(f) {
			return f
		}
	}
	return nil
}

// forgot is the crash, up to an instant (Unix ms), that may have taken away what became
// of a call.
func (c *court) forgot(a *Arrived, to int64) *Broken {
	return c.between(a.At/1000, to, func(f *Broken) bool {
		return f.forgets() && f.Life == a.Life && (a.Done == 0 || f.From-a.Done/1000 <= c.run.Unsynced)
	})
}

// clock is what the service's clock showed at an instant, both in Unix µs.
func (c *court) clock(at int64) int64 {
	shown := at
	for i := range c.set {
		if c.set[i].From*1000 <= at {
			shown += c.set[i].By * 1000
		}
	}
	return shown
}

// back reports whether the clock was ever set back.
func (c *court) back() bool {
	return slices.ContainsFunc(c.set, func(f Broken) bool { return f.By < 0 })
}

// setBack reports whether the clock was set back while a call waited for the note that
// at most once needs, or for its way to the receiver: when it was begun, it was due.
func (c *court) setBack(o *Due, a *Arrived) bool {
	begun := a.Begun
	if o.timer.some((*Definition).atMostOnce) {
		begun -= c.run.Unsynced * 1000
	}
	return a.Begun != 0 && slices.ContainsFunc(c.set, func(f Broken) bool {
		return f.By < 0 && c.clock(f.From*1000)-f.By*1000 >= o.At*1000 && begun <= f.From*1000 && f.From*1000 <= a.At
	})
}

// near finds the first fault between a due and an instant (Unix ms). When the clock was
// set, nobody knows where on it a due is.
func (c *court) near(due, to int64) *Broken {
	if len(c.set) > 0 {
		due = 0
	}
	return c.between(due, to, anyFault)
}

// foundLate reports whether a due was found later than this (ms), by a start or when the
// clock was set ahead.
func (c *court) foundLate(due, by int64) bool {
	return slices.ContainsFunc(c.faults, func(f Broken) bool {
		switch {
		case f.Fault == Clock:
			return f.By > 0 && due < c.clock(f.From*1000)/1000-by+1000
		case f.Fault == Start:
			return due < f.Looked-by
		}
		return f.Life == 0 && f.From <= f.To-by && due <= f.To-by // its start was somewhere in it
	})
}
