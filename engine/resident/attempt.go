package resident

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/policy"
)

// Attempt is one attempt of a task, and the gate that its call passes:
//
//	begin → note in the journal → resolve, dial → Wait → Enter → first byte → Leave → finish, or retry
//	        └────────────── the task Preparing ────────────┘ └──── Sending ──────────┘
//
// Until Enter nothing was sent. A change that takes hold of the timer meanwhile
// finds the task as it finds one in the queue, whatever a slow disk, DNS or dial
// is doing for it, and the attempt is as if never begun: its number is used again.
type Attempt struct {
	engine.Call
	memory *Memory
	task   *Task
	lane   *fair.Lane[*Task]      // whose limits count the call
	leaves *fair.Departure[*Task] // nil: no limit has been asked
	Noted  engine.Position        // in the journal
	Held   time.Duration          // for how long the task was held since the attempt before
	was    engine.TaskStatus      // before it was sent
	looked int64                  // when its due was last seen to have come (Unix ms)
	Over   bool                   // the task is another's by now: nothing here may touch it
	// Came is how its shard came: if the attempt may have been made before, that is why.
	Came Came
}

// Wait implements engine.Gate. A call that would wait for too long goes back to its lane.
func (a *Attempt) Wait() (waited time.Duration, ok bool) {
	if !a.lane.IsGated() {
		return 0, true
	}
	if a.leaves == nil {
		a.leaves = new(fair.Departure[*Task])
	}
	if waited, ok = a.Depart(a.leaves); !ok {
		a.memory.PutBack(a)
	}
	if waited > 0 {
		a.memory.PutBackStale(a)
	}
	return waited, ok && !a.Over
}

// PutBackStale puts those attempts back whose tasks have become stale during a wait: Begin ends these tasks.
func (m *Memory) PutBackStale(as ...*Attempt) {
	for _, a := range as {
		sh, t := m.lock(a.Key.Timer), a.task
		stale := false
		if !a.Over && t.state == Preparing {
			now := m.now()
			_, ok := policy.BeforeAttempt(t.timer.def, &t.Task, t.past == wasUnended, m.found(sh, now), now)
			stale = !ok
		}
		sh.mu.Unlock()
		if stale {
			m.PutBack(a)
		}
	}
}

// Depart waits until the limits of the lane let a call leave, of the attempt alone or of all that share it.
func (a *Attempt) Depart(d *fair.Departure[*Task]) (waited time.Duration, ok bool) {
	was := d.Waited
	ok = a.memory.Queue.Depart(a.lane, d)
	return d.Waited - was, ok
}

// EndDeparture takes the departure back if no byte of the call was sent, and returns for how long the call has waited.
func (a *Attempt) EndDeparture() (waited time.Duration) {
	if a.leaves == nil {
		return 0
	}
	a.leaves.End()
	return a.leaves.Waited
}

// Stay implements engine.Gate.
func (a *Attempt) Stay() {
	if a.leaves != nil {
		a.leaves.Stay()
	}
}

// Enter decides between sending a task and a change of its timer: both take the
// shard's lock. While the timers are not known to be this process's, Enter waits; then the task
// waits for another turn, which the limits of its keys allow. A task whose lane was paused since the
// task was handed out waits likewise.
func (a *Attempt) Enter() bool {
	sh, t, m := a.memory.shardOf(a.Key.Timer), a.task, a.memory
	sh.mu.Lock()
	now := m.now()
	again, ok := a.stands(now)
	paused := ok && m.Queue.IsPaused(t.turn.Lane)
	holds := m.cfg.Ownership.Holds() // last: nothing that takes time follows
	if ok && holds && !paused {
		a.looked = now
		t.move(Writing)
		t.Status = engine.Running
	}
	sh.mu.Unlock()
	switch {
	case ok && holds && !paused:
		return true
	case paused:
		again = a.PutBack()
	case ok:
		m.Queue.Halt()
		defer m.Queue.Resume()
		if !m.cfg.Ownership.Await() { // without the lock: a change may still end the attempt
			a.withdraw()
			return false
		}
		again = a.PutBack()
	}
	if again != nil {
		m.Enqueue([]*Task{again})
	}
	return false
}

// withdraw ends an attempt of which nothing was sent, and none will be: the task waits
// for a turn, which the next process gives it.
func (a *Attempt) withdraw() {
	sh := a.memory.lock(a.Key.Timer)
	defer sh.mu.Unlock()
	a.retreat()
}

// retreat is withdraw, and reports whether the attempt stood. mu is held.
func (a *Attempt) retreat() (again *Task, ok bool) {
	now := a.memory.now()
	if again, ok = a.stands(now); ok {
		a.task.await(now)
		a.task.touch()
		a.Over = true
	}
	return again, ok
}

// PutBack ends an attempt of which nothing was sent, and none will be: the task waits for
// another turn. It is for the caller to queue; nil: it is another's by now.
func (a *Attempt) PutBack() (again *Task) {
	sh := a.memory.lock(a.Key.Timer)
	defer sh.mu.Unlock()
	again, ok := a.retreat()
	if ok {
		again = a.task
	}
	return again
}

// PutBack ends attempts of which nothing was sent, and queues their tasks.
func (m *Memory) PutBack(as ...*Attempt) {
	var again []*Task
	for _, a := range as {
		if t := a.PutBack(); t != nil {
			again = append(again, t)
		}
	}
	m.Enqueue(again)
}

// Leave implements Gate.
func (a *Attempt) Leave(sent bool) {
	if a.leaves != nil {
		a.leaves.Leave(sent)
	}
	sh, t := a.memory.shardOf(a.Key.Timer), a.task
	sh.mu.Lock()
	switch {
	case t.state == Gone: // with its shard
	case sent:
		t.move(Sending)
	default:
		t.move(Preparing)
		t.Status = a.was
	}
	waited := t.timer.frozen || t.timer.def.Version != a.Timer.Version
	sh.mu.Unlock()
	if waited {
		a.memory.Settled.Broadcast()
	}
}

// stands reports whether an attempt of which nothing was sent may go on. If not, its
// task is gone, or set aside until its due or the end of a change of its timer, or, with the
// definition replaced, to be queued again: what was prepared is not what is to be
// sent. mu is held.
func (a *Attempt) stands(now int64) (again *Task, ok bool) {
	t, sh := a.task, a.memory.shardOf(a.Key.Timer)
	switch {
	case a.Over:
		return nil, false
	case t.state != Preparing: // its generation is over
	case t.timer.frozen:
		t.move(Frozen)
		t.touch()
	case sh.stay != here: // another node will call it
		t.await(now)
		t.touch()
	case t.timer.def.Version != a.Timer.Version:
		t.await(now)
		t.touch()
		again = t
	case now < t.Key.Due: // the clock stepped back since Begin: never early
		again = a.memory.waitForDue(sh, t)
	default:
		return nil, true
	}
	a.Over = true
	return again, false
}

// End takes the outcome of an attempt: notes it in the journal and decides what
// is next. That nothing could be sent for a timer that was changed is no outcome.
// What it returns is for counting.
func (a *Attempt) End(began time.Time, out engine.Outcome) (e Ended) {
	m, t := a.memory, a.task
	sh := m.shardOf(t.Key.Timer)
	now := m.now()
	sh.mu.Lock()
	if a.Over || !t.inCall() {
		if t.state == Gone && !a.Over && !out.Sent.IsZero() {
			e = a.left(began, &out, now)
			sh.mu.Unlock()
			return e
		}
		if again, ok := a.stands(now); !ok {
			sh.mu.Unlock()
			if again != nil {
				m.Enqueue([]*Task{again})
			}
			return e
		}
	}
	lv := t.timer
	v, first := a.take(began, &out, now)
	e = Ended{Counts: true, First: first && !out.Sent.IsZero(), At: now, Lateness: t.OwnLateness(), HeldBy: t.heldBy()}
	t.held = 0
	if t.past == wasUnended {
		t.past = mayRepeat
	}
	var freed *Task
	if v.Status == engine.Retrying {
		if m.IsFull() && lv.def.Overlap == engine.OverlapAllow {
			v.NotBefore = max(v.NotBefore, m.roomy(t.Key))
		}
		t.Status, t.NotBefore = engine.Retrying, v.NotBefore
		m.later(sh, t, v.NotBefore)
		t.inJournal(m.cfg.Journal.Finish(engine.EncodeTask(&t.Task)))
	} else {
		freed = m.conclude(sh, t, v.Status, v.Reason, now)
	}
	sh.mu.Unlock()
	if freed != nil {
		m.Enqueue([]*Task{freed})
	}
	return e
}

// take adds the attempt to its task, and decides what is next. mu is held.
func (a *Attempt) take(began time.Time, out *engine.Outcome, now int64) (v policy.Next, first bool) {
	t, started := a.task, out.Sent
	if started.IsZero() {
		started = began
	}
	if look := time.UnixMilli(a.looked); started.Before(look) {
		started = look // the clock was set back between the look and the first byte
	}
	if first = len(t.Attempts) == 0; first {
		t.Lateness = -1
		if !out.Sent.IsZero() {
			t.Lateness = started.Sub(time.UnixMilli(t.Key.Due))
		}
	}
	t.Attempts = append(t.Attempts, engine.Attempt{
		N: t.LastAttempt() + 1, Started: started.UnixMicro(), Took: out.Took, Code: out.Code,
		ErrorClass: out.ErrorClass, Response: out.Response, Phases: out.Phases, Batch: out.Batch, BatchSize: out.BatchSize,
	})
	return policy.AfterAttempt(t.timer.def, &t.Task, out, now, t.timer.ended(t.Generation)), first
}

// left ends an attempt whose shard was given away while the call was under way: the task is
// nobody's here. mu is held.
func (a *Attempt) left(began time.Time, out *engine.Outcome, now int64) Ended {
	v, first := a.take(began, out, now)
	t := a.task.Task
	t.Status, t.Reason, t.NotBefore = v.Status, v.Reason, v.NotBefore
	if v.Status.Final() {
		t.Ended = now
	}
	return Ended{Counts: true, First: first, At: now, Lateness: t.OwnLateness(), HeldBy: a.task.heldBy(), Left: &t}
}

// Ended is how an attempt counts.
type Ended struct {
	Counts   bool // false: nothing was sent for a timer that was changed
	First    bool // the first of its task, and it was sent
	At       int64
	Lateness time.Duration // of its task, without what held it
	HeldBy   string        // what held the task for longest since the attempt before; "": nothing
	// Left is its task as it stands since, if its shard was given away while the call was under
	// way: see Memory.Learn.
	Left *engine.Task
}

// Again queues a task that was handed out and not begun. One that was cancelled since is not queued.
func (m *Memory) Again(t *Task) {
	sh := m.lock(t.Key.Timer)
	queued := m.isQueued(t)
	sh.mu.Unlock()
	if queued {
		m.Enqueue([]*Task{t})
	}
}

// Enqueue has tasks wait for their turn, that are ready.
func (m *Memory) Enqueue(ts []*Task) {
	if len(ts) == 0 {
		return
	}
	now := m.cfg.Now().UnixMicro()
	var few [16]*fair.Item[*Task]
	items := few[:0]
	for _, t := range ts {
		if t.QueuedAt == 0 { // else it is back from where it was held, or Parked
			t.QueuedAt = now
		}
		items = append(items, &t.turn)
	}
	m.Queue.Push(items...)
}
