package resident

import (
	"slices"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/wheel"
)

// Task is an occurrence in memory.
type Task struct {
	engine.Task
	Timer         *Timer
	Later, former *Task // the list of its timer
	chained       *Task // the index's
	Lane          *Lane // where it is counted, while it is in memory and not finished
	State         State
	Redelivered   bool             // its attempts may have been made before
	Noted         bool             // an attempt is known to have begun, and not how it ended
	HasRow        bool             // has a row in owed (or is covered by a range there)
	Evicted       bool             // not in memory any more
	RowStale      bool             // its row in owed does not say how it stands
	Cancelled     bool             // a change under way has its record
	Begun         bool             // counts in Timer.Busy
	Settling      bool             // a settle that names it is being committed
	Writing       *engine.Timer    // what it calls, while the first bytes are being written (see Gate); nil: nothing
	SettledAt     int64            // when it was settled, being done (see ticks); 0: not yet
	QueuedAt      int64            // when it came to the queue for its next attempt (Unix µs), 0: not yet; see enqueue
	Journaled     engine.Position  // 1 + the first of its records in the journal that nothing stored makes needless; 0: none
	turn          fair.Item[*Task] // in the queue
	Handle        wheel.Handle     // of its retry
	Encoded       []byte           // AppendTask of it, once done
}

// Used tells whether a task's key may have been sent, or was given away.
func (t *Task) Used() bool {
	return t.State == Sending || t.State == Done || len(t.Attempts) > 0 || t.Origin != engine.FromSchedule
}

// noteBegun notes in the journal that the next attempt of a task begins. Mu is held.
func (m *Memory) noteBegun(t *Task) engine.Position {
	p := m.cfg.Journal.Begin(engine.Begun{
		Key: t.Key, Generation: t.Generation, Attempt: uint32(t.LastAttempt()) + 1, Origin: t.Origin,
		AtMostOnce: t.Timer.Def.Delivery == engine.AtMostOnce,
	})
	t.InJournal(p)
	return p
}

// conclude gives a task its final status and notes it in the journal; see ends. Mu is held.
func (m *Memory) conclude(sh *Shard, t *Task, status engine.TaskStatus, reason string, now int64) (freed *Task) {
	freed = m.Ends(sh, t, status, reason, now)
	t.InJournal(m.cfg.Journal.Finish(t.Encoded))
	return freed
}

// leave ends a task's turn at its timer; the task that waited for it, if any, is
// returned to be queued. It counts as busy at once, so that none that comes due now
// goes before it. Mu is held.
func (t *Task) leave(now int64) (freed *Task) {
	lv := t.Timer
	if t.Begun {
		t.Begun = false
		lv.Busy--
	}
	if lv.Busy == 0 {
		for len(lv.Parked) > 0 && freed == nil {
			p := lv.Parked[0]
			lv.Parked = lv.Parked[1:]
			if p.State == Parked {
				p.Await(now)
				p.Begun = true
				lv.Busy++
				freed = p
			}
		}
	}
	return freed
}

// Yields tells whether a task that waits for its due again gives up its turn: its
// timer is busy for one that failed. One that may have been sent has no attempt under
// way either, but with overlap skip it would be skipped for the next.
func (t *Task) Yields() bool {
	return len(t.Attempts) == t.Base && (!t.Redelivered || t.Timer.Def.Overlap == engine.OverlapQueue)
}

// Later puts a task into the wheel until the instant. Mu is held.
func (m *Memory) Later(sh *Shard, t *Task, at int64) {
	t.State, t.QueuedAt = Retrying, 0
	t.Handle = m.Wheel.Add(at, Item{t.Key.Timer, t.Key.Due})
	t.RowStale = true
}

// Snapshot is a copy for a reader. Mu is held.
func (t *Task) Snapshot() *engine.Task {
	c := t.Task
	c.Attempts = slices.Clone(t.Attempts)
	return &c
}

// Enlist makes a task of a due. Mu is held.
func (sh *Shard) Enlist(lv *Timer, k engine.Key, origin engine.Origin, owed bool, now int64) *Task {
	t := &Task{Timer: lv, HasRow: owed}
	t.Key, t.Origin, t.Since = k, origin, k.Due
	t.App, t.Name, t.Generation = lv.Def.App, lv.Def.Name, lv.Def.Generation
	t.Await(now)
	sh.Attach(t)
	return t
}

// Await makes a task ready for the queue. Mu is held.
func (t *Task) Await(now int64) {
	t.State = Queued
	t.turn = fair.Item[*Task]{Value: t, Lane: t.Timer.lane, Ready: now, Priority: uint8(t.Timer.Def.Priority)}
}

// Attach puts an unfinished task into memory. Mu is held.
func (sh *Shard) Attach(t *Task) {
	if t.Key.Due <= t.Timer.Latest { // one of its key may be there, which is settled
		if former := sh.Tasks.Find(t.Key); former != nil {
			sh.Tasks.Remove(former)
		}
	}
	sh.Tasks.Put(t)
	sh.Order = append(sh.Order, t)
	lv := t.Timer
	lv.Latest = max(lv.Latest, t.Key.Due)
	sh.latest = max(sh.latest, lv.Latest)
	t.Lane = lv.InMemory()
	t.Lane.enter()
	t.Later = lv.Tasks
	if t.Later != nil {
		t.Later.former = t
	}
	lv.Tasks = t
}

// Forget takes an unfinished task out of memory. Mu is held.
func (m *Memory) Forget(sh *Shard, t *Task) {
	sh.Tasks.Remove(t)
	t.Evicted = true
	m.detach(sh, t)
}

// detach takes an unfinished task out of its timer's list, the queue and the wheel. Mu is held.
func (m *Memory) detach(sh *Shard, t *Task) {
	if t.former != nil {
		t.former.Later = t.Later
	} else {
		t.Timer.Tasks = t.Later
	}
	if t.Later != nil {
		t.Later.former = t.former
	}
	t.Later, t.former = nil, nil
	switch t.State {
	case Queued:
		m.Queue.Remove(&t.turn)
	case Retrying:
		m.Wheel.Remove(t.Handle)
	case Leaving:
		t.Lane.Left(t)
	}
	t.Lane.leave()
	sh.Dismiss(t.Timer)
}

// Ends gives a task its final status; it stays in memory until it is settled. freed:
// see leave. Mu is held.
func (m *Memory) Ends(sh *Shard, t *Task, status engine.TaskStatus, reason string, now int64) (freed *Task) {
	freed = t.leave(now)
	m.detach(sh, t)
	t.State, t.Status, t.Reason, t.Ended, t.NotBefore = Done, status, reason, now, 0
	t.Encoded = engine.EncodeTask(&t.Task)
	sh.Done++
	sh.DoneBytes += int64(len(t.Encoded))
	m.cfg.Ended(&t.Task)
	return freed
}

// InJournal notes a record that the journal has of a task. Mu is held since before it
// was appended, so that a settle sees both or neither.
func (t *Task) InJournal(p engine.Position) {
	if t.Journaled == 0 {
		t.Journaled = p + 1
	}
}

// IsOverdue reports whether a task is due and not begun. Mu of its shard is held.
func (t *Task) IsOverdue() bool {
	switch t.State {
	case Queued, Frozen, Parked, Leaving:
		return true
	}
	return false
}
