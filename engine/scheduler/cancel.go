package scheduler

import (
	"context"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// cancel adds to the change what becomes of the dues of the standing
// generation: each that is past, not finished and not in a call is cancelled. What
// is yet to come, by a clock that was set back, was nothing yet.
func (e *Scheduler) cancel(sh *shard, c *engine.Change, t *engine.Timer, rows []engine.Owed, own policy.Spans, reason string, upTo int64) (inFlight int, err error) {
	p, err := plan.Of(t)
	if err != nil { // see leaveOut: it has no dues, and it must be possible to delete it
		p = plan.Plan{}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if lv := sh.timers[t.ID]; lv != nil {
		for k := lv.tasks; k != nil; k = k.later {
			if k.state == isSending {
				inFlight++
				if !k.owed || k.dirty { // for a crash: no plan derives it any more
					k.owed = true
					c.Owe = append(c.Owe, k.row())
				}
				continue
			}
			k.cancelled = true
			if k.owed {
				c.Pay = append(c.Pay, k.Key)
			}
			if k.Key.Due > upTo && !k.used() {
				continue
			}
			rec := k.Task
			rec.Attempts = slices.Clone(k.Attempts)
			rec.Status, rec.Reason, rec.Ended, rec.NotBefore = engine.Cancelled, reason, c.At, 0
			if len(rec.Attempts) == 0 {
				rec.Lateness = -1
			}
			c.Tasks = append(c.Tasks, &rec)
		}
	}
	behind := false
	for i := range rows {
		o := &rows[i]
		behind = behind || o.To == engine.Endless
		if o.To == 0 && sh.tasks.find(o.Key) != nil {
			continue
		}
		c.Pay = append(c.Pay, o.Key)
		switch {
		case o.To != 0:
			c.Tasks = append(c.Tasks, sh.open(t, &p, o.Key.Due-1, min(o.To, upTo), own, reason, c.At)...)
		case o.Key.Due <= upTo || o.Used():
			rec := policy.CancelledRow(t, t, *o, c.At)
			rec.Reason = reason
			c.Tasks = append(c.Tasks, rec)
		}
	}
	if t.Status == engine.Enabled && !behind {
		after := max(sh.watermark, sh.decided[t.ID])
		if lv := sh.timers[t.ID]; lv != nil {
			after = max(after, lv.judged)
		}
		c.Tasks = append(c.Tasks, sh.open(t, &p, after, upTo, nil, reason, c.At)...)
	}
	return inFlight, nil
}

// open are the records that cancel the dues in (after, to] that are not in memory
// and not among those with a record of their own. mu is held.
//
// It goes from one of those to the next, and counts the dues between them: of a timer
// of 10 ms there are 8,640,000 a day, and what fires waits for mu.
func (sh *shard) open(t *engine.Timer, p *plan.Plan, after, to int64, own policy.Spans, reason string, now int64) (recs []*engine.Task) {
	if first, ok := p.Next(after); !ok || first > to {
		return nil
	}
	but := slices.Clone(own)
	for _, k := range sh.order {
		if due := k.Key.Due; k.Key.Timer == t.ID && !k.out && after < due && due <= to {
			but = append(but, [2]int64{due, due})
		}
	}
	slices.SortFunc(but, policy.CompareSpans)
	run := func(to int64) { // of (after, to]
		first, ok := p.Next(after)
		if !ok || first > to {
			return
		}
		rec := policy.NotCalled(t, first, engine.Cancelled, reason, now)
		rec.DueLast, _ = p.Prev(to)
		rec.Count = p.Count(after, to)
		recs = append(recs, rec)
	}
	for _, b := range but {
		if due, ok := p.Next(max(b[0]-1, after)); !ok || due > min(b[1], to) {
			continue // no due, or none that is left: a run goes on over it
		}
		run(min(b[0]-1, to))
		after = max(after, b[1])
	}
	run(to)
	return recs
}

// syncEnds waits until the journal has what ended of a timer and is not settled: no
// plan will derive it any more, should a crash take it away.
func (e *Scheduler) syncEnds(ctx context.Context, sh *shard, id engine.TimerID) error {
	sh.mu.Lock()
	ended := slices.ContainsFunc(sh.order, func(t *task) bool {
		return t.Key.Timer == id && t.state == isDone && t.stored == 0
	})
	sh.mu.Unlock()
	if next := e.journal.Next(); ended && next > 0 {
		return e.journal.Sync(ctx, next-1)
	}
	return nil
}

// over reads which dues of a timer in [from, to] a record ends for a generation (see
// ends), in any order.
func (e *Scheduler) over(ctx context.Context, id engine.TimerID, generation uint32, from, to int64) (s policy.Spans, err error) {
	f := engine.TaskFilter{Timer: id, From: from, To: to + 1}
	for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
		var ts []*engine.Task
		if ts, before, err = e.cfg.Cold.Tasks(ctx, f, before, 1000); err != nil {
			return nil, err
		}
		for _, t := range ts {
			if ends(t, generation) {
				s = append(s, [2]int64{t.Key.Due, max(t.Key.Due, t.DueLast)})
			}
		}
	}
	return s, nil
}

// ownOf are the dues up to now, of the ranges among the rows of a timer, that have
// a record or a row of their own.
func (e *Scheduler) ownOf(ctx context.Context, rows []engine.Owed, now int64) (own policy.Spans, err error) {
	for i := range rows {
		o := &rows[i]
		if o.To == 0 {
			own = append(own, [2]int64{o.Key.Due, o.Key.Due})
			continue
		}
		done, err := e.over(ctx, o.Key.Timer, o.Generation, o.Key.Due, min(o.To, now))
		if err != nil {
			return nil, err
		}
		own = append(own, done...)
	}
	slices.SortFunc(own, policy.CompareSpans)
	return own, nil
}

// end adds to the change what becomes of the standing generation.
func (e *Scheduler) end(ctx context.Context, sh *shard, c *engine.Change, t *engine.Timer, ed *edit, rows []engine.Owed, upTo int64) (inFlight int, err error) {
	if ed.once != (engine.Key{}) {
		if err := e.unbegun(ctx, ed.once); err != nil { // it may have, since f looked
			return 0, err
		}
	}
	own, err := e.ownOf(ctx, rows, upTo)
	if err != nil {
		return 0, err
	}
	if inFlight, err = e.cancel(sh, c, t, rows, own, ed.reason, upTo); err != nil {
		return inFlight, err
	}
	return inFlight, e.syncEnds(ctx, sh, t.ID)
}
