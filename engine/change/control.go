package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
	"xtimer/engine/process"
)

// PutResult is what a Put did.
type PutResult uint8

// The results of a Put.
const (
	PutCreated PutResult = iota
	PutUpdated
	PutUnchanged
)

// Put creates the timer (d.App, d.Name) or replaces its definition. match, when
// not 0, is the version that must stand (If-Match): FaultPrecondition otherwise.
// A delay that has run out is armed anew by being put again; everything else
// that is put twice is unchanged.
func (e *Maker) Put(ctx context.Context, d engine.Definition, match uint32) (inspect.View, PutResult, error) {
	return e.put(ctx, d, match, false)
}

// stands refuses a change that was asked for of another version; 0 asks for any.
func stands(t *engine.Timer, match uint32) error {
	if match != 0 && match != t.Version {
		return &engine.Fault{Kind: engine.FaultPrecondition, Code: "version_mismatch", Detail: "the timer has changed since: its ETag differs from If-Match"}
	}
	return nil
}

// WouldPut says what Put would do, or why it would refuse; it changes nothing.
func (e *Maker) WouldPut(ctx context.Context, d engine.Definition, match uint32) (PutResult, error) {
	_, did, err := e.put(ctx, d, match, true)
	return did, err
}

// put stops short of the commit when it is dry.
func (e *Maker) put(ctx context.Context, d engine.Definition, match uint32, dry bool) (inspect.View, PutResult, error) {
	for range 3 {
		t, err := e.cfg.Cold.TimerByName(ctx, d.App, d.Name)
		if errors.Is(err, engine.ErrNotFound) {
			if match != 0 {
				return inspect.View{}, 0, &engine.Fault{Kind: engine.FaultPrecondition, Code: "version_mismatch", Detail: "the timer does not exist, but If-Match requires it"}
			}
			if dry {
				return inspect.View{}, PutCreated, e.creatable(ctx, &d)
			}
			c := e.Create(ctx, d, nil)
			var taken *engine.Fault
			if errors.As(c.Err, &taken) && taken.Code == "name_taken" {
				continue // created meanwhile
			}
			if c.Existed {
				return c.View, PutUnchanged, c.Err
			}
			return c.View, PutCreated, c.Err
		}
		if err != nil {
			return inspect.View{}, 0, err
		}
		v, same, err := e.redefine(ctx, t.ID, match, true, dry, func(engine.Definition) (engine.Definition, error) { return d, nil })
		if errors.Is(err, engine.ErrNotFound) {
			continue // deleted meanwhile
		}
		if same {
			return v, PutUnchanged, err
		}
		return v, PutUpdated, err
	}
	return inspect.View{}, 0, &engine.Fault{Kind: engine.FaultConflict, Code: "changed_meanwhile", Detail: "other requests keep creating and deleting the timer: repeat the request"}
}

// Replace gives a timer another definition, keeping id and history: for PATCH.
// App and name may not change. revise gets the standing definition.
func (e *Maker) Replace(ctx context.Context, id engine.TimerID, match uint32, revise func(engine.Definition) (engine.Definition, error)) (inspect.View, error) {
	v, _, err := e.redefine(ctx, id, match, false, false, revise)
	return v, err
}

// redefine makes the change that revise asks for; same tells that it is none. put: a
// delay that has run out is armed anew.
func (e *Maker) redefine(ctx context.Context, id engine.TimerID, match uint32, put, dry bool, revise func(engine.Definition) (engine.Definition, error)) (v inspect.View, same bool, err error) {
	var was, would *engine.Timer // of a dry one
	c, err := e.change(ctx, id, match, func(t *engine.Timer, now int64) (*edit, error) {
		d, err := revise(t.Definition)
		if err != nil {
			return nil, err
		}
		ed, err := e.revised(ctx, t, d, now, put)
		if same = ed == nil; dry && !same {
			was, would = t, ed.timer
			return nil, err
		}
		return ed, err
	})
	if err == nil && would != nil {
		err = e.hasRoom(ctx, was, would)
	}
	if err != nil {
		return inspect.View{}, false, err
	}
	return e.Standing(ctx, c.now), same, nil
}

// revised is the edit that gives a timer another definition; nil: it is the same.
func (e *Maker) revised(ctx context.Context, t *engine.Timer, d engine.Definition, now int64, put bool) (*edit, error) {
	if d.App != t.App || d.Name != t.Name {
		return nil, engine.Invalid("name", "name_fixed", "app and name of a timer cannot be changed")
	}
	if err := plan.Validate(&d); err != nil {
		return nil, err
	}
	rearm := false
	if put && t.Schedule.HasDelay {
		var err error
		if rearm, err = e.isOver(ctx, t, now); err != nil {
			return nil, err
		}
	}
	if d.Equal(&t.Definition) && !rearm {
		return nil, nil
	}
	n := nextVersion(ctx, t, now)
	n.Definition = d
	if d.Schedule == t.Schedule && !rearm {
		return &edit{timer: &n, keep: true}, nil
	}
	n.Generation++
	former := t
	if rearm {
		former = nil
	}
	if n.Status == engine.Finished {
		n.Status = engine.Enabled
	}
	if err := plan.Resolve(&n, former, now); err != nil {
		return nil, err
	}
	later := t.Status == engine.Enabled && t.StatusAt(now, false) == engine.Disabled // until then: so it stays
	switch {
	case later:
		n.ValidFrom = max(n.ValidFrom, t.ValidFrom)
	case n.Status == engine.Enabled:
		n.Reason = "" // the reason of a disable that is over would make the timer disabled again when the clock is set back
	}
	ed := &edit{timer: &n, fresh: !later, reason: engine.ReasonReplaced}
	if n.Schedule.OneShot() {
		ed.once = engine.Key{Timer: t.ID, Due: n.LastDue}
		if err := e.unbegun(ctx, ed.once); err != nil {
			return nil, err
		}
	}
	return ed, nil
}

// unbegun refuses a due that the timer has begun before, whose key would be used
// twice, and one whose record tells of other dues as well: it would be replaced.
func (e *Maker) unbegun(ctx context.Context, k engine.Key) error {
	t, err := e.Task(ctx, k)
	if errors.Is(err, engine.ErrNotFound) {
		was, err := e.unrecorded(ctx, k)
		if was {
			err = engine.Invalid("schedule.at", "already_fired", "the instant was due before, and its result is no longer in history")
		}
		return err
	}
	if err != nil {
		return err
	}
	if t.Status == engine.Running || len(t.Attempts) > 0 {
		return engine.Invalid("schedule.at", "already_fired", "a call for that instant was begun already: it is task %s, %s", k, t.Status)
	}
	if t.DueLast > k.Due {
		return engine.Invalid("schedule.at", "already_recorded", "%d dues from that instant on were not called, and one record under it tells of them all: take another millisecond", t.Count)
	}
	return nil
}

// unrecorded reports whether a key without a record was a due of the timer that is over:
// its record aged, or was left out (a sample of successes, a full disk).
func (e *Maker) unrecorded(ctx context.Context, k engine.Key) (bool, error) {
	if w, _ := e.memory.Watermark(k.Timer); k.Due > w {
		return false, nil
	}
	ls, err := e.cfg.Cold.Lives(ctx, k.Timer-1, 1)
	if err != nil || len(ls) == 0 || ls[0].ID != k.Timer {
		return false, err
	}
	due := false
	for i, v := range ls[0].Versions {
		replaced := int64(engine.MaxDue)
		if i+1 < len(ls[0].Versions) {
			replaced = ls[0].Versions[i+1].UpdatedAt
		}
		p, err := plan.Of(v)
		if err != nil || v.Status == engine.Disabled || k.Due > replaced {
			continue
		}
		d, ok := p.Next(k.Due - 1)
		due = due || ok && d == k.Due
	}
	if !due {
		return false, nil
	}
	owed := false
	err = e.EachRow(ctx, k.Timer, -1, func(o *engine.Owed) bool {
		owed = o.Key.Due <= k.Due && k.Due <= max(o.Key.Due, o.To)
		return !owed && o.Key.Due < k.Due
	})
	return err == nil && !owed, err
}

// DeleteResult says what a delete met.
type DeleteResult string

// What a delete met: nothing will be called any more; a call is running; or
// all was over already.
const (
	DeleteCancelled DeleteResult = "cancelled"
	DeleteInFlight  DeleteResult = "in_flight"
	DeleteFinished  DeleteResult = "finished"
)

// Delete removes a timer. match as in Put.
func (e *Maker) Delete(ctx context.Context, id engine.TimerID, match uint32) (DeleteResult, error) {
	c, err := e.change(ctx, id, match, func(*engine.Timer, int64) (*edit, error) {
		return &edit{reason: engine.ReasonDeleted}, nil
	})
	switch {
	case err != nil:
		return "", err
	case c.inFlight > 0:
		return DeleteInFlight, nil
	case c.finished:
		return DeleteFinished, nil
	}
	return DeleteCancelled, nil
}

// RunNow makes a manual task and returns its key. Its due is the first ms from
// now on that is neither a due of the timer nor a key that was used. match as in Put.
func (e *Maker) RunNow(ctx context.Context, id engine.TimerID, match uint32) (engine.Key, error) {
	return e.run(ctx, id, match, false)
}

// RunForced is RunNow of a task whose calls no flow key and no target limits. A pause holds
// it, and so does the quota of its app.
func (e *Maker) RunForced(ctx context.Context, id engine.TimerID, match uint32) (engine.Key, error) {
	return e.run(ctx, id, match, true)
}

func (e *Maker) run(ctx context.Context, id engine.TimerID, match uint32, force bool) (engine.Key, error) {
	if err := e.cfg.Open(); err != nil {
		return engine.Key{}, err
	}
	release, err := e.memory.ClaimRows(ctx, id)
	if err != nil {
		return engine.Key{}, err
	}
	over := release
	defer func() { over() }()
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err == nil {
		err = stands(t, match)
	}
	if err != nil {
		return engine.Key{}, err
	}
	p, err := plan.Of(t)
	if err != nil {
		return engine.Key{}, err
	}
	now := e.now()
	if !force {
		release = e.expects(t, now, release)
		over = release
	}
	k := engine.Key{Timer: id, Due: now}
	for ; ; k.Due++ {
		if p.Hits(k.Due) {
			continue // also one that is disabled: an enable may bring it back
		}
		if o, err := e.RowAt(ctx, k); err != nil {
			return engine.Key{}, err
		} else if o != nil {
			continue // a range's
		}
		if is, err := e.HadTask(ctx, k); err != nil {
			return engine.Key{}, err
		} else if !is {
			break
		}
	}
	// A change in the same ms would take a key ahead of it for a clock that was set back.
	if process.Sleep(ctx, time.Duration(min(k.Due-now, 10))*time.Millisecond); ctx.Err() != nil {
		return engine.Key{}, ctx.Err()
	}
	o := engine.Owed{Key: k, Generation: t.Generation, Origin: engine.FromManual, NotBefore: k.Due, Lane: t.Lane()}
	if force {
		o.Lane = t.ForcedLane()
	}
	if e.memory.IsGated(t) {
		o.Held = 1
	}
	over = func() {} // oweNow's
	return k, e.oweNow(ctx, t, o, release)
}

// Redrive makes a failed, dead or unknown task due again, with the same key;
// attempt numbers go on, max_attempts and max_age count anew.
func (e *Maker) Redrive(ctx context.Context, k engine.Key) error {
	if err := e.cfg.Open(); err != nil {
		return err
	}
	release, err := e.memory.ClaimRows(ctx, k.Timer)
	if err != nil {
		return err
	}
	over := release
	defer func() { over() }()
	t, err := e.cfg.Cold.Timer(ctx, k.Timer)
	if err != nil {
		return err
	}
	if err := e.memory.AwaitSettled(ctx, k); err != nil {
		return err
	}
	was, err := e.Task(ctx, k)
	if err != nil {
		return err
	}
	if was.Status != engine.Dead && was.Status != engine.Failed && was.Status != engine.Unknown {
		return &engine.Fault{
			Kind: engine.FaultConflict, Code: "not_retryable",
			Detail: fmt.Sprintf("task %s is %s; only failed, dead and unknown tasks can be retried by hand", k, was.Status),
		}
	}
	if o, err := e.RowAt(ctx, k); err != nil {
		return err
	} else if o != nil && o.Damaged == nil { // a range's, see ranges; one that cannot be read is replaced
		return &engine.Fault{
			Kind: engine.FaultConflict, Code: "not_retryable",
			Detail: fmt.Sprintf("the clock was set back, and the timer has unfinished dues after task %s: retry the task when they have ended", k),
		}
	}
	n := *was
	now := e.now()
	release = e.expects(t, now, release)
	n.Status, n.Reason, n.Ended, n.Origin, n.Generation = engine.Waiting, "", 0, engine.FromRedrive, t.Generation
	n.Base, n.Since, n.NotBefore, n.DueLast, n.Count = n.LastAttempt(), now, now, 0, 0
	n.Dismissed, n.DismissedBy = 0, ""
	over = func() {} // oweNow's
	return e.oweNow(ctx, t, engine.Owed{Key: k, Generation: t.Generation, Origin: engine.FromRedrive, NotBefore: now, Lane: t.Lane(), Task: &n}, release)
}

// Dismiss notes that nothing is left to do about a task that failed, is dead or unknown or
// was missed: the task keeps its status, and is no open failure any more. A task that was
// dismissed stays as it is.
func (e *Maker) Dismiss(ctx context.Context, k engine.Key) (*engine.Task, error) {
	if err := e.cfg.Open(); err != nil {
		return nil, err
	}
	release, err := e.memory.ClaimRows(ctx, k.Timer)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := e.memory.AwaitSettled(ctx, k); err != nil {
		return nil, err
	}
	t, err := e.Task(ctx, k)
	if err != nil || t.Dismissed != 0 {
		return t, err
	}
	if !t.Status.IsFailure() {
		return nil, &engine.Fault{
			Kind: engine.FaultConflict, Code: "not_dismissible",
			Detail: fmt.Sprintf("task %s is %s; only failed, dead, missed and unknown tasks can be dismissed", k, t.Status),
		}
	}
	t.Dismissed, t.DismissedBy = e.now(), engine.Author(ctx)
	// The indexes have the former record already.
	r := engine.Record{Key: k, Status: t.Status, Encoded: engine.EncodeTask(t), Alone: true}
	if err := e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node, Tasks: []engine.Record{r}}); err != nil {
		return nil, err
	}
	return t, nil
}
