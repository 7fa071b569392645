package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
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
	e    *Scheduler
	task *task
	was  engine.TaskStatus // before it was sent
	over bool              // the task is another's by now: nothing here may touch it
}

// execute makes one attempt of a task, on a worker of the queue.
func (e *Scheduler) execute(t *task) (took time.Duration) {
	if e.stalled.Load() {
		e.awaitCalm()
		if e.ending.Load() {
			return 0 // the last settle leaves a row of it
		}
	}
	began := e.cfg.Now()
	a, from, freed := e.begin(t, began.UnixMilli())
	if freed != nil {
		e.queue.push([]*task{freed})
	}
	if a == nil {
		return 0
	}
	amo := a.Timer.Delivery == engine.AtMostOnce
	p := e.journal.Begin(engine.Begun{
		Key: t.Key, Generation: t.Generation, Attempt: uint32(a.Attempt), Origin: t.Origin, AtMostOnce: amo,
	})
	if amo {
		// The promise not to repeat needs the note on the disk before the call.
		if err := e.journal.Sync(context.Background(), p); err != nil {
			e.log.Error("cannot note an at_most_once attempt; it is not made", "task", t.Key, "error", err)
			a.end(e.cfg.Now(), engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "journal"})
			return 0
		}
		began = e.cfg.Now()
	}
	left := time.UnixMicro(t.left)
	failpoint.Hit("intent-before-send")
	e.metrics.inFlight.Inc()
	out := e.call(&a.Call)
	e.metrics.inFlight.Dec()
	failpoint.Hit("response-before-result")
	out.Phases.Wheel = max(0, left.Sub(time.UnixMilli(from)))
	out.Phases.Queue += max(0, began.Sub(left))
	a.end(began, out)
	return out.Took
}

// call makes the call; a panic in it is one unknown outcome and no more.
func (e *Scheduler) call(c *engine.Call) (out engine.Outcome) {
	defer func() {
		if r := recover(); r != nil {
			e.metrics.panics.Inc()
			e.log.Error("BUG: a call panicked", "task", c.Key, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			out = engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "panic"}
		}
	}()
	return e.cfg.Caller.Call(c)
}

// begin takes a task out of the queue: it becomes isPreparing, or is set aside (a
// is nil). The attempt should have begun at from (Unix ms). freed is a task whose
// turn it is, to be queued.
func (e *Scheduler) begin(t *task, now int64) (a *attempt, from int64, freed *task) {
	sh := e.shardOf(t.Key.Timer)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	lv := t.live
	raise(&e.upTo, now) // also for one that ends here, for its timer is busy
	switch {
	case t.state != isWaiting:
		return nil, 0, nil // cancelled while it waited
	case lv.held:
		t.state = isHeld
		return nil, 0, nil
	case now < t.Key.Due:
		// The clock stepped back while it waited: never early. Who waits for it need not.
		e.later(sh, t, t.Key.Due)
		if t.yields() {
			freed = t.leave(now)
		}
		return nil, 0, freed
	case !t.begun && lv.busy > 0 && lv.def.Overlap != engine.OverlapAllow:
		e.overlap(sh, t, now)
		return nil, 0, nil
	}
	if !t.begun {
		t.begun = true
		lv.busy++
	}
	from = max(t.Key.Due, t.NotBefore)
	t.state, t.dirty = isPreparing, true
	a = &attempt{e: e, task: t, was: t.Status}
	a.Call = engine.Call{Timer: lv.def, Key: t.Key, Attempt: t.LastAttempt() + 1, Redelivered: t.redelivered, Gate: a}
	return a, from, nil
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
		a.e.queue.push([]*task{again})
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
	waited := t.live.held || t.live.def != a.Timer
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
	case t.live.def != a.Timer:
		t.await(a.e.now())
		t.dirty, again = true, t
	default:
		return nil, true
	}
	a.over = true
	return again, false
}

// maxParked is how many tasks of one timer may wait for another of it.
const maxParked = 100

// overlap decides what becomes of a task whose timer is busy. mu is held.
func (e *Scheduler) overlap(sh *shard, t *task, now int64) {
	lv := t.live
	switch {
	case lv.def.Overlap == engine.OverlapSkip:
		e.conclude(sh, t, engine.Skipped, engine.ReasonOverlap, now)
	case len(lv.parked) >= maxParked:
		e.conclude(sh, t, engine.Skipped, engine.ReasonQueueFull, now)
	default:
		t.state = isParked
		lv.parked = append(lv.parked, t)
	}
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
				e.queue.push([]*task{again})
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
	v := policy.AfterAttempt(lv.def, &t.Task, &out, now, lv.ended(t.Generation))
	var freed *task
	if v.Status == engine.Retrying {
		if e.memoryFull() && lv.def.Overlap == engine.OverlapAllow {
			v.NotBefore = max(v.NotBefore, e.roomy(t.Key))
		}
		t.Status, t.NotBefore = engine.Retrying, v.NotBefore
		e.later(sh, t, v.NotBefore)
		e.journal.Finish(engine.EncodeTask(&t.Task))
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
		e.queue.push([]*task{freed})
	}
}

// attemptBytes is what a timer in the wheel may yet need: its task, an attempt that
// failed, and what settles them.
const attemptBytes = 1024

// memoryFull tells that nothing new may be taken: all that is in the wheel may fail
// at once. 43,000 timers of a target that refused each of them were too much for a
// control group of 128 MiB, and the kernel ended the process.
func (e *Scheduler) memoryFull() bool {
	return e.cfg.MemoryFull(attemptBytes * int64(e.wheel.Len()))
}

// roomy is when a task is tried again whose memory is needed: spread over a minute
// that is not loaded yet. It leaves with the next settle (release) and comes back
// with that minute.
func (e *Scheduler) roomy(k engine.Key) int64 {
	const settles = minute / 3 // by then it has been settled: settleWait
	return e.horizon.Load() + settles + int64(plan.Scatter(uint64(k.Timer), uint64(k.Due))%uint64(minute-settles))
}

// conclude gives a task its final status; see leave. mu is held.
func (e *Scheduler) conclude(sh *shard, t *task, status engine.TaskStatus, reason string, now int64) (freed *task) {
	freed = t.leave(now)
	e.finish(sh, t, status, reason, now)
	e.metrics.ended(status)
	e.followers.tell(&t.Task)
	return freed
}

// leave ends a task's turn at its timer; the task that waited for it, if any, is
// returned to be queued. It counts as busy at once, so that none that comes due now
// goes before it. mu is held.
func (t *task) leave(now int64) (freed *task) {
	lv := t.live
	if t.begun {
		t.begun = false
		lv.busy--
	}
	if lv.busy == 0 {
		for len(lv.parked) > 0 && freed == nil {
			p := lv.parked[0]
			lv.parked = lv.parked[1:]
			if p.state == isParked {
				p.await(now)
				p.begun = true
				lv.busy++
				freed = p
			}
		}
	}
	return freed
}

// yields tells whether a task that waits for its due again gives up its turn: its
// timer is busy for one that failed. One that may have been sent has no attempt under
// way either, but with overlap skip it would be skipped for the next.
func (t *task) yields() bool {
	return len(t.Attempts) == t.Base && (!t.redelivered || t.live.def.Overlap == engine.OverlapQueue)
}

// later puts a task into the wheel until the instant. mu is held.
func (e *Scheduler) later(sh *shard, t *task, at int64) {
	t.state, t.left = isRetrying, 0
	t.handle = e.wheel.Add(at, item{t.Key.Timer, t.Key.Due})
	t.dirty = true
}
