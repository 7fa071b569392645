package fair

import "time"

// target is what is called: its limit, and the lanes of all apps to it.
type target[T any] struct {
	limit
	name    string
	key     string     // of its gate: see flow.TargetOf
	waiting int        // items in its lanes
	lanes   []*Lane[T] // all
	// parked are the lanes with items that wait for the limit, first come first
	// served, a list through Lane.behind.
	parked, parkedLast *Lane[T]
	hungry             bool          // in Queue.hungry: it has parked lanes and may have room
	onTime             time.Duration // when a call began last that is of no backlog
	starting           []*Lane[T]    // those of backlogs that leave room, first come first looked at
	silent             int           // how many of lanes stand in that pool
	filled             bool          // a lane may wait until the target answers: see fillsQuota
	limited            int           // its index in Queue.limited; -1: not there
}

// park makes a lane wait for a place of its target.
func (t *target[T]) park(l *Lane[T]) {
	l.parked = true
	if t.parkedLast != nil {
		t.parkedLast.behind = l
	} else {
		t.parked = l
	}
	t.parkedLast = l
}

// unpark takes the first parked lane.
func (t *target[T]) unpark() *Lane[T] {
	l := t.parked
	t.parked = l.behind
	if t.parked == nil {
		t.parkedLast = nil
	}
	l.behind, l.parked = nil, false
	return l
}
