package scheduler

import (
	"cmp"
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
// is decided as at any start, and what is to come is one range, in which the dues that
// the timer began are spent.

// see finds how far the journal reaches.
func (r *recovery) see() {
	seen := func(k engine.Key) {
		if k.Due > r.now {
			r.reach[k.Timer.Shard()] = max(r.reach[k.Timer.Shard()], k.Due)
		}
	}
	for k := range r.finished {
		seen(k)
	}
	for k := range r.begun {
		seen(k)
	}
}

// again owes a task that was begun and has no row, or ends it as unknown.
func (r *recovery) again(d *policy.Triage, t *engine.Timer, k engine.Key) {
	was := r.finished[k]
	if t.Delivery == engine.AtMostOnce {
		r.unknown(d, t, k, engine.FromSchedule, was)
		return
	}
	o := engine.Owed{Key: k, Generation: t.Generation, Begun: true, NotBefore: k.Due, Lane: t.Lane(), Task: was}
	d.Owe = append(d.Owe, o)
	r.keepBusy(o)
}

// ahead owes the dues of a timer in (after, to] that are to come, as a range. Those that
// the journal or a row knows of are stored before the range is gone through, and spent.
func (r *recovery) ahead(d *policy.Triage, t *engine.Timer, p *plan.Plan, after, to int64) {
	after = max(after, r.now)
	if touched := r.touchedOf(t.ID); r.e.cfg.HistorySampled && len(touched) > 0 {
		after = max(after, touched[len(touched)-1].Due) // the records may not be stored
	}
	os, _ := policy.Ranges(t, p, after, to, func(k engine.Key) (bool, error) {
		_, begun := r.begun[k]
		return begun || r.finished[k] != nil || r.keys[k] || d.Owes(k), nil
	})
	d.Owe = append(d.Owe, os...)
}

// fromRanges decides what is past of the ranges that are owed, and puts what is to
// come into new ones; those of the shards of a pass.
func (r *recovery) fromRanges(ctx context.Context) error {
	s := &r.shards
	for before := s.from; len(s.ranges) > 0 && s.takes(s.ranges[0], before); {
		ids := s.ranges[:min(page, len(s.ranges))]
		ts, _, err := r.definitions(ctx, ids)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if !s.takes(id, before) {
				break
			}
			s.ranges, before = s.ranges[1:], id.Shard()
			if ts[i] == nil {
				continue // gone, and resume drops them; or left out, and they stay
			}
			if err := r.fromRangesOf(ctx, ts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fromRangesOf does it for one timer.
func (r *recovery) fromRangesOf(ctx context.Context, t *engine.Timer) error {
	p, err := plan.Of(t)
	if err != nil {
		r.e.leaveOut(t.ID, err)
		return nil
	}
	w, rows := r.watermark(t.ID), r.rangesOf(t)
	if len(rows) == 0 {
		return nil
	}
	from, to := w, int64(0)
	for i := range rows {
		from, to = min(from, rows[i].Key.Due-1), max(to, r.endOf(&rows[i]))
	}
	d := r.place(t.ID, to)
	was := d.size()
	if first, _, n := p.Run(w, rows[0].Key.Due-1); n > policy.MaxSingles { // its plan owes these as a range: see decide
		d.RangedFrom = first
		defer func() { d.RangedFrom = 0 }()
	}
	for i := range rows {
		if err := r.fromRange(ctx, d, t, &p, &rows[i]); err != nil {
			return err
		}
	}
	if to <= r.now {
		from = w
	}
	if mark := r.mark(t.ID.Shard()); mark > w {
		to = max(to, mark)
	}
	if to > r.now {
		var err error
		if from, err = r.e.BehindRun(ctx, t, max(from, r.now)); err != nil {
			return err
		}
	}
	r.ahead(&d.Triage, t, &p, from, to)
	if d != &r.d {
		r.shards.held += d.size() - was
	}
	return r.flushMany(ctx)
}

// rangesOf are the ranges that owe dues of a timer as it stands, by due: what is left of one may have
// a place in its lane behind the next. One may reach beyond the watermark, where the settle that should
// have moved it there was lost.
func (r *recovery) rangesOf(t *engine.Timer) (os []engine.Owed) {
	for _, o := range r.ranges[t.ID] {
		if o.Generation == t.Generation {
			os = append(os, o)
		}
	}
	slices.SortFunc(os, func(a, b engine.Owed) int { return cmp.Compare(a.Key.Due, b.Key.Due) })
	return os
}

// ranged reports whether a due lies in a range.
func ranged(ranges []engine.Owed, due int64) bool {
	return slices.ContainsFunc(ranges, func(o engine.Owed) bool { return o.Key.Due <= due && due <= o.To })
}

// fromRange decides what is past of one range.
func (r *recovery) fromRange(ctx context.Context, d *decisions, t *engine.Timer, p *plan.Plan, o *engine.Owed) error {
	own, err := r.e.OwnDues(ctx, *o, o.To)
	if err != nil {
		return err
	}
	settled := own
	for _, k := range r.touchedOf(t.ID) {
		if k.Due < o.Key.Due || k.Due > o.To || settled.Has(k.Due) || !p.Has(k.Due) {
			continue
		}
		if _, ok := r.begun[k]; ok {
			r.again(&d.Triage, t, k)
		} else if was := r.finished[k]; was != nil && !was.Status.Final() {
			r.retry(d, was, t.Generation, t.Lane())
			r.keepBusy(engine.Owed{Key: k, Generation: t.Generation, Origin: was.Origin, NotBefore: was.NotBefore, Task: was})
			r.record(was, true)
		}
		own = append(own, [2]int64{k.Due, k.Due})
	}
	own = own.Ordered()
	d.pay = append(d.pay, o.Key)
	waited, end := r.waitedTo(o), min(r.now, r.endOf(o))
	call := d.Call
	if o.Held != 0 {
		call = d.Hold // the next start does not judge them either
	}
	for _, x := range own.Open(p, o.Key.Due-1, min(waited, end)) {
		call(t, p, x[0], x[1])
	}
	d.Judge(t, p, own.Open(p, max(waited, o.Key.Due-1), end), r.e.memory.PausedFrom(t))
	return nil
}

// waitedTo is up to when the dues of a range waited for their turn, and are called. What is due
// later was never decided: of a range without end that was held, these are the dues of the time without
// a process.
func (r *recovery) waitedTo(o *engine.Owed) int64 {
	switch {
	case r.clean.Has(o.Key.Timer.Shard()):
		return r.now
	case o.Held == 0:
		return 0
	case o.To == engine.Endless:
		return r.watermark(o.Key.Timer)
	}
	return o.To
}

// endOf is the end of a range; of one without end the watermark that its shard will have:
// no timer is behind after a start.
func (r *recovery) endOf(o *engine.Owed) int64 {
	if o.To == engine.Endless {
		return r.mark(o.Key.Timer.Shard())
	}
	return o.To
}
