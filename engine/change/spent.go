package change

import (
	"context"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// After the clock was set back, dues of a timer may count that are not later than the
// watermark: they are owed as a range of its plan. A due in a range is spent, and is not
// called, if its key was used, or if its generation has a record of it already.

// provable is up to when, in (after, to], history tells which keys of a timer were used.
// It is before the first due of was, the definition that stood, that has no record and
// may have been called: successes are sampled, or were left out for want of space.
func (e *Maker) provable(ctx context.Context, was *engine.Timer, after, to int64) (int64, error) {
	from := after
	if !e.cfg.HistorySampled {
		minutes, err := e.cfg.Cold.LeftOut(ctx, after-after%60_000, to+1)
		if err != nil || len(minutes) == 0 {
			return to, err
		}
		from = max(after, minutes[0]-1)
	}
	p, err := plan.Of(was)
	if err != nil {
		return from, nil // it was not called: see leaveOut
	}
	recorded, err := e.EndedDues(ctx, was.ID, 0, from+1, to)
	if err != nil {
		return 0, err
	}
	run, err := e.RunBefore(ctx, was.ID, from)
	if err != nil {
		return 0, err
	}
	if run != nil {
		recorded = append(recorded, [2]int64{run.Key.Due, run.DueLast})
	}
	recorded = recorded.Ordered()
	for _, s := range recorded.Open(&p, from, to) {
		if due, ok := p.Next(s[0] - 1); ok && due <= s[1] {
			return due - 1, nil
		}
	}
	return to, nil
}

// oweAnew adds to an edit the rows that the new generation starts with. was is the
// definition that stood, reached what reached tells of it.
func (e *Maker) oweAnew(ctx context.Context, was *engine.Timer, ed *edit, reached int64) error {
	owe, err := e.owing(ed.timer, ed.fresh, reached, func(k engine.Key) (bool, error) { return e.isTaken(ctx, k) })
	if err != nil {
		return err
	}
	if owe, ed.spent, err = e.withoutSpent(ctx, was, ed.timer, owe); err != nil {
		return err
	}
	ed.owe = append(ed.owe, owe...)
	return nil
}

// withoutSpent takes the dues that are spent out of new rows of a timer, and ends the rows where
// history does not tell of all calls. spent are those of the range, which is the last of the rows.
// Before it are dues with rows of their own, where the range could not have the key before them.
func (e *Maker) withoutSpent(ctx context.Context, was, t *engine.Timer, os []engine.Owed) (rows []engine.Owed, spent policy.Spans, err error) {
	if len(os) == 0 || t.Schedule.OneShot() {
		return os, nil, nil
	}
	from, r := os[0].Key.Due-1, os[len(os)-1]
	to, err := e.provable(ctx, was, from, max(r.Key.Due, r.To))
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Of(t)
	if err != nil {
		return nil, nil, err
	}
	if spent, err = e.Spent(ctx, t, &p, from, to); err != nil {
		return nil, nil, err
	}
	for _, o := range os {
		switch {
		case o.To != 0 && o.NotBefore <= to:
			o.To = to
			rows = append(rows, o)
		case o.To == 0 && o.Key.Due <= to && !spent.Has(o.Key.Due):
			rows = append(rows, o)
		}
	}
	return rows, spent, nil
}

// editAfter makes an edit again that calls have overtaken since the clock was read: no call
// of the former generation is later than its end, and no due of the next one earlier.
func (e *Maker) editAfter(t *engine.Timer, ed *edit, now, reached int64, f func(t *engine.Timer, now int64) (*edit, error)) (int64, *edit, error) {
	at := max(reached, e.memory.UpTo.Load())
	if at <= now || at > e.now() { // later than the clock: it was set back
		return now, ed, nil
	}
	again, err := f(t, at)
	if err != nil || again == nil {
		return now, ed, err
	}
	return at, again, nil
}

// atOnce reports whether no due of the former generation is called after the change, as
// verify can tell: a later one-shot, or a timer that is disabled for a while, says no more.
func (ed *edit) atOnce(now int64) bool {
	t := ed.timer
	return t == nil || t.Status == engine.Disabled || !t.Schedule.OneShot() && t.ValidFrom <= now
}
