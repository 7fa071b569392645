package scheduler

import (
	"context"
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

// claim lets one change at a time at a timer; release ends it.
func (e *Scheduler) claim(ctx context.Context, id engine.TimerID) (release func(), err error) {
	sh := e.shardOf(id)
	for {
		sh.mu.Lock()
		ch := sh.changing[id]
		if ch == nil {
			ch = make(chan struct{})
			sh.changing[id] = ch
			sh.mu.Unlock()
			return func() {
				sh.mu.Lock()
				delete(sh.changing, id)
				sh.mu.Unlock()
				close(ch)
			}, nil
		}
		sh.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claimNew claims timers that nobody else knows yet; but for one whose id is taken, by
// a clock that had stepped back: that is claimed by whoever changes it.
func (e *Scheduler) claimNew(cs []*engine.Change) (release func()) {
	ch := make(chan struct{})
	for _, c := range cs {
		sh := e.shardOf(c.ID)
		sh.mu.Lock()
		if sh.changing[c.ID] == nil {
			sh.changing[c.ID] = ch
		}
		sh.mu.Unlock()
	}
	return func() {
		for _, c := range cs {
			sh := e.shardOf(c.ID)
			sh.mu.Lock()
			if sh.changing[c.ID] == ch {
				delete(sh.changing, c.ID)
			}
			sh.mu.Unlock()
		}
		close(ch)
	}
}

// tryClaim is claim for a caller that does not wait: change is the one that is under way.
func (e *Scheduler) tryClaim(id engine.TimerID) (release func(), change chan struct{}) {
	sh := e.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if ch := sh.changing[id]; ch != nil {
		return nil, ch
	}
	ch := make(chan struct{})
	sh.changing[id] = ch
	return func() {
		sh.mu.Lock()
		delete(sh.changing, id)
		sh.mu.Unlock()
		close(ch)
	}, nil
}
