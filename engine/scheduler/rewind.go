package scheduler

import (
	"context"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// A start after the clock was set back finds dues in the journal that are later
// than now, and ranges of dues in owed that were being gone through:
//
//	      range.from          now            W, before        mark
//	────────┼── by policy ─────┼── a range ─────┼── a range ────┼──►
//
// Each that was begun or finished is settled as such; of the rest, what is past
// is decided as at any start, and what is to come is a row up to the last due
// that the timer began, and a range from there on.

// again owes a task that was begun and has no row, or ends it as unknown.
func (r *recovery) again(t *engine.Timer, k engine.Key) {
	was := r.finished[k]
	if t.Delivery == engine.AtMostOnce {
		r.unknown(t, k, engine.FromSchedule, was)
		return
	}
	o := engine.Owed{Key: k, Generation: t.Generation, Begun: true, NotBefore: k.Due, Lane: t.Lane(), Task: was}
	r.d.Owe = append(r.d.Owe, o)
	r.keepBusy(o)
}

// ahead owes the dues of a timer in (after, to] that are to come and not over.
func (r *recovery) ahead(t *engine.Timer, p *plan.Plan, after, to int64, over func(due int64) bool) {
	last := max(after, r.now)
	var singles []engine.Owed // since the last that is over
	for due, ok := p.Next(last); ok && due <= to; due, ok = p.Next(due) {
		if over(due) {
			last = due
			r.d.Owe = append(r.d.Owe, singles...)
			singles = singles[:0]
		} else {
			singles = append(singles, policy.Row(t, due))
		}
	}
	if len(singles) == 1 {
		r.d.Owe = append(r.d.Owe, singles...)
		return
	}
	os, _ := ranges(t, p, last, to, func(k engine.Key) (bool, error) {
		_, begun := r.begun[k]
		return begun || r.finished[k] != nil || r.keys[k] || r.owes(k), nil
	})
	r.d.Owe = append(r.d.Owe, os...)
}

// owes tells whether a row under a key was just decided: those of a timer come last.
func (r *recovery) owes(k engine.Key) bool {
	for _, o := range slices.Backward(r.d.Owe) {
		if o.Key.Timer != k.Timer || o.Key == k {
			return o.Key == k
		}
	}
	return false
}

// fromRanges decides what is past of the ranges that are owed, and puts what is to
// come into new ones.
func (r *recovery) fromRanges(ctx context.Context) error {
	if len(r.ranges) == 0 {
		return nil
	}
	for id, rows := range r.ranges {
		t, err := r.timer(ctx, id)
		if err != nil {
			return err
		}
		if t == nil {
			continue // gone: resume drops them
		}
		p, err := plan.Of(t)
		if err != nil {
			r.e.leaveOut(id, err)
			continue
		}
		for i := range rows {
			if rows[i].Generation != t.Generation {
				continue
			}
			if err := r.fromRange(ctx, t, &p, &rows[i]); err != nil {
				return err
			}
		}
		if err := r.flushMany(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ranged tells whether a due of the timer lies in a range that was owed. One may reach
// beyond the watermark, where the settle that should have moved it there was lost.
func (r *recovery) ranged(t *engine.Timer, due int64) bool {
	return slices.ContainsFunc(r.ranges[t.ID], func(o engine.Owed) bool {
		return o.Generation == t.Generation && o.Key.Due <= due && due <= o.To
	})
}

func (r *recovery) fromRange(ctx context.Context, t *engine.Timer, p *plan.Plan, o *engine.Owed) error {
	rows, err := r.e.cfg.Cold.OwedOf(ctx, t.ID)
	if err != nil {
		return err
	}
	own, err := r.e.ownOf(ctx, rows, o.To)
	if err != nil {
		return err
	}
	over := func(due int64) bool {
		if due > o.To || own.Has(due) {
			return true
		}
		k := engine.Key{Timer: t.ID, Due: due}
		if _, ok := r.begun[k]; ok {
			r.again(t, k)
			return true
		}
		was := r.finished[k]
		if was != nil && !was.Status.Final() {
			r.retry(was, t.Generation, t.Lane())
			r.keepBusy(engine.Owed{Key: k, Generation: t.Generation, Origin: was.Origin, NotBefore: was.NotBefore, Task: was})
			r.record(was)
		}
		return was != nil
	}
	r.pay = append(r.pay, o.Key)
	from := o.Key.Due - 1
	if from < r.now {
		r.d.Decide(t, p, from, over)
	}
	r.ahead(t, p, from, o.To, over)
	return nil
}
