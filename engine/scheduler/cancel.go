package scheduler

import (
	"context"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// rowsOf reads the rows that a change takes along: the first fewestRows, and those of dues that
// are yet to come, by a clock that was set back, for the next generation may have the
// same. more: others are left to ended.
func (e *Scheduler) rowsOf(ctx context.Context, id engine.TimerID, upTo int64) (rows []engine.Owed, more bool, err error) {
	limit := min(endedRows, fewestRows)
	rows, err = e.cfg.Cold.OwedPage(ctx, id, -1, limit)
	if err != nil || len(rows) < limit {
		return rows, false, err
	}
	after := max(upTo, rows[limit-1].Key.Due)
	for page := rows; len(page) == limit; after = page[len(page)-1].Key.Due {
		if page, err = e.cfg.Cold.OwedPage(ctx, id, after, limit); err != nil {
			return nil, false, err
		}
		if rows = append(rows, page...); len(page) == 0 {
			break
		}
	}
	return rows, true, nil
}

// cancel adds to the change what becomes of the dues of the standing generation that
// have come: each that is not finished and not in a call is cancelled. A task in
// memory that has a row is left to retire. waited reports whether there was any.
func (e *Scheduler) cancel(ctx context.Context, sh *shard, c *engine.Change, end *policy.Ending, rows []engine.Owed) (inFlight int, waited bool, err error) {
	for i := range rows {
		if e.inMemory(&rows[i]) {
			continue
		}
		recs, err := e.endOf(ctx, end, &rows[i])
		if err != nil {
			return 0, false, err
		}
		c.Pay, c.Tasks = append(c.Pay, rows[i].Key), append(c.Tasks, recs...)
	}
	t := end.Former
	p, err := plan.Of(t)
	if err != nil { // see leaveOut: it has no dues, and it must be possible to delete it
		p = plan.Plan{}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	after, behind := max(sh.watermark, sh.decided[t.ID]), false
	if lv := sh.timers[t.ID]; lv != nil {
		after, behind = max(after, lv.judged), lv.behind // then its range has what came
		for k := lv.tasks; k != nil; k = k.later {
			came := k.Key.Due <= end.UpTo || k.used()
			switch {
			case k.state == isSending:
				inFlight++
				if !k.owed || k.dirty { // for a crash: no plan derives it any more
					k.owed = true
					c.Owe = append(c.Owe, k.row())
				}
				continue
			case k.owed && came:
				waited = true
				continue
			case k.owed:
				c.Pay = append(c.Pay, k.Key)
			}
			if k.cancelled = true; came {
				rec := k.snapshot()
				rec.Status, rec.Reason, rec.Ended, rec.NotBefore = engine.Cancelled, end.Reason, end.At, 0
				if len(rec.Attempts) == 0 {
					rec.Lateness = -1
				}
				c.Tasks = append(c.Tasks, rec)
			}
		}
	}
	if t.Status == engine.Enabled && !behind {
		c.Tasks = append(c.Tasks, sh.open(t, &p, after, end.UpTo, nil, end.Reason, end.At)...)
	}
	return inFlight, waited || len(c.Tasks) > 0, nil
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
