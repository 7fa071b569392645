package scheduler

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// attempt is one attempt of a task, and the gate that its call passes:
//
//	begin → note in the journal → resolve, dial → Enter → first byte → Leave → finish, or retry
//	        └────────── the task isPreparing ─────────┘ └──── isSending ────────┘
//
// Until Enter nothing was sent. A change that takes hold of the timer meanwhile
// finds the task as it finds one in the queue, whatever a slow disk, DNS or dial
// is doing for it, and the attempt is as if never begun: its number is used again.
type attempt struct {
	engine.Call
	e     *Scheduler
	task  *task
	was   engine.TaskStatus // before it was sent
	noted engine.Position   // in the journal
	over  bool              // the task is another's by now: nothing here may touch it
}

// Enter decides between sending a task and a change of its timer: both take the
// shard's lock.
func (a *attempt) Enter() bool {
	sh, t := a.e.shardOf(a.Key.Timer), a.task
	sh.mu.Lock()
	again, ok := a.stands()
	if ok {
		t.state, t.Status, t.writing = isSending, engine.Running, a.Timer
	}
	sh.mu.Unlock()
	if again != nil {
		a.e.enqueue([]*task{again})
	}
	return ok
}

// Leave implements Gate.
func (a *attempt) Leave(sent bool) {
	sh, t := a.e.shardOf(a.Key.Timer), a.task
	sh.mu.Lock()
	t.writing = nil
	if !sent {
		t.state, t.Status = isPreparing, a.was
	}
	waited := t.live.held || t.live.def.Version != a.Timer.Version
	sh.mu.Unlock()
	if waited {
		a.e.settled.broadcast()
	}
}

// stands reports whether an attempt of which nothing was sent may go on. If not, its
// task is gone, or set aside until the change of its timer has ended, or, with the
// definition replaced, to be queued again: what was prepared is not what is to be
// sent. mu is held.
func (a *attempt) stands() (again *task, ok bool) {
	t := a.task
	switch {
	case a.over:
		return nil, false
	case t.state != isPreparing: // its generation is over
	case t.live.held:
		t.state, t.dirty = isHeld, true
	case t.live.def.Version != a.Timer.Version:
		t.await(a.e.now())
		t.dirty, again = true, t
	default:
		return nil, true
	}
	a.over = true
	return again, false
}

// end takes the outcome of an attempt: notes it in the journal and decides what
// is next. That nothing could be sent for a timer that was changed is no outcome.
func (a *attempt) end(began time.Time, out engine.Outcome) {
	e, t := a.e, a.task
	sh := e.shardOf(t.Key.Timer)
	now := e.now()
	sh.mu.Lock()
	if a.over || t.state != isSending {
		if again, ok := a.stands(); !ok {
			sh.mu.Unlock()
			if again != nil {
				e.enqueue([]*task{again})
			}
			return
		}
	}
	t.writing = nil // after a panic between Enter and Leave
	lv := t.live
	first := len(t.Attempts) == 0
	if first {
		t.Lateness = -1
		if !out.Sent.IsZero() {
			t.Lateness = out.Sent.Sub(time.UnixMilli(t.Key.Due))
		}
	}
	started := out.Sent
	if started.IsZero() {
		started = began
	}
	n := t.LastAttempt() + 1
	t.Attempts = append(t.Attempts, engine.Attempt{
		N: n, Started: started.UnixMicro(), Took: out.Took, Code: out.Code,
		ErrorClass: out.ErrorClass, Response: out.Response, Phases: out.Phases,
	})
	t.noted = false
	v := policy.AfterAttempt(lv.def, &t.Task, &out, now, lv.ended(t.Generation))
	var freed *task
	if v.Status == engine.Retrying {
		if e.memoryFull() && lv.def.Overlap == engine.OverlapAllow {
			v.NotBefore = max(v.NotBefore, e.roomy(t.Key))
		}
		t.Status, t.NotBefore = engine.Retrying, v.NotBefore
		e.later(sh, t, v.NotBefore)
		t.inJournal(e.journal.Finish(engine.EncodeTask(&t.Task)))
	} else {
		freed = e.conclude(sh, t, v.Status, v.Reason, now)
	}
	lateness := t.Lateness
	sh.mu.Unlock()

	if a.Redelivered {
		e.metrics.redelivered.Inc()
	}
	e.metrics.attempt(out.Code)
	if first && !out.Sent.IsZero() {
		e.metrics.fired(lateness)
		e.recent.add(now, lateness)
	}
	if freed != nil {
		e.enqueue([]*task{freed})
	}
}
