package scheduler

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/fair"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// execute makes one attempt of a task, on a worker of the queue:
//
//	the timers are ours → its body is there → begin, noted in the journal → call → end
func (e *Scheduler) execute(t *resident.Task) fair.Result {
	if !e.mayCall(t) {
		return fair.Result{}
	}
	body, ok := e.ready(t)
	if !ok {
		return fair.Result{}
	}
	defer body.Release()
	began := e.cfg.Now()
	a, from, freed := e.memory.Begin(t, began.UnixMilli(), &body)
	if freed != nil {
		e.memory.Enqueue([]*resident.Task{freed})
	}
	if a == nil {
		return fair.Result{}
	}
	switch once := a.Timer.Delivery == engine.AtMostOnce; {
	case once && e.life != nil:
		if !a.Intend() {
			return fair.Result{}
		}
		began = e.cfg.Now()
	case once:
		// The promise not to repeat needs the note on the disk before the call.
		if err := e.journal.Sync(context.Background(), a.Noted); err != nil {
			e.notNoted(a, err)
			return fair.Result{}
		}
		began = e.cfg.Now()
	}
	left := time.UnixMicro(t.QueuedAt)
	out := e.call(&a.Call)
	out.Phases.Wheel = max(0, left.Sub(time.UnixMilli(from)))
	waited := a.EndDeparture()
	out.Phases.Hold = a.Held + waited
	out.Phases.Queue += max(0, began.Sub(left)-a.Held)
	e.end(a, began, out)
	if a.Over {
		return fair.Result{} // nothing was sent: it shows nothing of the target
	}
	return fair.Result{Ended: answered(&out), Took: out.Took, Waited: waited, Bad: isBad(&out), Close: closes(&out)}
}

// mayCall reports whether a call may begin. If not, mayCall halts the queue, waits until calls may
// begin, and queues the task again: calls of a flow key that went on from here would begin all at
// once. If no call may begin any more, the last settle leaves a row of the task.
func (e *Scheduler) mayCall(t *resident.Task) bool {
	if !e.backpressure.stalled.Load() && e.ownership.Holds() {
		return true
	}
	e.memory.Queue.Halt()
	defer e.memory.Queue.Resume()
	e.awaitCalm()
	if e.process.Context().Err() == nil && e.ownership.Await() {
		e.memory.Again(t)
	}
	return false
}

// executeBatch makes one attempt of a task, and of others that share its call.
func (e *Scheduler) executeBatch(t *resident.Task, more *fair.More[*resident.Task]) fair.Result {
	if !e.mayCall(t) {
		return fair.Result{}
	}
	def := e.memory.Next(t)
	if def == nil || def.Callback.Batch == nil { // it is set aside, or its timer was changed
		return e.execute(t)
	}
	made := e.batches.Run(t, def.Callback.Batch, more)
	if made.Size == 0 {
		return fair.Result{}
	}
	out, bad := &made.Outcome, 0
	res := fair.Result{Ended: answered(out), Took: out.Took, Waited: made.Waited, Bad: isBad(out), Close: closes(out)}
	for _, f := range made.Failures { // as if each had been answered so
		if isBad(&f) {
			bad++
		}
		res.Close = max(res.Close, closes(&f))
	}
	res.Bad = res.Bad || 2*bad > made.Size
	return res
}

// note notes on the disk that attempts of at_most_once tasks begin, before a byte is sent.
// It returns those that may go on.
func (e *Scheduler) note(all []*resident.Attempt) []*resident.Attempt {
	if e.life != nil {
		return resident.Intend(all)
	}
	if err := e.journal.Sync(context.Background(), all[len(all)-1].Noted); err != nil {
		for _, a := range all {
			e.notNoted(a, err)
		}
		return nil
	}
	return all
}

// notNoted ends an attempt whose begin is not on the disk: it is not made.
func (e *Scheduler) notNoted(a *resident.Attempt, err error) {
	e.log.Error("cannot note an at_most_once attempt; it is not made", "task", a.Key, "error", err)
	e.end(a, e.cfg.Now(), engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "journal"})
}

// isBad reports whether an outcome counts against a breaker: it may be repeated, or there
// was no answer, and it is no 4xx.
func isBad(out *engine.Outcome) bool {
	return out.Class != engine.ClassOK && out.Class != engine.ClassRejected && out.Code/100 != 4
}

// closes is for how long an answer asks that its target be left alone.
func closes(out *engine.Outcome) time.Duration {
	if out.Code == http.StatusTooManyRequests || out.Code == http.StatusServiceUnavailable {
		return out.RetryAfter
	}
	return 0
}

// end ends an attempt, and counts it.
func (e *Scheduler) end(a *resident.Attempt, began time.Time, out engine.Outcome) {
	code, class, took := out.Code, out.ErrorClass, out.Took
	ended := a.End(began, out)
	if !ended.Counts {
		return
	}
	if a.Redelivered {
		e.metrics.redelivered[a.Came].Inc()
	}
	e.metrics.attempt(code)
	e.tally.Attempt(a.Timer, ended, class == "", took)
	if a.Held > 0 {
		e.metrics.held(ended.HeldBy, a.Held)
	}
	if ended.First {
		e.metrics.fired(ended.Lateness)
		if e.cfg.First != nil {
			e.cfg.First(a.Key, a.Timer.App, a.Timer.Name, ended.Lateness)
		}
	}
	if ended.Left != nil {
		e.tellOwner(ended.Left)
	}
}

// answered says what a call showed of its target: a whole answer came, or none. A
// panic, and a call that was not made, show nothing.
func answered(out *engine.Outcome) fair.Ended {
	switch {
	case out.ErrorClass == "bad_answer":
		return fair.Answered
	case out.ErrorClass == "panic", out.ErrorClass == engine.SecretMissing:
		return fair.NotMade
	case out.Code != 0 && out.Class != engine.ClassUnknown:
		return fair.Answered
	}
	return fair.Unanswered
}

// call makes the call; a panic in it is one unknown outcome and no more.
func (e *Scheduler) call(c *engine.Call) (out engine.Outcome) {
	failpoint.Hit("intent-before-send")
	defer failpoint.Hit("response-before-result")
	e.metrics.inFlight.Inc()
	defer e.metrics.inFlight.Dec()
	defer func() {
		if r := recover(); r != nil {
			e.metrics.panics.Inc()
			e.log.Error("BUG: a call panicked", "task", c.Key, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			out = engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "panic"}
		}
	}()
	if e.life == nil {
		return e.cfg.Caller.Call(c)
	}
	began := e.cfg.Now().Round(0)
	out = e.cfg.Caller.Call(c)
	if !out.Sent.IsZero() { // the caller has read the wall clock
		out.Sent = e.life.Right(out.Sent.Round(0))
		if out.Sent.Before(began) || out.Sent.After(e.cfg.Now().Round(0)) { // the clock was set during the call
			out.Sent = began
		}
	}
	return out
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
	for places := e.cfg.MaxCalls; ctx.Err() == nil; process.Sleep(ctx, placesEvery) {
		was := places
		if _, inFlight := e.memory.Queue.Load(); e.cfg.MemoryFull(0) {
			places = max(least, min(places, inFlight)*3/4)
		} else {
			places = min(places+least, e.cfg.MaxCalls)
		}
		if places != was {
			e.memory.Queue.SetPlaces(places)
		}
	}
	return nil
}
