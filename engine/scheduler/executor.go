package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// enqueue has tasks wait for their turn, that are ready.
func (e *Scheduler) enqueue(ts []*task) {
	if len(ts) == 0 {
		return
	}
	now := e.cfg.Now().UnixMicro()
	var few [16]*fair.Item[*task]
	items := few[:0]
	for _, t := range ts {
		if t.left == 0 { // else it is back from where it was held, or parked
			t.left = now
		}
		items = append(items, &t.turn)
	}
	e.queue.Push(items...)
}

// execute makes one attempt of a task, on a worker of the queue:
//
//	its body is there → begin, noted in the journal → call → end
func (e *Scheduler) execute(t *task) fair.Result {
	if e.stalled.Load() {
		e.awaitCalm()
		if e.ending.Load() {
			return fair.Result{} // the last settle leaves a row of it
		}
	}
	body, ok := e.ready(t)
	if !ok {
		return fair.Result{}
	}
	defer body.release()
	began := e.cfg.Now()
	a, from, freed := e.begin(t, began.UnixMilli(), &body)
	if freed != nil {
		e.enqueue([]*task{freed})
	}
	if a == nil {
		return fair.Result{}
	}
	if a.Timer.Delivery == engine.AtMostOnce {
		// The promise not to repeat needs the note on the disk before the call.
		if err := e.journal.Sync(context.Background(), a.noted); err != nil {
			e.log.Error("cannot note an at_most_once attempt; it is not made", "task", t.Key, "error", err)
			a.end(e.cfg.Now(), engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "journal"})
			return fair.Result{}
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
	if a.over {
		return fair.Result{} // nothing was sent: it shows nothing of the target
	}
	return fair.Result{Ended: answered(&out), Took: out.Took}
}

// answered says what a call showed of its target: a whole answer came, or none. A
// panic shows nothing.
func answered(out *engine.Outcome) fair.Ended {
	switch {
	case out.ErrorClass == "panic":
		return fair.NotMade
	case out.Code != 0 && out.Class != engine.ClassUnknown:
		return fair.Answered
	}
	return fair.Unanswered
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
// turn it is, to be queued: another, or t with the body that it has now.
func (e *Scheduler) begin(t *task, now int64, body *body) (a *attempt, from int64, freed *task) {
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
	case lv.heavy.Load() && body.version != lv.def.Version:
		return nil, 0, t // changed since
	}
	if v, fresh := policy.BeforeAttempt(lv.def, &t.Task, t.noted, e.found(now), now); !fresh {
		return nil, 0, e.conclude(sh, t, v.Status, v.Reason, now)
	}
	if !t.begun {
		t.begun = true
		lv.busy++
	}
	from = max(t.Key.Due, t.NotBefore)
	t.state, t.dirty = isPreparing, true
	a = &attempt{e: e, task: t, was: t.Status}
	a.Call = engine.Call{Timer: e.bodies.whole(sh, lv, body), Key: t.Key, Attempt: t.LastAttempt() + 1, Redelivered: t.redelivered, Gate: a}
	a.noted = e.noteBegun(t)
	return a, from, nil
}

// noteBegun notes in the journal that the next attempt of a task begins. mu is held.
func (e *Scheduler) noteBegun(t *task) engine.Position {
	p := e.journal.Begin(engine.Begun{
		Key: t.Key, Generation: t.Generation, Attempt: uint32(t.LastAttempt()) + 1, Origin: t.Origin,
		AtMostOnce: t.live.def.Delivery == engine.AtMostOnce,
	})
	t.inJournal(p)
	return p
}

// found is when the last start or forward step of the clock found what was late.
func (e *Scheduler) found(now int64) int64 { return max(e.startedAt, min(e.stepped.Load(), now)) }

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

// attemptBytes is what a timer in the wheel may yet need: its task, an attempt that
// failed, and what settles them.
const attemptBytes = 1024

// memoryFull tells that nothing new may be taken: all that is in the wheel may fail
// at once, and be called with payloads that are not in memory yet. 43,000 timers of a target that refused each of them were too much for a
// control group of 128 MiB, and the kernel ended the process.
func (e *Scheduler) memoryFull() bool {
	return e.cfg.MemoryFull(attemptBytes*int64(e.wheel.Len()) + e.bodies.ahead())
}

// roomy is when a task is tried again whose memory is needed: spread over a minute
// that is not loaded yet. It leaves with the next settle (release) and comes back
// with that minute.
func (e *Scheduler) roomy(k engine.Key) int64 {
	const settles = minute / 3 // by then it has been settled: settleWait
	return e.horizon.Load() + settles + int64(plan.Scatter(uint64(k.Timer), uint64(k.Due))%uint64(minute-settles))
}

// conclude gives a task its final status and notes it in the journal; see ends. mu is held.
func (e *Scheduler) conclude(sh *shard, t *task, status engine.TaskStatus, reason string, now int64) (freed *task) {
	freed = e.ends(sh, t, status, reason, now)
	t.inJournal(e.journal.Finish(t.encoded))
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

const (
	placesEvery = time.Second
	// placesStep is the part of MaxCalls by which the bound of calls in flight rises
	// again, and which is always allowed.
	placesStep = 16
)

// followMemory lowers the bound of calls in flight while memory is full: each second
// to three quarters of those that there are. A call takes some 30 KB, and calls that
// wait for slow targets are what can be had back soonest.
func (e *Scheduler) followMemory(ctx context.Context) error {
	least := max(e.cfg.MaxCalls/placesStep, 1)
	for places := e.cfg.MaxCalls; ctx.Err() == nil; sleep(ctx, placesEvery) {
		was := places
		if _, inFlight := e.queue.Load(); e.cfg.MemoryFull(0) {
			places = max(least, min(places, inFlight)*3/4)
		} else {
			places = min(places+least, e.cfg.MaxCalls)
		}
		if places != was {
			e.queue.SetPlaces(places)
		}
	}
	return nil
}

// Calls describes the calls in flight, and at most n of the targets whose limit makes
// tasks wait.
func (e *Scheduler) Calls(n int) fair.Stats { return e.queue.Stats(n) }
