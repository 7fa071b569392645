package simulator

import (
	"time"
)

type clockStep struct {
	at       time.Duration
	from, to int64 // Unix ms
}

// earliest is the earliest instant that the wall clock showed from at, when it showed
// wall, until then.
func (m *machine) earliest(at time.Duration, wall int64, until time.Duration) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.steps {
		if at <= s.at && s.at <= until {
			wall = min(wall, s.to)
		}
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

// wallOf is the clock that a life sees; mu is held.
func (m *machine) wallOf(l *life) time.Time {
	if l.node != nil {
		return l.node.wall()
	}
	return m.wall()
}

// wall is now; mu is held.
func (m *machine) wall() time.Time { return time.Now().Add(m.offset) }

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("02T15:04:05.000") }
