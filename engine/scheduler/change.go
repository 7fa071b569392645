package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/resident"
)

// edit is what a change makes of a timer.
type edit struct {
	timer *engine.Timer // as it stands after; nil: deleted
	// keep: the dues stay what they were (a change of the callback, of labels),
	// and so do generation, valid_from and what is owed.
	keep bool
	// fresh: the schedule was given anew, so an instant that is past is due.
	fresh  bool
	reason string        // of the tasks that it cancels
	owe    []engine.Owed // dues that an enable catches up
	spent  policy.Spans  // dues that the range among owe does not owe
	rest   bool          // rows of the former generation are left to ended
	// once is a key of the new generation that may not have begun; zero: none.
	once engine.Key
}

// changed is what a change met and left.
type changed struct {
	was, now *engine.Timer
	next     int64
	inFlight int // calls that were running: they may end
	finished bool
}

// change makes one change of one timer, so that no attempt under the former
// schedule starts after it was acknowledged, and none is lost when it fails:
//
//	mark the timer as changing → read it → decide (f) → hold its tasks →
//	commit the definition, with what becomes of each open due, in one
//	transaction → drop the held tasks and seat the new generation
//
// or, when the commit failed, let the held tasks go on. f may return nil for
// "nothing to do". match is a version that must stand, 0: any.
//
// f gets the instant of the change.
func (e *Scheduler) change(ctx context.Context, id engine.TimerID, match uint32, f func(t *engine.Timer, now int64) (*edit, error)) (changed, error) {
	if err := e.serving(); err != nil {
		return changed{}, err
	}
	release, err := e.memory.Claim(ctx, id)
	if err != nil {
		return changed{}, err
	}
	steps := e.steps.Load()
	now := e.now()
	h := e.memory.Pins.Pin(now)
	over := func() {
		e.memory.Pins.Release(h)
		release()
	}
	defer func() { over() }()

	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return changed{}, err
	}
	if err := stands(t, match); err != nil {
		return changed{}, err
	}
	out := changed{was: t, now: t, finished: e.status(t, now) == engine.Finished}
	sh := e.memory.ShardOf(id)
	reached, err := e.reached(ctx, sh, id, now)
	if err != nil {
		return out, err
	}
	resident.Raise(&e.memory.UpTo, now)
	ed, err := f(t, now)
	if err != nil || ed == nil {
		return out, err
	}
	c := &engine.Change{Timer: ed.timer, ID: id, Was: t.Version, At: now}
	if !ed.keep {
		err := e.freeze(ctx, sh, id)
		if err == nil {
			now, ed, err = e.editAfter(t, ed, now, reached, f)
			c.Timer, c.At = ed.timer, now
		}
		if err == nil {
			err = e.endGeneration(ctx, sh, c, t, ed, reached, &out)
		}
		if err == nil && e.steps.Load() != steps {
			// Dues may have been decided by the clock as it is now, which the change
			// knows nothing of: it is made again, by the same clock.
			e.thaw(sh, id)
			over()
			over = func() {}
			return e.change(ctx, id, match, f)
		}
		if err != nil {
			e.thaw(sh, id)
			return out, err
		}
	}
	failpoint.Hit("change-before-commit")
	if _, err := applied(e.cfg.Cold.Apply(ctx, c)); err != nil {
		if inDoubt(err) {
			end := over
			over = func() {}
			e.background.Go(func() {
				if made, sure := e.resolve(c); made {
					e.replace(e.life, sh, t, ed, c, now)
				} else if sure {
					e.thaw(sh, id)
				} else {
					return // the process ends: what is held stays held
				}
				end()
			})
			return out, err
		}
		e.thaw(sh, id)
		if errors.Is(err, engine.ErrConflict) {
			return out, &engine.Fault{Kind: engine.FaultConflict, Code: "changed_meanwhile", Detail: "another request changed the timer at the same time"}
		}
		return out, err
	}
	failpoint.Hit("change-after-commit")
	out.now = ed.timer
	out.next = e.replace(ctx, sh, t, ed, c, now)
	return out, nil
}

// endGeneration adds to a change what becomes of the standing generation and what the next one
// starts with. The timer's tasks are held.
func (e *Scheduler) endGeneration(ctx context.Context, sh *resident.Shard, c *engine.Change, t *engine.Timer, ed *edit, reached int64, out *changed) error {
	upTo := c.At // which dues have come
	if ed.atOnce(c.At) {
		// The latest time that a call of the timer may have had, in case the clock was
		// set back since: what verify finds later than this began after the change.
		c.At = max(reached, e.memory.UpTo.Load())
		if ed.timer != nil {
			ed.timer.UpdatedAt = c.At
		} else {
			upTo = c.At // nothing comes any more
		}
	}
	if ed.once != (engine.Key{}) {
		if err := e.unbegun(ctx, ed.once); err != nil { // it may have, since f looked
			return err
		}
	}
	rows, more, err := e.rowsOf(ctx, t.ID, upTo)
	if err != nil {
		return err
	}
	ed.rest = more
	var waited bool
	out.inFlight, waited, err = e.cancel(ctx, sh, c, &policy.Ending{Former: t, Reason: ed.reason, At: c.At, UpTo: upTo}, rows)
	if err != nil {
		return err
	}
	out.finished = out.finished && !waited // far retries are not in memory
	if err := e.syncEnds(ctx, sh, t.ID); err != nil || ed.timer == nil {
		return err
	}
	err = e.oweAnew(ctx, t, ed, reached)
	c.Owe = append(c.Owe, ed.owe...)
	return err
}

func applied(a engine.Applied, err error) (engine.Applied, error) {
	if err == nil {
		err = a.Err
	}
	return a, err
}

// reached is the last due of a timer that was called or decided, or now when that is
// later: it is not, only after the clock was set back. Up to there a key may have been
// used.
func (e *Scheduler) reached(ctx context.Context, sh *resident.Shard, id engine.TimerID, now int64) (int64, error) {
	from := now
	sh.Mu.Lock()
	for _, t := range sh.Order {
		if t.Key.Timer == id && !t.Evicted && t.Used() {
			from = max(from, t.Key.Due)
		}
	}
	ahead := sh.Watermark > now
	sh.Mu.Unlock()
	if !ahead && now >= e.memory.UpTo.Load() {
		return from, nil // the clock was not set back
	}
	// After memory: what leaves it was stored before.
	last, err := e.cfg.Cold.LastTask(ctx, id)
	if err == nil {
		from = max(from, last.Key.Due, last.DueLast)
	} else if !errors.Is(err, engine.ErrNotFound) {
		return 0, err
	}
	if !ahead {
		return from, nil
	}
	err = e.eachRow(ctx, id, from, func(o *engine.Owed) bool {
		if o.To == 0 && o.Used() {
			from = max(from, o.Key.Due)
		}
		return true
	})
	return from, err
}

// inDoubt tells whether a failed commit may have been made, or be made yet.
func inDoubt(err error) bool {
	var f *engine.Fault
	return errors.Is(err, engine.ErrUnavailable) || !errors.As(err, &f)
}

// resolve finds out whether a commit in doubt was made: a write that goes
// through after it settles its fate. sure is false when the process ends first.
func (e *Scheduler) resolve(c *engine.Change) (made, sure bool) {
	for e.life.Err() == nil {
		err := e.cfg.Cold.Settle(e.life, &engine.Settlement{Owner: e.cfg.Node})
		if err == nil {
			t, err := e.cfg.Cold.Timer(e.life, c.ID)
			switch {
			case errors.Is(err, engine.ErrNotFound):
				return c.Timer == nil, true
			case err == nil:
				return c.Timer != nil && t.Version == c.Timer.Version, true
			}
		}
		sleep(e.life, time.Second)
	}
	return false, false
}

// freeze stops attempts of the timer from starting, waits until no settle that
// names one of its tasks is under way, no decision of its misfires, and no write of
// a first byte. With a cold tier that does not answer it waits for freezeFor.
func (e *Scheduler) freeze(ctx context.Context, sh *resident.Shard, id engine.TimerID) error {
	limited, cancel := context.WithTimeout(ctx, freezeFor)
	defer cancel()
	for {
		settled := e.memory.Settled.Wait()
		sh.Mu.Lock()
		lv, busy := sh.Timers[id], false
		if lv != nil {
			lv.Frozen = true
			busy = lv.Deciding
			for t := lv.Tasks; t != nil; t = t.Later {
				busy = busy || t.Settling || t.Writing != nil
			}
		}
		sh.Mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-settled:
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("cannot change timer %s: what was due of it cannot be stored: %w", id, engine.ErrUnavailable)
		}
	}
}

// freezeFor is how long a change waits for what is being stored of its timer.
const freezeFor = 10 * time.Second

// thaw lets held tasks go on, late.
func (e *Scheduler) thaw(sh *resident.Shard, id engine.TimerID) {
	var ready []*resident.Task
	sh.Mu.Lock()
	if lv := sh.Timers[id]; lv != nil && lv.Frozen {
		lv.Frozen = false
		for t := lv.Tasks; t != nil; t = t.Later {
			t.Cancelled, t.RowStale = false, true
			if t.State == resident.Frozen {
				t.Await(e.now())
				ready = append(ready, t)
			}
		}
		if lv.Late {
			e.memory.Late.Poke()
		}
		slices.Reverse(ready) // the list has the newest first
		sh.Dismiss(lv)
	}
	sh.Mu.Unlock()
	e.memory.Enqueue(ready)
}

// replace puts a committed change into force in memory.
func (e *Scheduler) replace(ctx context.Context, sh *resident.Shard, was *engine.Timer, ed *edit, c *engine.Change, now int64) (next int64) {
	version := was.Version + 1
	e.memory.Changes.Note(was.ID, version, e.memory.Ticks())
	var ready []*resident.Task
	sh.Mu.Lock()
	lv := sh.Timers[was.ID]
	if lv != nil && ed.keep {
		e.memory.Bodies.Define(lv, ed.timer)
		e.memory.Assign(lv)
		if ed.timer.Overlap == engine.OverlapAllow {
			ready = lv.Unpark(now)
		}
	}
	if lv != nil && !ed.keep {
		e.retire(sh, lv, ed, now)
	}
	sh.Mu.Unlock()
	e.memory.Enqueue(ready)
	if ed.keep {
		e.awaitWrites(ctx, sh, was.ID)
	} else {
		e.announce(c.Tasks)
		if ed.rest {
			e.ended.add(was.ID, was, ed.timer, c.At)
		}
	}
	e.updateWarm(ctx, was.ID, ed.timer)
	if ed.timer == nil {
		return 0
	}
	if ed.keep {
		return e.nextDue(ctx, ed.timer, now)
	}
	var warm []engine.Entry
	next = e.welcome(ed.timer, ed.owe, ed.spent, &warm)
	e.addWarm(ctx, warm, true)
	return next
}

// awaitWrites waits until the first bytes that were being written of a former
// definition are: after that none is sent of it.
func (e *Scheduler) awaitWrites(ctx context.Context, sh *resident.Shard, id engine.TimerID) {
	for ctx.Err() == nil {
		written, writing := e.memory.Settled.Wait(), false
		sh.Mu.Lock()
		if lv := sh.Timers[id]; lv != nil {
			for t := lv.Tasks; t != nil; t = t.Later {
				writing = writing || t.Writing != nil && t.Writing.Version != lv.Def.Version
			}
		}
		sh.Mu.Unlock()
		if !writing {
			return
		}
		select {
		case <-written:
		case <-ctx.Done():
		}
	}
}

// retire ends the standing generation of a live timer: of its tasks that are not in a
// call those go that the change recorded, and those that have a row end here, as does
// a call that ended meanwhile and would be repeated. Its due leaves the wheel. mu is held.
func (e *Scheduler) retire(sh *resident.Shard, lv *resident.Timer, ed *edit, now int64) {
	e.memory.Unschedule(lv)
	delete(sh.Decided, lv.Def.ID)
	clear(lv.Parked)
	lv.Parked, lv.Frozen, lv.Late, lv.Behind, lv.Judged, lv.RangeTo, lv.Spent, lv.Gone = nil, false, false, false, 0, 0, nil, ed.reason
	for t := lv.Tasks; t != nil; {
		later := t.Later
		switch {
		case t.State == resident.Sending:
			t.RowStale = true
		case !t.Cancelled && (t.HasRow || len(t.Attempts) > 0):
			// Its row tells by now that it has ended; the journal need not, unless it has
			// to tell how the task stands.
			stands := t.HasRow && !t.RowStale && t.State != resident.Preparing
			if len(t.Attempts) == 0 {
				t.Lateness = -1
			}
			e.memory.Ends(sh, t, engine.Cancelled, ed.reason, now)
			if !stands {
				t.InJournal(e.journal.Finish(t.Encoded))
			}
		default:
			e.memory.Forget(sh, t)
			t.State = resident.Done
			if t.Begun {
				t.Begun = false
				lv.Busy--
			}
		}
		t = later
	}
	if ed.timer == nil {
		lv.Deleted = true
		delete(sh.Timers, lv.Def.ID)
		e.memory.Bodies.Leave(lv)
		return
	}
	p, err := plan.Of(ed.timer)
	if err != nil {
		panic("BUG: a timer was stored whose schedule does not parse: " + err.Error())
	}
	e.memory.Bodies.Define(lv, ed.timer)
	lv.Plan = p
	e.memory.Assign(lv)
	sh.Timers[lv.Def.ID] = lv
	sh.Dismiss(lv)
}

// serving tells whether changes can be made.
func (e *Scheduler) serving() error {
	switch {
	case e.running.Load():
		return nil
	case e.ending.Load():
		return &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: "the server is stopping: it takes nothing new, and ends when the calls in flight have"}
	}
	detail := "the server is starting"
	if with := e.startsWith.Load(); with != nil {
		detail += ": " + *with
	}
	return &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: detail}
}
