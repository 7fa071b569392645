// Package resident has the timers and tasks that are in memory: those with something in
// the wheel or under way. Everything else is in the tiers.
package resident

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/process"
	"xtimer/wheel"
)

// Config is what a Memory works with.
type Config struct {
	Journal engine.Journal
	Now     func() time.Time // the wall clock
	Owned   engine.Set       // the shards that are the process's from the first
	// IsNode: the process is one of several. Its calls carry the fence of their shard, and it
	// has Intents.
	IsNode bool
	// Ownership is looked at right before the first byte of each call.
	Ownership *process.Ownership
	Queue     *fair.Queue[*Task]
	Wheel     *wheel.Wheel[Item]
	// MaxWaiting is how many unfinished tasks are in memory before those of crowded lanes
	// wait in the cold tier.
	MaxWaiting int
	Bodies     int64 // how many bytes the headers and bodies of calls take at most
	// MemoryFull reports whether so many bytes more are too many.
	MemoryFull func(more int64) bool
	// DiskCritical reports whether history of successes may not be written.
	DiskCritical func() bool
	// Ended hears of each task that has ended. It is called with the lock of a shard.
	Ended func(*engine.Task)
}

// Memory is the timers and tasks in memory, with what decides about them.
type Memory struct {
	cfg Config

	owned  atomic.Pointer[engine.Set] // see Owned
	held   atomic.Pointer[engine.Set] // see Held
	shards [engine.Shards]shard
	Queue  *fair.Queue[*Task]
	Wheel  *wheel.Wheel[Item]
	Pins   Pins
	Reads  Reads
	Bodies Bodies
	Lanes  *Lanes
	Late   LateTimers
	// Deferred: what is held, and need not be in memory before its due.
	Deferred Deferred
	Former   FormerRows
	Moving   Inbox[*MovingTimer]
	Backlogs Backlogs
	Intents  *Intents
	// Settled wakes those who wait for a settle, a decision or the end of a first byte.
	Settled Signal

	// Instants in Unix ms. Horizon: dues before it are put into the wheel by whoever makes
	// them. Loaded: all dues before it are in the wheel, or have been. Only the migrator
	// raises them.
	Horizon, Loaded atomic.Int64

	Steps     atomic.Int64 // how often the clock was set
	Stepped   atomic.Int64 // when the clock last stepped forward, by the new clock
	stepping  atomic.Int64 // steps forward after which not all timers were looked at, see Step
	UpTo      atomic.Int64 // the latest instant at which an attempt began or a change was made
	marked    atomic.Int64 // the latest watermark at which a start or a gain left a shard, see Mark
	StartedAt int64        // when the process started; a shard's is its recovered
	// ClockReset: the watermark up to which the clock was reset.
	ClockReset atomic.Int64
	// Resuming: rows that may be tried before it are in memory, or their lane is spilled.
	Resuming atomic.Int64

	settle, settled atomic.Uint64 // the number of the settle under way, and of the last one that is over

	ready []*Task // Fire's own
}

// New makes an empty one.
func New(cfg Config) *Memory {
	m := &Memory{cfg: cfg, Queue: cfg.Queue, Wheel: cfg.Wheel, Lanes: newLanes(cfg.MaxWaiting, cfg.Queue)}
	m.owned.Store(&cfg.Owned)
	m.held.Store(&cfg.Owned)
	if cfg.IsNode {
		m.Intents = &Intents{memory: m, wake: make(chan struct{}, 1)}
	}
	for i := range m.shards {
		sh := &m.shards[i]
		if cfg.Owned.Has(i) {
			sh.stay = here
		}
		sh.bodies, sh.backlogs = &m.Bodies, &m.Backlogs
		sh.timers = map[engine.TimerID]*Timer{}
		sh.changing, sh.decided = map[engine.TimerID]claim{}, map[engine.TimerID]int64{}
		sh.removed, sh.changed = map[engine.Key]uint64{}, map[engine.TimerID]uint64{}
		sh.aside, sh.shared = map[engine.TimerID][]int64{}, map[engine.Key]*sharedRow{}
	}
	m.Bodies.limit, m.Bodies.shares = cfg.Bodies, map[engine.Lane]*Share{}
	m.Lanes.resuming, m.Lanes.order.loaded = &m.Resuming, &m.Loaded
	m.Deferred, m.Backlogs.Inbox = newDeferred(), newInbox[engine.TimerID]()
	m.Moving = newInbox[*MovingTimer]()
	m.Late.Inbox, m.Former = newInbox[LateTimer](), FormerRows{Inbox: newInbox[*FormerTimer](), timers: map[engine.TimerID]*FormerTimer{}}
	return m
}

func (m *Memory) now() int64 { return m.cfg.Now().UnixMilli() }

const minute = int64(60_000)

// shard is what this process knows of the timers that have
// something in the wheel or under way. Everything else is in the tiers.
type shard struct {
	bodies *Bodies
	// toSettle: a settle has something to look at. Set with mu held, by whoever adds to order,
	// paid, removed or changed; tidy sets it anew.
	toSettle atomic.Bool

	mu sync.Mutex // guards all below; what each fire looks at comes first, in few lines of memory

	timers map[engine.TimerID]*Timer
	// tasks in memory: those not finished, and those finished and not settled.
	tasks Index
	// order has the same tasks (and some that are out), oldest first: history
	// goes through them twice a second.
	order    []*Task
	backlogs *Backlogs // not guarded
	// latest is the latest due that a task in memory ever had: a timer that comes
	// into the roster knows no better.
	latest    int64
	watermark int64 // as settled
	stay      stay
	came      Came
	unread    bool // rows may wait that no lane knows of, from Own to Known
	// early has the lanes of rows that came before Known, each with its first such place: see fateOf.
	early     map[engine.Lane]engine.Place
	done      int   // how many tasks in memory are finished
	doneBytes int64 // of their records
	recovered int64 // up to when a start, or a gain of the shard, has decided what was due
	// handed: what was due up to then waited at another node that gave the shard; it was not
	// late for want of an owner.
	handed int64
	fence  uint64

	settling int64 // the highest watermark that a settle may have set: its answer is still to come, or was lost
	former   int64 // the watermark that the former process left: it ran until then at least
	// repeats: what is owed that was due up to then may have been begun by a former life.
	repeats int64
	// removed and changed are notes for reads, see Reads.
	removed map[engine.Key]uint64
	changed map[engine.TimerID]uint64
	// paid are ranges in owed that are over.
	paid   []engine.Key
	shared map[engine.Key]*sharedRow // by its key
	// changing holds the timers that a change is being made of.
	changing map[engine.TimerID]claim
	// aside has the dues of rows that wait for a change or a decision, in order.
	aside map[engine.TimerID][]int64
	// decided: up to when the misfires of a timer were decided, while that is
	// later than the watermark.
	decided map[engine.TimerID]int64
	leaps   leaps // over the dues of such timers that are recorded

	left   chan struct{} // closed when the shard has left memory; of one that is ceding or closed
	last   int64         // the watermark of a closed shard
	opened uint64        // the note of when it came: what was read before is of a former stay
}

// cancelledDues are the records that cancel the dues in (after, to] that are not in memory
// and not among those with a record of their own. A due of end.Taken gets a record alone. mu is held.
//
// It goes from one of those to the next, and counts the dues between them: of a timer
// of 10 ms there are 8,640,000 a day, and what fires waits for mu.
func (sh *shard) cancelledDues(end *policy.Ending, p *plan.Plan, after, to int64, own policy.Spans) (recs []*engine.Task) {
	if first, ok := p.Next(after); !ok || first > to {
		return nil
	}
	but := append(slices.Clone(own), sh.taskDues(end.Former.ID, after, to)...).Ordered()
	run := func(to int64) { // of (after, to]
		for {
			first, ok := p.Next(after)
			if !ok || first > to {
				return
			}
			rec := policy.NotCalled(end.Former, first, engine.Cancelled, end.Reason, end.At)
			if recs = append(recs, rec); !end.Taken.Has(first) {
				rec.DueLast, _ = p.Prev(to)
				rec.Count = p.Count(after, to)
			}
			after = rec.DueLast
		}
	}
	for _, b := range but {
		if due, ok := p.Next(max(b[0]-1, after)); !ok || due > min(b[1], to) {
			continue // no due, or none that is left: a run goes on over it
		}
		run(min(b[0]-1, to))
		after = max(after, b[1])
	}
	run(to)
	return recs
}

// taskDues are the dues of a timer in (after, to] that have a task in memory, in any order. mu is held.
func (sh *shard) taskDues(id engine.TimerID, after, to int64) (s policy.Spans) {
	for _, t := range sh.order {
		if due := t.Key.Due; t.Key.Timer == id && t.state != Gone && after < due && due <= to {
			s = append(s, [2]int64{due, due})
		}
	}
	return s
}

// duesOf are the dues of a timer in (after, to] that have a task in memory, and those
// that are spent, whenever they are. mu is held.
func (sh *shard) duesOf(lv *Timer, after, to int64) (s policy.Spans) {
	s = slices.Clone(lv.spent())
	if lv.latest <= after {
		return s
	}
	s = append(s, sh.taskDues(lv.def.ID, after, to)...)
	return s.Ordered()
}

func (m *Memory) shardOf(id engine.TimerID) *shard { return &m.shards[id.Shard()] }

// lock locks the shard of a timer, and lockShard one by its number.
func (m *Memory) lock(id engine.TimerID) *shard { return m.lockShard(id.Shard()) }

func (m *Memory) lockShard(n int) *shard {
	sh := &m.shards[n]
	sh.mu.Lock()
	return sh
}

// coming appends the first due in [from, end) of each timer in the wheel.
func (sh *shard) coming(es []engine.Entry, from, end int64, app string) []engine.Entry {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for id, lv := range sh.timers {
		due := lv.next
		if due == 0 || due >= end || app != "" && lv.def.App != app {
			continue
		}
		if due < from {
			var ok bool
			if due, ok = lv.plan.Next(from - 1); !ok || due >= end {
				continue
			}
		}
		es = append(es, engine.Entry{ID: id, Due: due})
	}
	return es
}

// Signal wakes all who wait for the next of something.
type Signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait is closed by the next broadcast.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// Raise lifts an instant, never lowers it.
func Raise(p interface {
	Load() int64
	CompareAndSwap(old, new int64) bool
}, to int64,
) {
	for {
		was := p.Load()
		if was >= to || p.CompareAndSwap(was, to) {
			return
		}
	}
}
