package simulator

import (
	"slices"
	"time"
)

// latest is the latest instant that the wall clock showed.
func (m *machine) latest() int64 {
	to := m.left.wall
	for _, s := range m.steps {
		to = max(to, s.from)
	}
	return to
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
