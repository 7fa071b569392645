package scheduler

import (
	"math"
	"sync"
	"sync/atomic"

	"xtimer/engine"
)

// lanes bound what waits in memory, so that no target's backlog costs memory without
// end and none stands before another's:
//
//	due, or row ──► in memory, while its lane has room ──► queue
//	     └── else ─► a row in the cold tier ──(refill: by lane, in order)──┘
//
// A lane (the work of one app for one target, engine.Lane) has room while fewer than
// limit tasks are in memory in all; beyond that, while it has less than its share,
// limit divided by the lanes that have any, and at least leastShare (of a small limit a
// 16th). From the first task that found no room until its last row is read back, a lane
// is spilled: a one-shot that comes due in it meanwhile becomes a row behind those that
// wait, so that their order stays, and a recurring timer falls behind: one row stands for
// all its dues (unfold.go). A task in memory costs about 700 bytes.
type lanes struct {
	limit    int64
	resident atomic.Int64 // unfinished tasks in memory
	used     atomic.Int64 // lanes that have any

	mu      sync.Mutex // guards the next two; it comes before that of a lane
	byID    map[engine.Lane]*laneMemory
	pruneAt int

	turns turns
}

// turns are the spilled lanes, which refill reads in turns.
type turns struct {
	mu   sync.Mutex // comes after that of a lane
	list []*laneMemory
	more chan struct{} // wakes refill
}

const (
	leastShare = 64
	// fewLanes is how many lanes are kept before those without use are forgotten.
	fewLanes = 1 << 14
)

// laneMemory is what one lane has in memory. Its mu may be taken under that of a shard.
type laneMemory struct {
	id   engine.Lane
	all  *lanes
	mu   sync.Mutex // guards all below
	dead bool       // forgotten: another may stand in its place

	resident int  // unfinished tasks in memory
	spilled  bool // rows wait that are not in memory
	// leaving are the tasks that wait for their row, and go then; while staying, they
	// stay: refill has read all rows and is about to queue them.
	leaving map[*task]struct{}
	staying bool
	// next: all rows that wait are later than this place.
	next engine.Place
	// lowest is the lowest place of the rows that joined since refill last looked.
	lowest engine.Place
}

// lastPlace is later than all places.
var lastPlace = engine.Place{NotBefore: math.MaxInt64}

func newLanes(limit int) *lanes {
	return &lanes{limit: int64(limit), byID: map[engine.Lane]*laneMemory{}, turns: turns{more: make(chan struct{}, 1)}}
}

// of finds or makes the memory of a lane.
func (ls *lanes) of(id engine.Lane) *laneMemory {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byID[id]
	if l == nil {
		if len(ls.byID) >= max(ls.pruneAt, fewLanes) {
			ls.prune()
		}
		l = &laneMemory{id: id, all: ls, lowest: lastPlace, leaving: map[*task]struct{}{}}
		ls.byID[id] = l
	}
	return l
}

// prune forgets the lanes that have nothing. Timers may still point to a dead one: see
// live.memory. mu is held.
func (ls *lanes) prune() {
	for id, l := range ls.byID {
		l.mu.Lock()
		if l.resident == 0 && !l.spilled {
			l.dead = true
			delete(ls.byID, id)
		}
		l.mu.Unlock()
	}
	ls.pruneAt = 2 * len(ls.byID)
}

// inMemory is the memory of the timer's lane. The mu of its shard is held.
func (lv *live) inMemory() *laneMemory {
	l := lv.memory
	l.mu.Lock()
	dead := l.dead
	l.mu.Unlock()
	if dead {
		l = l.all.of(l.id)
		lv.memory = l
	}
	return l
}

// enter counts a task that is in memory now.
func (l *laneMemory) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resident++; l.resident == 1 {
		l.all.used.Add(1)
	}
	l.all.resident.Add(1)
}

// leave counts a task that has gone.
func (l *laneMemory) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.resident.Add(-1)
	if l.resident--; l.resident == 0 {
		l.all.used.Add(-1)
	}
}

// room is how many more tasks the lane may have in memory. mu is held.
func (l *laneMemory) room() int {
	free := l.all.limit - l.all.resident.Load()
	share := max(l.all.limit/max(l.all.used.Load(), 1), min(leastShare, l.all.limit/16)) - int64(l.resident)
	return int(max(free, share))
}

// isFull reports whether the lane has no room for another task.
func (l *laneMemory) isFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spilled || l.room() <= 0
}

// takes reports whether the task of a due may wait in memory. If it may not, it leaves
// when it has a row: its state must be isLeaving.
func (l *laneMemory) takes(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.spilled && l.room() >= 0 {
		return true
	}
	l.leaving[t] = struct{}{}
	l.spill()
	return false
}

// admits reports whether a row at a place may come into memory. If it may not, refill
// brings it when there is room.
func (l *laneMemory) admits(at engine.Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.spilled && l.room() > 0 {
		return true
	}
	l.joins(at)
	l.spill()
	return false
}

// left notes that a task that was to leave has left, is cancelled, or is queued.
func (l *laneMemory) left(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leaving, t)
}

// stays reports whether what was to leave stays.
func (l *laneMemory) stays() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.staying
}

// waits notes a row of a task that leaves memory.
func (l *laneMemory) waits(at engine.Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joins(at)
	l.spill()
}

// crowded reports whether the lane has more in memory than it may, or rows that wait.
func (l *laneMemory) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spilled || l.room() < 0
}

// joins notes a row that waits. mu is held.
func (l *laneMemory) joins(at engine.Place) {
	at.Key.Due-- // a place before it
	if at.Compare(l.lowest) < 0 {
		l.lowest = at
	}
}

// spill has refill read the lane. mu is held.
func (l *laneMemory) spill() {
	if !l.spilled {
		l.spilled, l.next = true, lastPlace
		l.all.turns.add(l)
	}
}

func (t *turns) add(l *laneMemory) {
	t.mu.Lock()
	t.list = append(t.list, l)
	t.mu.Unlock()
	t.poke()
}

// take gives all lanes whose turn it is; those that are not read to their end are added
// again.
func (t *turns) take() []*laneMemory {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.list
	t.list = nil
	return list
}

func (t *turns) poke() {
	select {
	case t.more <- struct{}{}:
	default:
	}
}
