package change

import (
	"context"
	"errors"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Enable lets a timer fire again, from now on. match as in Put.
func (e *Maker) Enable(ctx context.Context, id engine.TimerID, match uint32, catch engine.CatchUp) (inspect.View, error) {
	c, err := e.change(ctx, id, match, func(t *engine.Timer, now int64) (*edit, error) {
		if t.StatusAt(now, false) != engine.Disabled {
			return nil, nil
		}
		n := nextVersion(ctx, t, now)
		n.Status, n.Reason, n.Generation = engine.Enabled, "", t.Generation+1
		since, err := e.countFrom(ctx, t, now)
		if err != nil {
			return nil, err
		}
		if err := plan.Resolve(&n, t, since); err != nil {
			return nil, err
		}
		ed := &edit{timer: &n, reason: engine.ReasonDisabled}
		if catch == engine.CatchUpNone {
			return ed, nil
		}
		if since > now {
			return ed, nil // nothing is past that was not decided
		}
		since, err = e.disabledSince(ctx, t)
		if err != nil {
			return nil, err
		}
		if t.Schedule.MaxRuns != 0 { // before that it had no dues, by a clock that was set back
			counted, err := e.runsFrom(ctx, t)
			if err != nil {
				return nil, err
			}
			since = max(since, counted)
		}
		over, err := e.OverDues(ctx, id, since, now)
		if err != nil {
			return nil, err
		}
		ed.owe, err = policy.Passed(t, n.Generation, since, now, catch, over)
		return ed, err
	})
	if err != nil {
		return inspect.View{}, err
	}
	return e.Standing(ctx, c.now), nil
}

// nextVersion is t as the author begins its next version at now.
func nextVersion(ctx context.Context, t *engine.Timer, now int64) engine.Timer {
	n := *t
	n.Version, n.UpdatedAt, n.UpdatedBy = t.Version+1, now, engine.Author(ctx)
	return n
}

// countFrom is from when the dues of a timer count that is disabled or enabled at now.
// The due of a one-shot is over when its key was used, though the clock was set back
// before it; of a recurring timer such dues are spent.
func (e *Maker) countFrom(ctx context.Context, t *engine.Timer, now int64) (int64, error) {
	if !t.Schedule.OneShot() {
		return now, nil
	}
	was, err := e.Task(ctx, engine.Key{Timer: t.ID, Due: t.LastDue})
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return now, nil
	case err != nil:
		return 0, err
	case policy.IsUsed(was):
		return max(now, t.LastDue), nil
	}
	return now, nil
}

const (
	// maxVersions is how many former versions of a timer are looked through.
	maxVersions = 1000
	// versionsAtOnce is how many of them are in memory: each may have a large body.
	versionsAtOnce = 16
)

// eachFormer gives the former versions of a timer, newest first, until f returns false.
func (e *Maker) eachFormer(ctx context.Context, id engine.TimerID, f func(*engine.Timer) bool) error {
	before := uint32(0)
	for n := 0; n < maxVersions; n += versionsAtOnce {
		former, err := e.cfg.Cold.Versions(ctx, id, before, versionsAtOnce)
		if err != nil {
			return err
		}
		for _, v := range former {
			if before = v.Version; !f(v) {
				return nil
			}
		}
		if len(former) < versionsAtOnce {
			return nil
		}
	}
	return nil
}

// disabledSince is when a timer that is disabled became so, or got its schedule
// if that was later: dues up to then are over.
func (e *Maker) disabledSince(ctx context.Context, t *engine.Timer) (int64, error) {
	if t.Status == engine.Disabled {
		return t.ValidFrom, nil
	}
	// Disabled until an instant, which is its ValidFrom: the former versions tell.
	since := t.UpdatedAt
	err := e.eachFormer(ctx, t.ID, func(f *engine.Timer) bool {
		switch {
		case f.Schedule != t.Schedule || f.StatusAt(since, false) != engine.Disabled:
			return false
		case f.Status == engine.Disabled:
			since = f.ValidFrom
			return false
		}
		since = f.UpdatedAt
		return true
	})
	return since, err
}

// runsFrom is from when the max_runs of a timer count, which no disable changes: from
// the first version with its last due on. It is later than now only where the clock was
// set back, and there a timer that fired before it would have more than max_runs.
func (e *Maker) runsFrom(ctx context.Context, t *engine.Timer) (int64, error) {
	first := *t
	err := e.eachFormer(ctx, t.ID, func(f *engine.Timer) bool {
		same := f.Schedule == t.Schedule && f.LastDue == t.LastDue
		if same {
			first = *f
		}
		return same
	})
	if first.Reason != "" {
		// Of a disable until an instant, ValidFrom is that instant. UpdatedAt may be ahead of a clock that was set back.
		return min(first.UpdatedAt, first.ValidFrom), err
	}
	return first.ValidFrom, err
}

var errUntil = engine.Invalid("until", "until_past", "it has passed already")

// Disable stops a timer; until (Unix ms) enables it by itself, 0: never. match as in Put.
func (e *Maker) Disable(ctx context.Context, id engine.TimerID, match uint32, reason string, until int64) (inspect.View, error) {
	c, err := e.change(ctx, id, match, func(t *engine.Timer, now int64) (*edit, error) {
		if until != 0 && until <= now {
			return nil, errUntil
		}
		over, err := e.isOver(ctx, t, now)
		if over || err != nil || until == 0 && t.Status == engine.Disabled && t.Reason == policy.DisableReason(reason) {
			return nil, err
		}
		n := nextVersion(ctx, t, now)
		n.Generation = t.Generation + 1
		since, until := now, until
		if until != 0 {
			from, err := e.countFrom(ctx, t, now)
			if err != nil {
				return nil, err
			}
			until = max(until, from)
			if t.Schedule.MaxRuns != 0 {
				counted, err := e.runsFrom(ctx, t)
				if err != nil {
					return nil, err
				}
				until = max(until, counted)
			}
		} else if t.StatusAt(now, false) == engine.Disabled {
			if since, err = e.disabledSince(ctx, t); err != nil {
				return nil, err
			}
		}
		policy.Disable(&n, reason, since, until)
		return &edit{timer: &n, reason: engine.ReasonDisabled}, nil
	})
	if err != nil {
		return inspect.View{}, err
	}
	return e.Standing(ctx, c.now), nil
}

// isOver reports whether a timer is finished, as it will be stored: its last due has
// its record, or lies behind the watermark, and nothing of it is owed.
func (e *Maker) isOver(ctx context.Context, t *engine.Timer, now int64) (bool, error) {
	if t.Status == engine.Finished || e.Status(t, now) != engine.Finished {
		return t.Status == engine.Finished, nil
	}
	if w, _ := e.memory.Watermark(t.ID); t.LastDue > w {
		last, err := e.Task(ctx, engine.Key{Timer: t.ID, Due: t.LastDue})
		if errors.Is(err, engine.ErrNotFound) || err == nil && !last.Status.Final() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	open, err := e.IsOwed(ctx, t)
	return !open, err
}
