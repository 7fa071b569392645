package change

import (
	"context"
	"errors"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/policy"
	"xtimer/engine/process"
	"xtimer/engine/quota"
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
	rest   bool          // rows of the former generation are left to memory.Former
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
//	mark the timer as changing → read it → decide (f) → freeze its tasks →
//	commit the definition, with what becomes of each open due, in one
//	transaction → drop the frozen tasks and add the new generation
//
// or, when the commit failed, let the frozen tasks go on. f may return nil for
// "nothing to do". match is a version that must stand, 0: any.
//
// f gets the instant of the change.
func (e *Maker) change(ctx context.Context, id engine.TimerID, match uint32, f func(t *engine.Timer, now int64) (*edit, error)) (changed, error) {
	if err := e.process.Refusal(); err != nil {
		return changed{}, err
	}
	release, err := e.memory.Claim(ctx, id)
	if err != nil {
		return changed{}, err
	}
	steps := e.memory.Steps.Load()
	now := e.now()
	h := e.memory.Pins.Pin(now)
	var under *quota.Changes
	over := func() {
		under.End()
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
	if under, err = e.cfg.Quotas.Begin(ctx, t.App); err != nil {
		return changed{}, err
	}
	out := changed{was: t, now: t, finished: e.Status(t, now) == engine.Finished}
	reached, err := e.reached(ctx, id, now)
	if err != nil {
		return out, err
	}
	resident.Raise(&e.memory.UpTo, now)
	ed, err := f(t, now)
	if err != nil || ed == nil {
		return out, err
	}
	c := &engine.Change{Timer: ed.timer, ID: id, Was: t.Version, At: now, Size: t.Payload()}
	if !ed.keep {
		err := e.memory.Freeze(ctx, id)
		if err == nil {
			now, ed, err = e.editAfter(t, ed, now, reached, f)
			c.Timer, c.At = ed.timer, now
		}
		if err == nil {
			err = e.endGeneration(ctx, c, t, ed, reached, &out)
		}
		if err == nil && e.memory.Steps.Load() != steps {
			// Dues may have been decided by the clock as it is now, which the change
			// knows nothing of: it is made again, by the same clock.
			e.memory.Thaw(id)
			over()
			over = func() {}
			return e.change(ctx, id, match, f)
		}
		if err != nil {
			e.memory.Thaw(id)
			return out, err
		}
	}
	if err := e.commitChange(ctx, t, ed, c, now, under, &over); err != nil {
		return out, err
	}
	failpoint.Hit("change-after-commit")
	out.now = ed.timer
	out.next = e.replace(ctx, t, ed, c, now)
	return out, nil
}

// commitChange commits a change of a timer, if the quota of its app has room for it. A commit in
// doubt takes over, which ends the change, along.
func (e *Maker) commitChange(ctx context.Context, t *engine.Timer, ed *edit, c *engine.Change, now int64, under *quota.Changes, over *func()) error {
	room, err := under.Take(t, ed.timer, nil)
	if err != nil {
		e.memory.Thaw(t.ID)
		return err
	}
	failpoint.Hit("change-before-commit")
	_, err = applied(e.cfg.Cold.Apply(ctx, c))
	switch {
	case err == nil:
		room.End(true)
		return nil
	case inDoubt(err):
		end := *over
		*over = func() {}
		e.process.Go(func(ctx context.Context) { e.endDoubt(ctx, t, ed, c, now, &room, end) })
		return err
	}
	room.End(false)
	e.memory.Thaw(t.ID)
	if errors.Is(err, engine.ErrConflict) {
		return &engine.Fault{Kind: engine.FaultConflict, Code: "changed_meanwhile", Detail: "another request changed the timer at the same time"}
	}
	return err
}

// endDoubt ends a change whose commit is in doubt, once that is resolved. If the process
// ends first, what is frozen stays so.
func (e *Maker) endDoubt(ctx context.Context, t *engine.Timer, ed *edit, c *engine.Change, now int64, room *quota.Room, end func()) {
	made, sure := e.resolveChange(ctx, c)
	if sure {
		room.End(made)
	}
	switch {
	case !sure:
		return
	case made:
		now = max(now, e.now()) // it takes effect here and now, however long it was in doubt
		if !e.endNow(ctx, c.Tasks, now) {
			return
		}
		e.replace(ctx, t, ed, c, now)
	default:
		e.memory.Thaw(t.ID)
	}
	end()
}

// endNow stores tasks that a change has cancelled once more, as ended at an instant: readers
// are told of them now, and one that comes back asks history for what has ended since.
func (e *Maker) endNow(ctx context.Context, ts []*engine.Task, at int64) bool {
	s := &engine.Settlement{Owner: e.cfg.Node}
	for _, t := range ts {
		t.Ended = at
		// The indexes have the former record already.
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.EncodeTask(t), Alone: true})
	}
	for len(ts) > 0 && e.cfg.Cold.Settle(ctx, s) != nil {
		if process.Sleep(ctx, time.Second); ctx.Err() != nil {
			return false
		}
	}
	return true
}

// endGeneration adds to a change what becomes of the standing generation and what the next one
// starts with. The timer's tasks are frozen.
func (e *Maker) endGeneration(ctx context.Context, c *engine.Change, t *engine.Timer, ed *edit, reached int64, out *changed) error {
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
	read := e.memory.Reads.Begin()
	defer read.End()
	rows, more, err := e.rowsOf(ctx, t.ID, upTo)
	if err != nil {
		return err
	}
	ed.rest = more
	var waited bool
	out.inFlight, waited, err = e.cancel(ctx, c, &policy.Ending{Former: t, Reason: ed.reason, At: c.At, UpTo: upTo, Taken: policy.TakenBy(ed.timer)}, rows, read)
	if err != nil {
		return err
	}
	out.finished = out.finished && !waited // far retries are not in memory
	if err := e.syncEnds(ctx, t.ID); err != nil || ed.timer == nil {
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
func (e *Maker) reached(ctx context.Context, id engine.TimerID, now int64) (int64, error) {
	from, w := e.memory.LastUsed(id)
	from, ahead := max(from, now), w > now
	if !ahead && now >= e.memory.UpTo.Load() {
		return from, nil // the clock was not set back
	}
	// After memory: what leaves it was stored before.
	last, err := e.cfg.Cold.LastTask(ctx, id)
	switch d := engine.DamagedRecord(err, engine.Key{}); {
	case err == nil:
		from = max(from, last.Key.Due, last.DueLast)
	case d != nil:
		from = max(from, d.Key.Due)
	case !errors.Is(err, engine.ErrNotFound):
		return 0, err
	}
	if !ahead {
		return from, nil
	}
	err = e.EachRow(ctx, id, from, func(o *engine.Owed) bool {
		if o.To == 0 && o.Used() {
			from = max(from, o.Key.Due)
		}
		return true
	})
	return from, err
}

// inDoubt reports whether a failed commit may have been made, or be made yet.
func inDoubt(err error) bool {
	var f *engine.Fault
	return errors.Is(err, engine.ErrUnavailable) || !errors.As(err, &f)
}

// resolve finds out whether a commit in doubt was made, as isMade tells after a write that
// went through: that settles its fate. sure is false when the process ends first.
func (e *Maker) resolve(ctx context.Context, isMade func() (bool, error)) (made, sure bool) {
	for ; ctx.Err() == nil; process.Sleep(ctx, time.Second) {
		if e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node}) == nil {
			if made, err := isMade(); err == nil {
				return made, true
			}
		}
	}
	return false, false
}

// resolveChange is resolve of a change.
func (e *Maker) resolveChange(ctx context.Context, c *engine.Change) (made, sure bool) {
	return e.resolve(ctx, func() (bool, error) {
		t, err := e.cfg.Cold.Timer(ctx, c.ID)
		if errors.Is(err, engine.ErrNotFound) {
			return c.Timer == nil, nil
		}
		return err == nil && c.Timer != nil && t.Version == c.Timer.Version, err
	})
}

// replace puts a committed change into force in memory.
func (e *Maker) replace(ctx context.Context, was *engine.Timer, ed *edit, c *engine.Change, now int64) (next int64) {
	if ed.keep {
		e.memory.Move(was, ed.timer)
		e.memory.Revise(ed.timer, now)
		e.memory.AwaitWrites(ctx, was.ID)
	} else {
		e.memory.Replace(was, ed.timer, ed.reason, now)
		e.tally.Decided(c.Tasks)
		if ed.rest {
			e.memory.Former.End(was.ID, was, ed.timer, c.At)
		}
	}
	e.updateWarm(ctx, was.ID, ed.timer)
	e.memory.NoteChanged(was.ID)
	if ed.timer == nil {
		return 0
	}
	if ed.keep {
		return e.NextDue(ctx, ed.timer, now)
	}
	var warm []engine.Entry
	next = e.add(ed.timer, ed.owe, ed.spent, &warm)
	e.cfg.AddWarm(ctx, warm)
	return next
}
