package resident

import (
	"sync/atomic"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/wheel"
)

// Skipped is the first due after the instant that comes before the one in the
// wheel and has no task: minutes that were admitted late are admitted in any
// order. Mu is held.
func (sh *Shard) Skipped(lv *Timer, after int64) (due int64, ok bool) {
	for due, ok = lv.Plan.Next(after); ok && due < lv.Next; due, ok = lv.Plan.Next(due) {
		if sh.Tasks.Find(engine.Key{Timer: lv.Def.ID, Due: due}) == nil {
			return due, true
		}
	}
	return 0, false
}

// Timer is a timer that has a due in the wheel or a task in memory. Guarded by
// the Mu of its shard.
type Timer struct {
	Def        *engine.Timer // in force; its head, where the payload has no room: set by bodies
	Heavy      atomic.Bool   // its payload is counted
	Plan       plan.Plan
	lane       *fair.Lane[*Task] // of its app and target
	LaneMemory *Lane
	Next       int64 // the due that lies in the wheel; 0: none
	handle     wheel.Handle
	// Dues up to RangeTo are in owed as a range of the plan (its key's due is
	// RangeFrom), because the clock had stepped back behind the watermark.
	RangeFrom, RangeTo int64
	Spent              policy.Spans // dues that the range does not owe
	// Latest is the latest due that a task of it may have in memory.
	Latest int64
	// Behind: its dues are in owed as a range without end, and not in the wheel; see
	// engine/scheduler/unfold.go.
	Behind bool
	// Frozen: a change is being committed; no attempt starts meanwhile.
	Frozen bool
	// Late: it is behind, and what becomes of its dues is being decided; Deciding: what was
	// decided is being stored, or may have been, and a change waits for that; Judged:
	// it is stored, up to then, and what is to be called is not in memory yet.
	Late, Deciding bool
	Judged         int64

	Tasks *Task // in memory and not finished, a list through Task.Later
	// Busy tasks, from Begin to the final status; Parked wait for them.
	Busy   int
	Parked []*Task
	// Gone is why the generation before Def's ended; Deleted: Def's has, too.
	Gone    string
	Deleted bool
}

// Unpark makes the tasks ready that wait for another of the timer: from now on they
// need not. Mu is held.
func (lv *Timer) Unpark(now int64) (ready []*Task) {
	for _, t := range lv.Parked {
		if t.State == Parked {
			t.Await(now)
			ready = append(ready, t)
		}
	}
	clear(lv.Parked)
	lv.Parked = nil
	return ready
}

// FallsBehind reports whether a timer is not to have its dues one by one, from one on
// that has no task yet: too many came during a stall or an outage, or its lane has no
// room. Mu is held.
func (sh *Shard) FallsBehind(lv *Timer, due, now int64) bool {
	return !lv.Plan.OneShot() && (lv.lags(due, now) || lv.InMemory().isFull()) &&
		sh.Tasks.Find(engine.Key{Timer: lv.Def.ID, Due: due}) == nil
}

// InMemory is the memory of the timer's lane. The mu of its shard is held.
func (lv *Timer) InMemory() *Lane {
	l := lv.LaneMemory
	l.Mu.Lock()
	dead := l.dead
	l.Mu.Unlock()
	if dead {
		l = l.all.Of(l.Id)
		lv.LaneMemory = l
	}
	return l
}

// behindAfter is how late (ms) the next due of a timer must be for its dues to be
// decided at once, and not to go through the wheel.
const behindAfter = minute

// fellBehind leaves a timer to misfires whose next due is late by a step of the clock.
// Mu is held.
func (m *Memory) fellBehind(lv *Timer, due int64) bool {
	now := m.now()
	if now-due <= behindAfter {
		return false
	}
	stepped := min(m.Stepped.Load(), now) // it may have been set back since
	if stepped-due <= policy.MisfireAfter {
		return false
	}
	m.AddLate(lv, due, stepped, false)
	return true
}

// lags reports whether many dues of a timer, from one on, came during a stall or an
// outage. Only fire may ask: it runs when the wheel has looked for a step of the clock,
// and what a step made late is decided by policy, not called. Mu is held.
func (lv *Timer) lags(due, now int64) bool {
	return now-due > behindAfter && lv.Plan.Count(due, now) > policy.MaxSingles
}

// ended is the reason why a task's generation is over, "" while it is in force.
func (lv *Timer) ended(generation uint32) string {
	if lv.Deleted || generation != lv.Def.Generation {
		return lv.Gone
	}
	return ""
}

// Dismiss drops a timer that has nothing in memory any more. Mu is held.
func (sh *Shard) Dismiss(lv *Timer) {
	if lv.Next == 0 && lv.Tasks == nil && !lv.Frozen && !lv.Late && !lv.Behind && sh.Timers[lv.Def.ID] == lv {
		delete(sh.Timers, lv.Def.ID)
		sh.Bodies.Leave(lv)
	}
}

// Enroll finds or makes the live timer of a definition. Mu is held.
func (m *Memory) Enroll(sh *Shard, t *engine.Timer) (*Timer, error) {
	if lv := sh.Timers[t.ID]; lv != nil {
		return lv, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	return m.Join(sh, t, &p), nil
}

// Join puts a timer into the roster. Tasks of its former time there may still be
// in memory. Mu is held.
func (m *Memory) Join(sh *Shard, t *engine.Timer, p *plan.Plan) *Timer {
	lv := &Timer{Plan: *p, Latest: sh.latest}
	m.Bodies.Define(lv, t)
	m.Assign(lv)
	if former := sh.Timers[t.ID]; former != nil {
		m.Bodies.Leave(former)
	}
	sh.Timers[t.ID] = lv
	return lv
}

// Assign gives a timer the lane of its app and target. Mu is held.
func (m *Memory) Assign(lv *Timer) {
	lv.lane = m.Queue.Lane(lv.Def.App, engine.TargetOf(lv.Def.Callback.URL))
	lv.LaneMemory = m.Lanes.Of(lv.Def.Lane())
}

// Schedule puts the first due after the instant into the wheel, when it lies
// within what is loaded; else it is left to the migrator. A due that is past
// fires in the wheel's next batch, or is decided with those that follow it when the
// timer is far behind. Mu is held.
func (m *Memory) Schedule(lv *Timer, after int64) {
	lv.Next = 0
	due, ok := lv.Plan.Next(after)
	if !ok || due >= m.Horizon.Load() && due > lv.RangeTo || m.fellBehind(lv, due) {
		return
	}
	lv.Next = due
	lv.handle = m.Wheel.Add(due, Item{ID: lv.Def.ID})
}

// Unschedule takes the timer's due out of the wheel. Mu is held.
func (m *Memory) Unschedule(lv *Timer) {
	if lv.Next != 0 {
		m.Wheel.Remove(lv.handle)
		lv.Next = 0
	}
}
