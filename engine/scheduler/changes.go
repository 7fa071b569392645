package scheduler

import (
	"sync"

	"xtimer/engine"
)

// changes remembers which versions this process has made of late, so that a
// definition read from a tier before a change is not put into force after it.
// Entries live for changesKept, far longer than any read takes.
type changes struct {
	mu       sync.Mutex
	versions map[engine.TimerID]changeNote
	order    []changeNote // oldest first
}

type changeNote struct {
	id      engine.TimerID
	version uint32
	at      int64 // see ticks
}

const changesKept = 5 * minute

func (c *changes) note(id engine.TimerID, version uint32, ticks int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.order) && ticks-c.order[n].at > changesKept {
		n++
	}
	for _, o := range c.order[:n] {
		if c.versions[o.id] == o {
			delete(c.versions, o.id)
		}
	}
	x := changeNote{id, version, ticks}
	c.order = append(c.order[n:], x)
	c.versions[id] = x
}

// made tells whether a version was made at an instant of ticks or later.
func (c *changes) made(id engine.TimerID, ticks int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[id].at >= ticks
}

// newer tells whether a later version than this one was made.
func (c *changes) newer(id engine.TimerID, version uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[id].version > version
}
