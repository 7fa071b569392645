package resident

import (
	"maps"
	"sync"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// FormerRows are the timers that have rows of former generations. These rows are to be
// cancelled; readers see their tasks as cancelled already.
type FormerRows struct {
	Inbox[*FormerTimer]
	mu     sync.Mutex
	timers map[engine.TimerID]*FormerTimer
}

// FormerTimer is a timer that has rows of generations before one.
type FormerTimer struct {
	ID     engine.TimerID
	After  int64 // the due of the last row that was looked at
	before uint32
	reason string
	at     int64 // when they ended (Unix ms)
}

// End has the rows of former generations of a timer cancelled. def is its definition; nil if
// the timer was deleted. former is the definition that ended now, nil if a row was found.
func (f *FormerRows) End(id engine.TimerID, former, def *engine.Timer, now int64) {
	x := &FormerTimer{ID: id, before: ^uint32(0), reason: policy.ReasonOf(former, def), at: now, After: -1}
	if def != nil {
		x.before, x.at = def.Generation, def.UpdatedAt
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if was := f.timers[id]; was != nil && was.before == x.before && former == nil {
		return // found, and known
	}
	f.timers[id] = x
	f.Add(x)
}

// Seen gives a timer another turn, or forgets it.
func (f *FormerRows) Seen(x *FormerTimer, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.timers[x.ID] != x: // it has ended again
	case more:
		f.Add(x)
	default:
		delete(f.timers, x.ID)
	}
}

// FormerTimers are the timers that have such rows, for a reader of history. A reader takes
// them before it reads a record: the record may be stored as cancelled meanwhile, and its
// timer be forgotten here.
type FormerTimers map[engine.TimerID]*FormerTimer

// Timers are those now.
func (f *FormerRows) Timers() FormerTimers {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.timers)
}

// Show turns a stored task into what a reader sees: cancelled, if its row is to be cancelled.
func (ts FormerTimers) Show(t *engine.Task) {
	if x := ts[t.Key.Timer]; x != nil && !t.Status.Final() && t.Generation < x.before {
		t.Status, t.Reason, t.Ended, t.NotBefore = engine.Cancelled, x.reason, x.at, 0
	}
}
