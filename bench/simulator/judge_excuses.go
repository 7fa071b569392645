package simulator

import (
	"slices"
	"time"

	"xtimer/engine"
)

// latest is the latest instant that the wall clock showed.
func (m *machine) latest() int64 {
	to := m.left.wall
	for _, s := range m.steps {
		to = max(to, s.from)
	}
	return to
}

// setBack reports whether the clock was set back while a call waited for the note
// that at most once needs, or for its dial: when it was begun, it was due.
func (m *machine) setBack(t *timer, c *call) bool {
	begun := c.asked
	if !t.all(func(v version) bool { return v.Delivery == engine.AtLeastOnce }) {
		begun -= m.unsynced()
	}
	return slices.ContainsFunc(m.steps, func(s clockStep) bool {
		return s.to < s.from && s.from >= c.key.Due && begun <= s.at && s.at <= c.at
	})
}

// foundLate reports whether a start or a step of the clock found a due late by more than this.
func (m *machine) foundLate(due int64, by time.Duration) bool {
	for _, looked := range m.looks { // also of one that was not told that its decision was stored
		if due < looked-by.Milliseconds() {
			return true
		}
	}
	for _, s := range m.steps {
		if s.to > s.from && due < s.to-by.Milliseconds()+1000 {
			return true
		}
	}
	return false
}

// forgot reports whether the process died before it could have noted an answer.
func (m *machine) forgot(t *timer, calls []*call) bool {
	for _, c := range calls {
		if c.answer.class == engine.ClassOK && m.diedAfter(c) != nil {
			return true
		}
	}
	return false
}

// diedAfter is the death that may have taken away what a call's answer was.
func (m *machine) diedAfter(c *call) *end {
	for i := range m.ended {
		if x := &m.ended[i]; x.life == c.life && x.crashed && (c.ended == 0 || c.ended >= x.at-m.unsynced()) {
			return x
		}
	}
	return nil
}

// unsynced is how long an answer may take to the disk.
func (m *machine) unsynced() time.Duration {
	d := 100*time.Millisecond + 4*m.script.Pace
	for _, s := range m.script.Steps {
		if s.Kind == Slow || s.Kind == Stall {
			d = max(d, 4*s.By+100*time.Millisecond)
		}
	}
	return d
}

// back reports whether the clock was ever set back.
func (m *machine) back() bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.to < s.from })
}

// reached reports whether the clock stood beyond a due before a step of it, and was set
// back: then the due was taken on time, and no step made it late.
func (m *machine) reached(due int64, before clockStep) bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.at < before.at && s.to < s.from && due <= s.from })
}

// asleep reports whether nobody saw a step, as no process ran: the next start finds what
// it made late, unless the clock was set back meanwhile.
func (m *machine) asleep(s clockStep) bool {
	for _, x := range slices.Backward(m.ended) {
		if x.at <= s.at {
			return x.upWall == 0 || s.at < x.up
		}
	}
	return false
}

// forward reports whether the clock was not set back since the end of a life.
func (m *machine) forward(x end) bool {
	return !slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.at >= x.at && s.to < s.from })
}
