package resident

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/wheel"
)

// skipped is the first due after the instant that comes before the one in the
// wheel and has no task: minutes that were admitted late are admitted in any
// order. mu is held.
func (sh *shard) skipped(lv *Timer, after int64) (due int64, ok bool) {
	for due, ok = lv.plan.Next(after); ok && due < lv.next; due, ok = lv.plan.Next(due) {
		if sh.tasks.find(engine.Key{Timer: lv.def.ID, Due: due}) == nil {
			return due, true
		}
	}
	return 0, false
}

// Timer is a timer that has a due in the wheel or a task in memory. Guarded by
// the Mu of its shard.
type Timer struct {
	def        *engine.Timer // in force; its head, where the payload has no room: set by bodies
	plan       plan.Plan
	lane       *fair.Lane[*Task] // of its app and target; read by queueLane
	laneMemory *Lane
	next       int64 // the due that lies in the wheel; 0: none
	ahead      *Lane // counts it there: see countAhead
	handle     wheel.Handle
	turning    *turningRange // nil: the wheel goes through none
	// Latest is the latest due that a task of it may have in memory.
	latest int64

	// Tasks in memory and not finished, a list by due.
	newest, oldest *Task
	// Busy tasks, from Begin to the final status; those that are Parked wait for them.
	busy, parked int32
	// Gone is why the generation before Def's ended; Deleted: Def's has, too.
	gone   string
	judged int64 // see deciding

	heavy   atomic.Bool // its payload is counted
	deleted bool
	// Behind: its dues are in owed as a range without end, and not in the wheel; see
	// engine/scheduler/unfold.go.
	behind bool
	// Frozen: a change is being committed; no attempt starts meanwhile. Ending: the change ends the
	// generation, and has told what becomes of the dues up to its instant, see Cancel.
	frozen, ending bool
	// Late: its dues are late, and what becomes of them is being decided; Deciding: what was
	// decided is being stored, or may have been, and a change waits for that; Judged:
	// it is stored, up to then, and what is to be called is not in memory yet.
	late, deciding bool
	// Falling: it is late, and will be behind; Unjudged: it was put off, see Memory.Step.
	falling, unjudged bool
}

// turningRange is the range of a timer that the wheel goes through, because the clock had stepped back
// behind the watermark: the dues of the plan up to one are in owed as a range.
type turningRange struct {
	from  int64 // the due of its key
	to    int64 // 0: it was decided, and what is spent stays so
	lane  engine.Lane
	spent policy.Spans // dues that the range does not owe
}

// turns has the wheel go through the range of a row, or through none. The caller schedules the timer. mu is held.
func (lv *Timer) turns(o *engine.Owed, spent policy.Spans) {
	lv.turning = nil
	if o.To != 0 || len(spent) > 0 {
		lv.turning = &turningRange{o.Key.Due, o.To, o.Lane, spent}
	}
}

// rangeTo is the end of the range that the wheel goes through; 0: of none. mu is held.
func (lv *Timer) rangeTo() int64 {
	if lv.turning == nil {
		return 0
	}
	return lv.turning.to
}

// spent are the dues that the range does not owe. mu is held.
func (lv *Timer) spent() policy.Spans {
	if lv.turning == nil {
		return nil
	}
	return lv.turning.spent
}

// unpark makes the tasks ready that wait for another of the timer: from now on they
// need not. mu is held.
func (lv *Timer) unpark(now int64) (ready []*Task) {
	for t := lv.oldest; t != nil && lv.parked > 0; t = t.newer {
		if t.state == Parked {
			t.await(now)
			ready = append(ready, t)
		}
	}
	return ready
}

// overlaps reports whether a task that is not busy would overlap with another of its
// timer, or, where these wait for each other, go before one that is due earlier: workers
// take tasks out of the queue in order, and come here in any. mu is held.
func (lv *Timer) overlaps(t *Task) bool {
	switch lv.def.Overlap {
	case engine.OverlapAllow:
		return false
	case engine.OverlapQueue:
		return lv.busy > 0 || lv.first() != t
	}
	return lv.busy > 0
}

// overtakes reports whether a task that has the turn of its timer, and was never called, would go before one that is due
// earlier: one that waited for an instant when the turn was given, after the clock was set back. mu is held.
func (lv *Timer) overtakes(t *Task) bool {
	return t.busy && lv.def.Overlap == engine.OverlapQueue && len(t.Attempts) == t.Base && t.past != wasUnended && lv.first() != t
}

// first is the task that is due first of those that wait for the timer's turn, nil for
// none. mu is held. Before it in the list are only those that have the turn, or that wait
// for an instant.
func (lv *Timer) first() *Task {
	t := lv.oldest
	for t != nil && t.state != Queued && t.state != Parked {
		t = t.newer
	}
	return t
}

// intends reports whether the row of one of the timer's tasks is still to be written before the call. mu is held.
func (lv *Timer) intends() bool {
	t := lv.newest
	for t != nil && !t.intends {
		t = t.older
	}
	return t != nil
}

// insert puts a task into the list. Nearly all are due later than those that are there. mu
// is held.
func (lv *Timer) insert(t *Task) {
	t.older = lv.newest
	if lv.oldest != nil && t.Key.Due < lv.oldest.Key.Due {
		t.newer, t.older = lv.oldest, nil
	}
	for t.older != nil && t.older.Key.Due > t.Key.Due {
		t.newer, t.older = t.older, t.older.older
	}
	*lv.olderOf(t.newer), *lv.newerOf(t.older) = t, t
}

// remove takes a task out of the list. mu is held.
func (lv *Timer) remove(t *Task) {
	*lv.olderOf(t.newer), *lv.newerOf(t.older) = t.older, t.newer
	t.older, t.newer = nil, nil
}

// olderOf is where the list goes on behind a task; nil: where it begins with the newest.
func (lv *Timer) olderOf(t *Task) **Task {
	if t == nil {
		return &lv.newest
	}
	return &t.older
}

// newerOf is where the list goes on before a task; nil: where it begins with the oldest.
func (lv *Timer) newerOf(t *Task) **Task {
	if t == nil {
		return &lv.oldest
	}
	return &t.newer
}

// fallsBehind reports whether a timer is not to have its dues one by one, from one on
// that has no task yet: too many came during a stall or an outage, its lane has no
// room, or a queue has rows before it that its lane does not know, or that wait for a change. So does a timer whose
// generation a change is ending: the change has told what becomes of the dues up to its instant, later ones are the
// next definition's, and the overlap shall end neither. mu is held.
func (sh *shard) fallsBehind(lv *Timer, due, now int64) bool {
	outside := lv.def.Overlap == engine.OverlapQueue && (sh.unread || sh.hasAside(lv.def.ID, due))
	changed := lv.def.Overlap != engine.OverlapAllow && lv.ending
	return !lv.plan.OneShot() && (outside || changed || lv.lags(due, now) || lv.isShut()) &&
		sh.tasks.find(engine.Key{Timer: lv.def.ID, Due: due}) == nil
}

// isShut reports whether a due of the timer is not to become a task. The order of dues with
// another overlap than allow is that of their rows. mu is held.
func (lv *Timer) isShut() bool {
	if lv.def.Overlap != engine.OverlapAllow {
		return lv.inMemory().isFull(lv.def.ID.Shard())
	}
	return lv.inMemory().isShut(lv.def.ID.Shard())
}

// inMemory is the memory of the timer's lane. The mu of its shard is held.
func (lv *Timer) inMemory() *Lane {
	lv.laneMemory = lv.laneMemory.current(lv.queueLane())
	return lv.laneMemory
}

// behindAfter is how late (ms) the next due of a timer must be for its dues to be
// decided at once, and not to go through the wheel.
const behindAfter = minute

// fewBehind is how many late dues of a timer go through the wheel all the same after a
// stall or an outage.
const fewBehind = 16

// fellBehind leaves a timer to misfires whose next due is late by a step of the clock.
// mu is held.
func (m *Memory) fellBehind(lv *Timer, due int64) bool {
	now := m.now()
	if now-due <= behindAfter {
		return false
	}
	stepped := min(m.Stepped.Load(), now) // it may have been set back since
	if stepped-due <= policy.MisfireAfter {
		return false
	}
	m.addLate(lv, LateTimer{due: due, at: stepped})
	return true
}

// lags reports whether many dues of a timer, from one on, came during a stall or an
// outage. Only fire may ask: it runs when the wheel has looked for a step of the clock,
// and what a step made late is decided by policy, not called. mu is held.
func (lv *Timer) lags(due, now int64) bool {
	return now-due > behindAfter && lv.plan.Count(due, now) > fewBehind
}

// ended is the reason why a task's generation is over, "" while it is in force.
func (lv *Timer) ended(generation uint32) string {
	if lv.deleted || generation != lv.def.Generation {
		return lv.gone
	}
	return ""
}

// dismiss drops a timer that has nothing in memory any more. mu is held.
func (sh *shard) dismiss(lv *Timer) {
	if lv.next == 0 && lv.newest == nil && !lv.frozen && !lv.late && !lv.behind && sh.timers[lv.def.ID] == lv {
		delete(sh.timers, lv.def.ID)
		sh.bodies.leave(lv)
	}
}

// enroll finds or makes the live timer of a definition. mu is held.
func (m *Memory) enroll(sh *shard, t *engine.Timer) (*Timer, error) {
	if lv := sh.timers[t.ID]; lv != nil {
		return lv, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	return m.join(sh, t, &p), nil
}

// join puts a timer into the roster. Tasks of its former time there may still be
// in memory. mu is held.
func (m *Memory) join(sh *shard, t *engine.Timer, p *plan.Plan) *Timer {
	lv := &Timer{plan: *p, latest: sh.latest}
	m.Bodies.define(lv, t)
	m.assign(lv)
	if former := sh.timers[t.ID]; former != nil {
		m.Bodies.leave(former)
	}
	sh.timers[t.ID] = lv
	return lv
}

// queueLane is the timer's lane of the queue, or the lane that stands in its place. mu is held.
func (lv *Timer) queueLane() *fair.Lane[*Task] {
	lv.lane = lv.laneMemory.all.queue.Living(lv.lane)
	return lv.lane
}

// assign gives a timer the lane of its app and target. mu is held.
func (m *Memory) assign(lv *Timer) {
	lv.lane = m.Lanes.queueOf(lv.def)
	lv.laneMemory = m.Lanes.of(lv.def)
}

// schedule puts the first due after the instant into the wheel, when it lies
// within what is loaded; else it is left to the migrator, and of a timer that is
// behind to its range. A due that is past fires in the wheel's next batch, or is
// decided with those that follow it when the timer is far behind. mu is held.
func (m *Memory) schedule(lv *Timer, after int64) {
	lv.leaveWheel()
	due, ok := lv.plan.Next(after)
	if !ok || due > lv.rangeTo() && (lv.behind || due >= m.Horizon.Load()) || m.fellBehind(lv, due) {
		return
	}
	lv.next = due
	lv.countAhead()
	lv.handle = m.Wheel.Add(due, Item{id: lv.def.ID})
}

// unschedule takes the timer's due out of the wheel. mu is held.
func (m *Memory) unschedule(lv *Timer) {
	if lv.next != 0 {
		m.Wheel.Remove(lv.handle)
		lv.leaveWheel()
	}
}

// Freeze stops attempts of the timer from starting, waits until no settle that
// names one of its tasks is under way, no intent of one, no decision of its misfires, and no
// write of a first byte. With a cold tier that does not answer it waits for freezeFor.
func (m *Memory) Freeze(ctx context.Context, id engine.TimerID) error {
	sh := m.shardOf(id)
	limited, cancel := context.WithTimeout(ctx, freezeFor)
	defer cancel()
	for {
		settled := m.Settled.Wait()
		sh.mu.Lock()
		lv, busy := sh.timers[id], false
		if lv != nil {
			lv.frozen = true
			busy = lv.deciding
			for t := lv.newest; t != nil; t = t.older {
				busy = busy || t.settle > m.settled.Load() || t.intends || t.state == Writing
			}
		}
		sh.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-settled:
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("cannot change timer %s: its former dues cannot be stored: %w", id, engine.ErrUnavailable)
		}
	}
}

// freezeFor is how long a change waits for what is being stored of its timer.
const freezeFor = 10 * time.Second

// Thaw lets frozen tasks go on, late.
func (m *Memory) Thaw(id engine.TimerID) {
	sh := m.shardOf(id)
	var ready []*Task
	sh.mu.Lock()
	if lv := sh.timers[id]; lv != nil && lv.frozen {
		lv.frozen, lv.ending = false, false
		if due := lv.next; due != 0 && due <= lv.rangeTo() { // it may have come meanwhile
			m.unschedule(lv)
			m.schedule(lv, due-1)
		}
		for t := lv.newest; t != nil; t = t.older {
			t.cancelled = false
			t.touch()
			if t.state == Frozen {
				t.await(m.now())
				ready = append(ready, t)
			}
		}
		if lv.late {
			m.Late.poke()
		}
		slices.Reverse(ready) // the list has the newest first
		sh.dismiss(lv)
	}
	sh.mu.Unlock()
	m.Enqueue(ready)
}
