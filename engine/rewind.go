package engine

import (
	"context"
	"slices"
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
func (r *recovery) again(t *Timer, k Key) {
	was := r.finished[k]
	if t.Delivery == AtMostOnce {
		r.unknown(t, k, FromSchedule, was)
		return
	}
	o := Owed{Key: k, Generation: t.Generation, Begun: true, NotBefore: k.Due, Task: was}
	r.d.owe = append(r.d.owe, o)
	r.keepBusy(o)
}

// ahead owes the dues of a timer in (after, to] that are to come and not over.
func (r *recovery) ahead(t *Timer, p *Plan, after, to int64, over func(due int64) bool) {
	last := max(after, r.now)
	var singles []Owed // since the last that is over
	for due, ok := p.Next(last); ok && due <= to; due, ok = p.Next(due) {
		if over(due) {
			last = due
			r.d.owe = append(r.d.owe, singles...)
			singles = singles[:0]
		} else {
			singles = append(singles, r.d.owed(t, due))
		}
	}
	if len(singles) == 1 {
		r.d.owe = append(r.d.owe, singles...)
		return
	}
	os, _ := ranges(t, p, last, to, func(k Key) (bool, error) {
		_, begun := r.begun[k]
		return begun || r.finished[k] != nil || r.keys[k] || r.owes(k), nil
	})
	r.d.owe = append(r.d.owe, os...)
}

// owes tells whether a row under a key was just decided: those of a timer come last.
func (r *recovery) owes(k Key) bool {
	for _, o := range slices.Backward(r.d.owe) {
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
		p, err := PlanOf(t)
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
func (r *recovery) ranged(t *Timer, due int64) bool {
	return slices.ContainsFunc(r.ranges[t.ID], func(o Owed) bool {
		return o.Generation == t.Generation && o.Key.Due <= due && due <= o.To
	})
}

func (r *recovery) fromRange(ctx context.Context, t *Timer, p *Plan, o *Owed) error {
	rows, err := r.e.cfg.Cold.OwedOf(ctx, t.ID)
	if err != nil {
		return err
	}
	own, err := r.e.ownOf(ctx, rows, o.To)
	if err != nil {
		return err
	}
	over := func(due int64) bool {
		if due > o.To || own.has(due) {
			return true
		}
		k := Key{t.ID, due}
		if _, ok := r.begun[k]; ok {
			r.again(t, k)
			return true
		}
		was := r.finished[k]
		if was != nil && !was.Status.Final() {
			r.retry(was, t.Generation)
			r.keepBusy(Owed{Key: k, Generation: t.Generation, Origin: was.Origin, NotBefore: was.NotBefore, Task: was})
			r.record(was)
		}
		return was != nil
	}
	r.pay = append(r.pay, o.Key)
	from := o.Key.Due - 1
	if from < r.now {
		r.d.decide(t, p, from, over)
	}
	r.ahead(t, p, from, o.To, over)
	return nil
}
