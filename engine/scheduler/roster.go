package scheduler

import (
	"sync"
	"sync/atomic"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/wheel"
)

// A shard of the roster: what this process knows of the timers that have
// something in the wheel or under way. Everything else is in the tiers.
type shard struct {
	bodies *bodies
	mu     sync.Mutex // guards all below

	timers map[engine.TimerID]*live
	// tasks in memory: those not finished, and those finished and not settled.
	tasks     index
	done      int   // how many of them are finished
	doneBytes int64 // of their records
	// order has the same tasks (and some that are out), oldest first: history
	// goes through them twice a second.
	order []*task
	// latest is the latest due that a task in memory ever had: a timer that comes
	// into the roster knows no better.
	latest int64
	// left are the tasks that left memory with a row in owed, and when (see ticks), for
	// owedKept: a row that was read before is not how they stand.
	left map[engine.Key]int64
	// paid are ranges in owed that are over.
	paid []engine.Key
	// changing holds the timers that a change is being made of; the channel is
	// closed when it has ended.
	changing map[engine.TimerID]chan struct{}
	// decided: up to when the misfires of a timer were decided, while that is
	// later than the watermark.
	decided map[engine.TimerID]int64

	watermark int64 // as settled
	settling  int64 // the highest that a settle may have set: its answer is still to come, or was lost
	fence     uint64
	marked    int64 // when the watermark was last written (Unix ms)
}

// live is a timer that has a due in the wheel or a task in memory. Guarded by
// the mu of its shard.
type live struct {
	def    *engine.Timer // in force; its head, where the payload has no room: set by bodies
	heavy  atomic.Bool   // its payload is counted
	plan   plan.Plan
	lane   *fair.Lane[*task] // of its app and target
	memory *laneMemory
	next   int64 // the due that lies in the wheel; 0: none
	handle wheel.Handle
	// Dues up to owedTo are in owed as a range of the plan (its key's due is
	// owedFrom), because the clock had stepped back behind the watermark.
	owedFrom, owedTo int64
	spent            policy.Spans // dues that the range does not owe
	// latest is the latest due that a task of it may have in memory.
	latest int64
	// behind: its dues are in owed as a range without end, and not in the wheel; see
	// unfold.go.
	behind bool
	// held: a change is being committed; no attempt starts meanwhile.
	held bool
	// late: it is behind, and what becomes of its dues is being decided; deciding: what was
	// decided is being stored, or may have been, and a change waits for that; judged:
	// it is stored, up to then, and what is to be called is not in memory yet.
	late, deciding bool
	judged         int64

	tasks *task // in memory and not finished, a list through task.later
	// busy tasks, from Begin to the final status; parked wait for them.
	busy   int
	parked []*task
	// gone is why the generation before def's ended; deleted: def's has, too.
	gone    string
	deleted bool
}

// ended is the reason why a task's generation is over, "" while it is in force.
func (lv *live) ended(generation uint32) string {
	if lv.deleted || generation != lv.def.Generation {
		return lv.gone
	}
	return ""
}

// task is an occurrence in memory.
type task struct {
	engine.Task
	live          *live
	later, former *task       // the list of its timer
	chained       *task       // the index's
	memory        *laneMemory // where it is counted, while it is in memory and not finished
	state         state
	redelivered   bool             // its attempts may have been made before
	noted         bool             // an attempt is known to have begun, and not how it ended
	owed          bool             // has a row in owed (or is covered by a range there)
	out           bool             // not in memory any more
	dirty         bool             // its row in owed does not say how it stands
	cancelled     bool             // a change under way has its record
	begun         bool             // counts in live.busy
	settling      bool             // a settle that names it is being committed
	writing       *engine.Timer    // what it calls, while the first bytes are being written (see Gate); nil: nothing
	stored        int64            // when it was settled, being done (see ticks); 0: not yet
	left          int64            // when it came to the queue for its next attempt (Unix µs), 0: not yet; see enqueue
	journaled     engine.Position  // 1 + the first of its records in the journal that nothing stored makes needless; 0: none
	turn          fair.Item[*task] // in the queue
	handle        wheel.Handle     // of its retry
	encoded       []byte           // AppendTask of it, once done
}

// state is where a task in memory stands.
type state uint8

const (
	isWaiting   state = iota // in the queue
	isHeld                   // taken from the queue while a change was being committed
	isParked                 // waits for another task of its timer (overlap: queue)
	isPreparing              // an attempt runs, of which no byte was sent
	isSending                // an attempt runs
	isRetrying               // its next attempt lies in the wheel
	isLeaving                // its lane has no room: it goes when its row is stored
	isDone
)

func (e *Scheduler) shardOf(id engine.TimerID) *shard { return &e.shards[id.Shard()] }

// enlist makes a task of a due. mu is held.
func (sh *shard) enlist(lv *live, k engine.Key, origin engine.Origin, owed bool, now int64) *task {
	t := &task{live: lv, owed: owed}
	t.Key, t.Origin, t.Since = k, origin, k.Due
	t.App, t.Name, t.Generation = lv.def.App, lv.def.Name, lv.def.Generation
	t.await(now)
	sh.attach(t)
	return t
}

// await makes a task ready for the queue. mu is held.
func (t *task) await(now int64) {
	t.state = isWaiting
	t.turn = fair.Item[*task]{Value: t, Lane: t.live.lane, Ready: now, Priority: uint8(t.live.def.Priority)}
}

// attach puts an unfinished task into memory. mu is held.
func (sh *shard) attach(t *task) {
	if t.Key.Due <= t.live.latest { // one of its key may be there, which is settled
		if former := sh.tasks.find(t.Key); former != nil {
			sh.tasks.remove(former)
		}
	}
	sh.tasks.put(t)
	sh.order = append(sh.order, t)
	lv := t.live
	lv.latest = max(lv.latest, t.Key.Due)
	sh.latest = max(sh.latest, lv.latest)
	t.memory = lv.inMemory()
	t.memory.enter()
	t.later = lv.tasks
	if t.later != nil {
		t.later.former = t
	}
	lv.tasks = t
}

// forget takes an unfinished task out of memory. mu is held.
func (e *Scheduler) forget(sh *shard, t *task) {
	sh.tasks.remove(t)
	t.out = true
	e.detach(sh, t)
}

// detach takes an unfinished task out of its timer's list, the queue and the wheel. mu is held.
func (e *Scheduler) detach(sh *shard, t *task) {
	if t.former != nil {
		t.former.later = t.later
	} else {
		t.live.tasks = t.later
	}
	if t.later != nil {
		t.later.former = t.former
	}
	t.later, t.former = nil, nil
	switch t.state {
	case isWaiting:
		e.queue.Remove(&t.turn)
	case isRetrying:
		e.wheel.Remove(t.handle)
	case isLeaving:
		t.memory.left(t)
	}
	t.memory.leave()
	sh.dismiss(t.live)
}

// ends gives a task its final status; it stays in memory until it is settled. freed:
// see leave. mu is held.
func (e *Scheduler) ends(sh *shard, t *task, status engine.TaskStatus, reason string, now int64) (freed *task) {
	freed = t.leave(now)
	e.detach(sh, t)
	t.state, t.Status, t.Reason, t.Ended, t.NotBefore = isDone, status, reason, now, 0
	t.encoded = engine.EncodeTask(&t.Task)
	sh.done++
	sh.doneBytes += int64(len(t.encoded))
	e.metrics.ended(status)
	e.followers.tell(&t.Task)
	return freed
}

// inJournal notes a record that the journal has of a task. mu is held since before it
// was appended, so that a settle sees both or neither.
func (t *task) inJournal(p engine.Position) {
	if t.journaled == 0 {
		t.journaled = p + 1
	}
}

// dismiss drops a timer that has nothing in memory any more. mu is held.
func (sh *shard) dismiss(lv *live) {
	if lv.next == 0 && lv.tasks == nil && !lv.held && !lv.late && !lv.behind && sh.timers[lv.def.ID] == lv {
		delete(sh.timers, lv.def.ID)
		sh.bodies.leave(lv)
	}
}

// enroll finds or makes the live timer of a definition. mu is held.
func (e *Scheduler) enroll(sh *shard, t *engine.Timer) (*live, error) {
	if lv := sh.timers[t.ID]; lv != nil {
		return lv, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	return e.join(sh, t, &p), nil
}

// join puts a timer into the roster. Tasks of its former time there may still be
// in memory. mu is held.
func (e *Scheduler) join(sh *shard, t *engine.Timer, p *plan.Plan) *live {
	lv := &live{plan: *p, latest: sh.latest}
	e.bodies.define(lv, t)
	e.assign(lv)
	if former := sh.timers[t.ID]; former != nil {
		e.bodies.leave(former)
	}
	sh.timers[t.ID] = lv
	return lv
}

// assign gives a timer the lane of its app and target. mu is held.
func (e *Scheduler) assign(lv *live) {
	lv.lane = e.queue.Lane(lv.def.App, engine.TargetOf(lv.def.Callback.URL))
	lv.memory = e.lanes.of(lv.def.Lane())
}

// schedule puts the first due after the instant into the wheel, when it lies
// within what is loaded; else it is left to the migrator. A due that is past
// fires in the wheel's next batch, or is decided with those that follow it when the
// timer is far behind. mu is held.
func (e *Scheduler) schedule(lv *live, after int64) {
	lv.next = 0
	due, ok := lv.plan.Next(after)
	if !ok || due >= e.horizon.Load() && due > lv.owedTo || e.fellBehind(lv, due) {
		return
	}
	lv.next = due
	lv.handle = e.wheel.Add(due, item{ID: lv.def.ID})
}

// unschedule takes the timer's due out of the wheel. mu is held.
func (e *Scheduler) unschedule(lv *live) {
	if lv.next != 0 {
		e.wheel.Remove(lv.handle)
		lv.next = 0
	}
}
