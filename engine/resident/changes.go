package resident

import (
	"context"
	"sync"

	"xtimer/engine"
)

// Changes remembers which versions this process has made of late, so that a
// definition read from a tier before a change is not put into force after it.
// Entries live for changesKept, far longer than any read takes.
type Changes struct {
	mu       sync.Mutex
	Versions map[engine.TimerID]ChangeNote
	order    []ChangeNote // oldest first
}

type ChangeNote struct {
	id      engine.TimerID
	version uint32
	at      int64 // see ticks
}

const changesKept = 5 * minute

func (c *Changes) Note(id engine.TimerID, version uint32, ticks int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.order) && ticks-c.order[n].at > changesKept {
		n++
	}
	for _, o := range c.order[:n] {
		if c.Versions[o.id] == o {
			delete(c.Versions, o.id)
		}
	}
	x := ChangeNote{id, version, ticks}
	c.order = append(c.order[n:], x)
	c.Versions[id] = x
}

// Made tells whether a version was made at an instant of ticks or later.
func (c *Changes) Made(id engine.TimerID, ticks int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Versions[id].at >= ticks
}

// Newer tells whether a later version than this one was made.
func (c *Changes) Newer(id engine.TimerID, version uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Versions[id].version > version
}

// Claim lets one change at a time at a timer; release ends it.
func (m *Memory) Claim(ctx context.Context, id engine.TimerID) (release func(), err error) {
	sh := m.ShardOf(id)
	for {
		sh.Mu.Lock()
		ch := sh.Changing[id]
		if ch == nil {
			ch = make(chan struct{})
			sh.Changing[id] = ch
			sh.Mu.Unlock()
			return func() {
				sh.Mu.Lock()
				delete(sh.Changing, id)
				sh.Mu.Unlock()
				close(ch)
			}, nil
		}
		sh.Mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ClaimNew claims timers that nobody else knows yet; but for one whose id is taken, by
// a clock that had stepped back: that is claimed by whoever changes it.
func (m *Memory) ClaimNew(cs []*engine.Change) (release func()) {
	ch := make(chan struct{})
	for _, c := range cs {
		sh := m.ShardOf(c.ID)
		sh.Mu.Lock()
		if sh.Changing[c.ID] == nil {
			sh.Changing[c.ID] = ch
		}
		sh.Mu.Unlock()
	}
	return func() {
		for _, c := range cs {
			sh := m.ShardOf(c.ID)
			sh.Mu.Lock()
			if sh.Changing[c.ID] == ch {
				delete(sh.Changing, c.ID)
			}
			sh.Mu.Unlock()
		}
		close(ch)
	}
}

// TryClaim is claim for a caller that does not wait: change is the one that is under way.
func (m *Memory) TryClaim(id engine.TimerID) (release func(), change chan struct{}) {
	sh := m.ShardOf(id)
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	if ch := sh.Changing[id]; ch != nil {
		return nil, ch
	}
	ch := make(chan struct{})
	sh.Changing[id] = ch
	return func() {
		sh.Mu.Lock()
		delete(sh.Changing, id)
		sh.Mu.Unlock()
		close(ch)
	}, nil
}
