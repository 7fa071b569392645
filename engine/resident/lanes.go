package resident

import (
	"math"
	"sync"
	"sync/atomic"

	"xtimer/engine"
)

// Lanes bound what waits in memory, so that no target's backlog costs memory without
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
type Lanes struct {
	limit    int64
	Resident atomic.Int64 // unfinished tasks in memory
	used     atomic.Int64 // lanes that have any

	mu      sync.Mutex // guards the next two; it comes before that of a lane
	byID    map[engine.Lane]*Lane
	pruneAt int

	Turns turns
}

// turns are the spilled lanes, which refill reads in turns.
type turns struct {
	mu   sync.Mutex // comes after that of a lane
	list []*Lane
	More chan struct{} // wakes refill
}

const (
	leastShare = 64
	// fewLanes is how many lanes are kept before those without use are forgotten.
	fewLanes = 1 << 14
)

// Lane is what one lane has in memory. Its Mu may be taken under that of a shard.
type Lane struct {
	Id   engine.Lane
	all  *Lanes
	Mu   sync.Mutex // guards all below
	dead bool       // forgotten: another may stand in its place

	Resident int  // unfinished tasks in memory
	Spilled  bool // rows wait that are not in memory
	// leaving are the tasks that wait for their row, and go then; while staying, they
	// stay: refill has read all rows and is about to queue them.
	Leaving map[*Task]struct{}
	Staying bool
	// next: all rows that wait are later than this place.
	Next engine.Place
	// lowest is the lowest place of the rows that joined since refill last looked.
	Lowest engine.Place
}

// LastPlace is later than all places.
var LastPlace = engine.Place{NotBefore: math.MaxInt64}

func NewLanes(limit int) *Lanes {
	return &Lanes{limit: int64(limit), byID: map[engine.Lane]*Lane{}, Turns: turns{More: make(chan struct{}, 1)}}
}

// Of finds or makes the memory of a lane.
func (ls *Lanes) Of(id engine.Lane) *Lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byID[id]
	if l == nil {
		if len(ls.byID) >= max(ls.pruneAt, fewLanes) {
			ls.prune()
		}
		l = &Lane{Id: id, all: ls, Lowest: LastPlace, Leaving: map[*Task]struct{}{}}
		ls.byID[id] = l
	}
	return l
}

// prune forgets the lanes that have nothing. Timers may still point to a dead one: see
// live.memory. Mu is held.
func (ls *Lanes) prune() {
	for id, l := range ls.byID {
		l.Mu.Lock()
		if l.Resident == 0 && !l.Spilled {
			l.dead = true
			delete(ls.byID, id)
		}
		l.Mu.Unlock()
	}
	ls.pruneAt = 2 * len(ls.byID)
}

// enter counts a task that is in memory now.
func (l *Lane) enter() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Resident++; l.Resident == 1 {
		l.all.used.Add(1)
	}
	l.all.Resident.Add(1)
}

// leave counts a task that has gone.
func (l *Lane) leave() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.all.Resident.Add(-1)
	if l.Resident--; l.Resident == 0 {
		l.all.used.Add(-1)
	}
}

// Room is how many more tasks the lane may have in memory. Mu is held.
func (l *Lane) Room() int {
	free := l.all.limit - l.all.Resident.Load()
	share := max(l.all.limit/max(l.all.used.Load(), 1), min(leastShare, l.all.limit/16)) - int64(l.Resident)
	return int(max(free, share))
}

// isFull reports whether the lane has no room for another task.
func (l *Lane) isFull() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Spilled || l.Room() <= 0
}

// Takes reports whether the task of a due may wait in memory. If it may not, it leaves
// when it has a row: its state must be Leaving.
func (l *Lane) Takes(t *Task) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if !l.Spilled && l.Room() >= 0 {
		return true
	}
	l.Leaving[t] = struct{}{}
	l.spill()
	return false
}

// Admits reports whether a row at a place may come into memory. If it may not, refill
// brings it when there is room.
func (l *Lane) Admits(at engine.Place) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if !l.Spilled && l.Room() > 0 {
		return true
	}
	l.joins(at)
	l.spill()
	return false
}

// Left notes that a task that was to leave has left, is cancelled, or is queued.
func (l *Lane) Left(t *Task) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	delete(l.Leaving, t)
}

// stays reports whether what was to leave stays.
func (l *Lane) stays() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Staying
}

// Waits notes a row of a task that leaves memory.
func (l *Lane) Waits(at engine.Place) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.joins(at)
	l.spill()
}

// crowded reports whether the lane has more in memory than it may, or rows that wait.
func (l *Lane) crowded() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Spilled || l.Room() < 0
}

// joins notes a row that waits. Mu is held.
func (l *Lane) joins(at engine.Place) {
	at.Key.Due-- // a place before it
	if at.Compare(l.Lowest) < 0 {
		l.Lowest = at
	}
}

// spill has refill read the lane. Mu is held.
func (l *Lane) spill() {
	if !l.Spilled {
		l.Spilled, l.Next = true, LastPlace
		l.all.Turns.Add(l)
	}
}

func (t *turns) Add(l *Lane) {
	t.mu.Lock()
	t.list = append(t.list, l)
	t.mu.Unlock()
	t.poke()
}

// Take gives all lanes whose turn it is; those that are not read to their end are added
// again.
func (t *turns) Take() []*Lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.list
	t.list = nil
	return list
}

func (t *turns) poke() {
	select {
	case t.More <- struct{}{}:
	default:
	}
}

// AnySpilled reports whether a lane has rows that are not in memory.
func (ls *Lanes) AnySpilled() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byID {
		l.Mu.Lock()
		spilled := l.Spilled
		l.Mu.Unlock()
		if spilled {
			return true
		}
	}
	return false
}
