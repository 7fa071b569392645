package resident

import (
	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// waitForDue puts a task back into the wheel until its due. Another task of its timer need not
// wait for it: freed is to be queued. mu is held.
func (m *Memory) waitForDue(sh *shard, t *Task) (freed *Task) {
	m.later(sh, t, t.Key.Due)
	if t.yields() {
		freed = t.leave(m.now())
	}
	return freed
}

// Begin takes a task out of the queue: it becomes Preparing, or is set aside (a
// is nil). The attempt should have begun at from (Unix ms). freed is a task whose
// turn it is, to be queued: another, or t with the body that it has now.
func (m *Memory) Begin(t *Task, now int64, body *Body) (a *Attempt, from int64, freed *Task) {
	sh := m.lock(t.Key.Timer)
	defer sh.mu.Unlock()
	lv := t.timer
	if t.state == Queued {
		m.leaveQueue(t)
	}
	Raise(&m.UpTo, now) // also for one that ends here, for its timer is busy
	switch {
	case !m.isQueued(t):
		return nil, 0, nil // cancelled while it waited
	case sh.stay != here:
		return nil, 0, nil // another node will call it
	case m.isFrozen(t, now):
		t.move(Frozen)
		return nil, 0, nil
	case now < t.Key.Due:
		return nil, 0, m.waitForDue(sh, t) // the clock stepped back while it waited: never early
	case !t.busy && lv.overlaps(t):
		m.overlap(sh, t, now)
		return nil, 0, nil
	case lv.overtakes(t):
		t.move(Parked)
		return nil, 0, t.leave(now)
	case lv.heavy.Load() && body.Version != lv.def.Version:
		return nil, 0, t // changed since
	}
	if v, ok := m.mayBegin(sh, t, now); !ok {
		return nil, 0, m.conclude(sh, t, v.Status, v.Reason, now)
	}
	if !t.busy {
		t.busy = true
		lv.busy++
	}
	from = max(t.Key.Due, t.NotBefore)
	t.move(Preparing)
	t.touch()
	if m.Intents != nil && t.row == noRow && lv.def.Delivery == engine.AtMostOnce {
		t.row = rowStale
	}
	a = &Attempt{memory: m, task: t, lane: t.turn.Lane, was: t.Status, looked: now, Held: t.held, Came: sh.came}
	a.Call = engine.Call{Timer: m.Bodies.whole(sh, lv, body), Key: t.Key, Attempt: t.LastAttempt() + 1, Redelivered: t.past != noPast, Gate: a}
	if m.cfg.IsNode {
		a.Call.Fence = sh.fence
	}
	t.version = a.Call.Timer.Version
	a.Noted = m.noteBegun(t)
	return a, from, nil
}

// mayBegin decides whether an attempt may be made now; if not, v is the end of the task. mu is held.
func (m *Memory) mayBegin(sh *shard, t *Task, now int64) (v policy.Next, ok bool) {
	def := t.timer.def
	switch {
	case t.mayNotRepeat(): // nobody has told how its call has ended
		policy.PerhapsSent(&t.Task)
		return policy.Next{Status: engine.Unknown, Reason: engine.ReasonMayHaveBeen}, false
	case t.past != wasUnended && t.Key.Due > sh.handed && policy.MissedShot(def, &t.Task, sh.recovered, now):
		return policy.Next{Status: engine.Missed, Reason: engine.ReasonWindow}, false
	}
	return policy.BeforeAttempt(def, &t.Task, t.past == wasUnended, m.found(sh, now), now)
}

// Found is when the last recovery of a timer's shard, or forward step of the clock, found
// what was late.
func (m *Memory) Found(id engine.TimerID, now int64) int64 {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	return m.found(sh, now)
}

// found: see Found. mu is held.
func (m *Memory) found(sh *shard, now int64) int64 {
	return max(sh.recovered, min(m.Stepped.Load(), now))
}

// maxParked is how many tasks of one timer may wait for another of it.
const maxParked = 100

// overlap decides what becomes of a task whose timer is busy, or has one that is due
// before it. mu is held.
func (m *Memory) overlap(sh *shard, t *Task, now int64) {
	lv, end := t.timer, engine.Skipped
	if len(t.Attempts) > 0 {
		end = engine.Dead // it was called before, and can be retried by hand
	}
	switch {
	case lv.def.Overlap == engine.OverlapSkip:
		m.conclude(sh, t, end, engine.ReasonOverlap, now)
	case lv.parked >= maxParked:
		m.conclude(sh, t, end, engine.ReasonQueueFull, now)
	default:
		t.move(Parked)
	}
}

// roomy is when a task is tried again whose memory is needed: spread over a minute
// that is not loaded yet. It leaves with the next settle (release) and comes back
// with that minute.
func (m *Memory) roomy(k engine.Key) int64 {
	const settles = minute / 3 // by then it has been settled: settleWait
	return m.Horizon.Load() + settles + int64(plan.Scatter(uint64(k.Timer), uint64(k.Due))%uint64(minute-settles))
}

// IsHeavy reports whether the payload of a task's timer is counted: it may be missing in
// memory.
func (t *Task) IsHeavy() bool { return t.timer.heavy.Load() }

// Next is the definition that a task is called with, nil when it is not to be called now:
// Begin sets it aside.
func (m *Memory) Next(t *Task) *engine.Timer {
	sh := m.lock(t.Key.Timer)
	defer sh.mu.Unlock()
	if t.state != Queued || t.timer.frozen || sh.stay != here {
		return nil
	}
	return t.timer.def
}

// PutOff has a task wait until the instant, of which no attempt has begun.
func (m *Memory) PutOff(t *Task, at int64) {
	sh := m.lock(t.Key.Timer)
	defer sh.mu.Unlock()
	switch {
	case !m.isQueued(t), sh.stay == closed: // cancelled meanwhile, or captured
	case t.timer.frozen:
		t.move(Frozen)
	default:
		m.later(sh, t, at)
	}
}
