package resident

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"xtimer/engine"
	"xtimer/engine/fair"
)

// Lanes bound what waits in memory, so that no target's backlog costs memory without
// end and none stands before another's:
//
//	due, or row ──► in memory, while its lane has room ──► queue
//	     └── else ─► a row in the cold tier ──(refill: by lane, in order)──┘
//
// A lane (the work of one app for one target, engine.Lane) has room while fewer than limit tasks are in memory in all;
// beyond that, while it has less than its share, limit divided by the lanes that have any, and at least leastShare (of a
// small limit a 16th). From the first task that found no room until its last row is read back, a lane is spilled: a
// one-shot that comes due in it meanwhile becomes a row behind those that wait, so that their order stays, and a recurring
// timer falls behind: one row stands for all its dues (unfold.go); not so in a shard without such rows, see isBehind. A
// task in memory costs about 700 bytes.
//
// A lane that goes through a gate of the queue (engine/fair: a pause, the limit of a target or
// of a flow key) may be held for days, whatever holds it. It has HeldMost tasks in memory at most.
type Lanes struct {
	limit    int64
	Resident atomic.Int64 // unfinished tasks in memory
	Leaving  atomic.Int64 // those that wait for their row, to leave memory
	used     atomic.Int64 // lanes that have any
	spilled  atomic.Int64 // lanes that are spilled
	// HeldMost is how many tasks of a lane with gates are in memory at most; the rest are rows.
	HeldMost int

	mu      sync.Mutex // guards the next two; it comes before that of a lane
	byID    map[engine.Lane]*Lane
	pruneAt int

	Turns    Inbox[*Lane]  // the spilled lanes, which refill reads in turns
	resuming *atomic.Int64 // see Memory
	queue    *fair.Queue[*Task]
	order    order
}

const (
	leastShare = 64
	// fewLanes is how many lanes are kept before those without use are forgotten.
	fewLanes = 1 << 14
)

// Lane is what one lane has in memory. Its Mu may be taken under that of a shard.
type Lane struct {
	ID  engine.Lane
	all *Lanes

	// Each due reads these without a lock. Resident is how many unfinished tasks are in memory,
	// or forgotten. Spilled says that rows wait which are not in memory; it is written under mu.
	resident atomic.Int64
	spilled  atomic.Bool
	// queued is the lane of the queue in which its tasks wait, or one of them; nil: no timer came yet. See queueLane.
	queued atomic.Pointer[fair.Lane[*Task]]
	ahead  atomic.Int64 // one-shots in the wheel that came while the lane was gated
	early  atomic.Int64 // of resident: those that are early

	mu       sync.Mutex // guards all below
	rowsIn   engine.Set // rows wait of timers in these shards
	formerIn engine.Set // … and in these shards a former process, or another node, left rows
	// leaving are the tasks that wait for their row, and go then; while staying, they stay: refill has read all rows and is
	// about to queue them.
	leaving map[*Task]*fair.Mark[*Task]
	staying bool
	// next: all rows that wait are later than this place.
	next engine.Place
	// lowest is the lowest place of the rows that joined since refill last looked.
	lowest        engine.Place
	looked, wakes int64 // when refill found no row, and when the next row may be tried: see mayLook
	told
	// page is how many rows refill reads at a time: fewer where they are ranges, of which only some are taken in a turn.
	page int
	// stock is how many tasks refill keeps in memory.
	stock int
}

// LastPlace is later than all places.
var lastPlace = engine.Place{NotBefore: math.MaxInt64}

func newLanes(limit int, q *fair.Queue[*Task]) *Lanes {
	return &Lanes{limit: int64(limit), HeldMost: heldMost, queue: q, byID: map[engine.Lane]*Lane{}, Turns: newInbox[*Lane]()}
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
		l = &Lane{ID: id, all: ls, lowest: lastPlace, told: told{from: fair.None}, leaving: map[*Task]*fair.Mark[*Task]{}, page: refillPage, stock: leastStock}
		ls.byID[id] = l
	}
	return l
}

// of finds or makes that of a timer.
func (ls *Lanes) of(t *engine.Timer) *Lane {
	l := ls.Of(t.Lane())
	if l.queued.Load() == nil {
		l.isIn(ls.queueOf(t))
	}
	return l
}

// isGated reports whether the lane goes through a gate, or may.
func (l *Lane) isGated() bool {
	q := l.queueLane()
	return q != nil && q.IsGated()
}

// queueLane is a lane of the queue in which tasks of the lane wait; nil: none is known. If the queue has forgotten the
// lane, queueLane returns the lane that stands in its place.
func (l *Lane) queueLane() *fair.Lane[*Task] {
	q := l.queued.Load()
	if q == nil {
		return nil
	}
	if living := l.all.queue.Living(q); living != q {
		l.queued.CompareAndSwap(q, living)
		return living
	}
	return q
}

// ofRow finds or makes that of a row of a timer.
func (ls *Lanes) ofRow(t *engine.Timer, o *engine.Owed) *Lane {
	if t.IsForced(o) {
		l := ls.Of(o.Lane)
		l.isIn(ls.forcedQueueOf(t))
		return l
	}
	return ls.of(t)
}

// prune forgets the lanes that have nothing. Timers may still point to one of those: see Lane.current. mu is held.
func (ls *Lanes) prune() {
	for id, l := range ls.byID {
		l.mu.Lock()
		if !l.spilled.Load() && len(l.expected) == 0 && l.ahead.Load() == 0 && l.resident.CompareAndSwap(0, forgotten) {
			delete(ls.byID, id)
		}
		l.mu.Unlock()
	}
	ls.pruneAt = 2 * len(ls.byID)
}

// left notes that a task that was to leave has left, is cancelled, or is queued.
func (l *Lane) left(t *Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.queue.Move(l.leaving[t], fair.None)
	delete(l.leaving, t)
	l.all.Leaving.Add(-1)
}

// stays reports whether what was to leave stays.
func (l *Lane) stays() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.staying
}

// Waits notes a row of a task that leaves memory.
func (l *Lane) Waits(at engine.Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joins(at)
}

// WaitsIn notes that timers in shards that were just taken may have rows, at any place of the lane.
func (l *Lane) WaitsIn(of engine.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lowest, l.formerIn = engine.Place{}, l.formerIn.Union(of)
	l.spill(of)
	l.tell()
}

// crowded reports whether the lane has more in memory than it may, or rows that wait.
func (l *Lane) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spilled.Load() || l.room() < 0
}

// joins notes a row that waits, and has refill read the lane. mu is held.
func (l *Lane) joins(at engine.Place) {
	shard := at.Key.Timer.Shard()
	at.Key.Due-- // a place before it
	if at.Compare(l.lowest) < 0 {
		l.lowest = at
	}
	l.spill(engine.SetOf(shard))
	l.tell()
}

// spill has refill read the lane, in which rows wait of timers in shards. mu is held.
func (l *Lane) spill(of engine.Set) {
	l.rowsIn = l.rowsIn.Union(of)
	if !l.spilled.Load() {
		l.all.spilled.Add(1)
		l.next = lastPlace
		l.spilled.Store(true)
		l.all.Turns.Add(l)
	}
}

// AnySpilled reports whether a lane has rows that are not in memory.
func (ls *Lanes) AnySpilled() bool { return ls.spilled.Load() > 0 }

const (
	// Refill keeps at least leastStock tasks of a spilled lane in memory: a lane with 1,000 calls in flight, each of
	// 100 ms, has 1 s of them. Where little is left, and during a turn half of what the turn brings was called, it keeps
	// twice as many, up to mostStock; where the stock is full, half as many: batches for one target take 100,000 tasks a
	// second, and a turn may wait for a settle of 50,000. The stock is at most a quarter of what may wait in memory, all
	// lanes together. A turn brings a tenth of the stock.
	leastStock = 10_000
	mostStock  = 80_000
	// refillPage is how many rows refill reads at most at a time, and fewestRead at least.
	refillPage = 1_000
	// plenty: with so many tasks in memory, a spilled lane has all dues wait behind its rows. The
	// other half of the room is for the rows.
	plenty     = leastStock / 2
	fewestRead = 16
)

// few is how many tasks a lane may have beside tasks that wait for their dues again.
func (ls *Lanes) few() int64 { return min(fewestRead, ls.limit) }

// mayLook reports whether refill looks for rows that are due by a clock that was set back. After a look that found no row,
// refill waits until a row joins, or the next row may be tried, for 2 s at most: else each turn would ask. mu is held.
func (l *Lane) mayLook(now int64) bool {
	return l.lowest != lastPlace || now < l.looked || now >= min(l.looked+2*second, l.wakes)
}

// Turn is what a spilled lane may have read in its turn.
type Turn struct {
	From    engine.Place // the rows that are later
	UpTo    int64        // those that may be tried before this instant
	Room    int          // how many tasks may come of them; 0 or less: none
	Rows    int          // how many rows at most
	stood   int          // how many tasks of the lane were in memory before
	staying bool
	// If Ahead is not 0, the clock was set back. Rows before Ahead are read to tell when the Next may be tried, see mayLook.
	Ahead, Next int64
}

// BeginTurn begins a turn of a lane.
func (m *Memory) BeginTurn(l *Lane) (t Turn) {
	// Rows that may be tried before this instant are brought by refill alone: it is raised before they are read.
	t.UpTo = l.all.resuming.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	resident := int(l.resident.Load())
	if resident >= l.stock {
		l.stock = max(l.stock/2, leastStock)
	}
	t.stood = resident
	t.Room = min(l.stock-resident, l.room(), l.stock/10)
	if l.isGated() && l.resident.Load() > int64(l.all.HeldMost-refillPage) {
		t.Room = 0 // a page at a time, not a row for each call that its gates let through
	}
	switch now := m.now(); {
	case t.Room > 0:
	case l.lacksRows():
		t.Room = fewestRead
	case now < max(m.UpTo.Load(), m.marked.Load()) && l.resident.Load()-l.early.Load() < l.all.few() && l.mayLook(now):
		// The clock was set back, in this life or before, and the tasks that fill the lane wait for their
		// dues again, perhaps for hours. Rows that are due by the present clock go on.
		t.Room, t.UpTo, t.Ahead = int(l.all.few()), min(t.UpTo, now+1), t.UpTo
	}
	t.Rows = min(t.Room, l.page)
	t.From = l.next
	if l.lowest.Compare(t.From) < 0 {
		t.From = l.lowest
	}
	if t.Room > 0 {
		l.next, l.lowest = t.From, lastPlace
	} else {
		l.staying = false // what is to leave takes the room: it leaves first
	}
	t.staying = l.staying
	return t
}

// Fail ends a turn whose rows were not taken in.
func (l *Lane) Fail(t Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.From.Compare(l.lowest) < 0 {
		l.lowest = t.From
	}
}

// EndTurn ends a turn that brought rows, of which so many were taken, and tasks made; last
// reports whether the lane needs no other.
func (m *Memory) EndTurn(l *Lane, t Turn, rows []engine.Owed, taken, made int) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.page = min(l.page+l.page/4, refillPage); taken < len(rows) {
		l.page = max(taken, fewestRead)
	}
	if resident := int(l.resident.Load()); resident < l.stock/4 && t.stood+made-resident > l.stock/20 {
		l.stock = min(l.stock*2, mostStock, max(int(l.all.limit)/4, leastStock))
	}
	if t.Ahead > 0 && len(rows) == 0 {
		l.looked, l.wakes = m.now(), t.Next
	}
	defer l.tell()
	switch {
	case len(rows) == t.Rows, t.UpTo < l.all.resuming.Load(): // there may be later rows
		l.staying = false
	case t.staying && l.lowest == lastPlace:
		return m.unspill(l)
	default:
		// The end, unless a row was stored since: looked at again when none is any more.
		l.staying = true
	}
	if l.next = t.From; len(rows) > 0 {
		l.next = rows[len(rows)-1].Place()
	}
	return false
}

// unspill queues what was to leave, in order, with all that comes due meanwhile, and lets the lane's dues wait in
// memory again, unless a row joins meanwhile. The caller holds the mu of the lane; unspill gives it back while it takes
// the shards' locks, which come first.
func (m *Memory) unspill(l *Lane) bool {
	for len(l.leaving) > 0 {
		ts := slices.SortedFunc(maps.Keys(l.leaving), func(a, b *Task) int { return a.Key.Compare(b.Key) })
		l.mu.Unlock()
		ready := ts[:0]
		for _, t := range ts {
			sh := m.lock(t.Key.Timer)
			if t.state == Leaving { // else it was cancelled
				t.Lane.left(t)
				t.await(m.now())
				ready = append(ready, t)
			}
			sh.mu.Unlock()
		}
		m.Enqueue(ready)
		l.mu.Lock()
	}
	if l.lowest != lastPlace {
		return false
	}
	l.spilled.Store(false)
	l.staying, l.rowsIn, l.formerIn = false, engine.Set{}, engine.Set{}
	l.all.spilled.Add(-1)
	return true
}

// The lanes of the queue in which the tasks of a timer wait:
//
//	queueOf         what comes due
//	backlogQueueOf  what a former process or another node left, and what comes behind that
//	forcedQueueOf   what no limit holds

func (ls *Lanes) queueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.BatchLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}

func (ls *Lanes) backlogQueueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.BacklogLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}

// hasBacklogLane reports whether a task of the timer, which comes from a row or is to become one,
// waits in the lane of the backlog: a former process left the row, or the lane still reads
// such rows of the shard. All tasks of a lane with gates keep to one lane, and so to its order.
func (lv *Timer) hasBacklogLane(former bool) bool {
	if lv.def.Flow != "" || lv.queueLane().IsGated() {
		return false
	}
	return former || lv.inMemory().readsFormer(lv.def.ID.Shard())
}

// readsFormer reports whether the lane still reads rows that a shard had when this process took it.
func (l *Lane) readsFormer(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.formerIn.Has(shard)
}

func (ls *Lanes) forcedQueueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.ForcedLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}
