package simulator

import (
	"slices"
	"time"
)

type clockStep struct {
	at       time.Duration
	from, to int64 // Unix ms
}

// earliest is the earliest instant that the wall clock showed from at, when it showed
// wall, until then. Of several nodes, another may have made a change than the one that was asked.
func (m *machine) earliest(at time.Duration, wall int64, until time.Duration) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.steps {
		if at <= s.at && s.at <= until {
			wall = min(wall, s.to)
		}
	}
	if m.clocks {
		wall -= (farthest + tolerated).Milliseconds()
	}
	return wall
}

// since is the time since the run began, which no clock step changes.
func (m *machine) since() time.Duration { return time.Since(m.begin) }

// now is the wall clock.
func (m *machine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall()
}

// wallOf is the clock that a life goes by; mu is held. A node does not go by a clock that is far off.
func (m *machine) wallOf(l *life) time.Time {
	if l.node != nil && !l.node.isFar() {
		return l.node.wall()
	}
	return m.wall()
}

// wall is now; mu is held.
func (m *machine) wall() time.Time { return time.Now().Add(m.offset) }

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("02T15:04:05.000") }

// latest is the latest instant that the wall clock showed.
func (m *machine) latest() int64 {
	to := m.left.wall
	for _, s := range m.steps {
		to = max(to, s.from)
	}
	return to
}

// back reports whether the clock was ever set back.
func (m *machine) back() bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.to < s.from })
}

// ahead reports whether the clock was ever set forward.
func (m *machine) ahead() bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.to > s.from })
}

// reached reports whether the clock stood beyond a due before an instant, and was set
// back: then the due was taken on time, and no step or start made it late.
func (m *machine) reached(due int64, before time.Duration) bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.at < before && s.to < s.from && due <= s.from })
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
