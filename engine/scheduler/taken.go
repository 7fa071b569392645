package scheduler

import (
	"context"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// The dues of a range that are taken have a task in memory, a final record or a row of their own, and
// are not unfolded. Of most ranges none is, so one look at the cold tier for all ranges of a transaction
// comes first. When two nodes took over 33 ranges each from a dead one, with two reads for each range
// the last of its timers was called 0.2 s later.

// look is what was seen of a range for which nothing is stored up to an instant, by the key before its first due.
type look struct {
	to  int64
	own policy.Spans // in memory
}

// look looks at all ranges at once, as far as ownDues will ask of most of them.
func (u *unfolding) look(ctx context.Context, ranges []timerRange, most int) error {
	now := u.e.now()
	os := make([]engine.Owed, len(ranges))
	own := make([]policy.Spans, len(ranges))
	for i := range ranges {
		r := &ranges[i]
		to := r.Key.Due
		for range most {
			due, ok := r.plan.Next(to)
			if !ok || due > min(r.To, now) {
				break
			}
			to = due
		}
		os[i] = engine.Owed{Key: engine.Key{Timer: r.Key.Timer, Due: r.Key.Due - 1}, To: to} // with the key that a shared row would have
		own[i] = u.e.memory.DuesOf(r.Key.Timer, r.Key.Due-2, to).Ordered()                   // first: what leaves memory was stored before
	}
	taken, err := u.e.cfg.Cold.Taken(ctx, os)
	if err != nil {
		return err
	}
	for i, o := range os {
		if !taken[i] {
			u.looks[o.Key] = look{o.To, own[i]}
		}
	}
	return nil
}

// own are the dues of a range up to an instant that have a task in memory, a final record or a
// row. after is that instant, or the last of those dues of to at most that follow at once: what is
// left of the range has the key of its first due, whose row it would replace.
func (u *unfolding) own(ctx context.Context, p *plan.Plan, o engine.Owed, upTo, to int64) (own policy.Spans, after int64, err error) {
	after = upTo
	for ahead := 1; ; ahead *= 2 {
		last := after
		for range ahead {
			due, ok := p.Next(last)
			if !ok || due > to {
				break
			}
			last = due
		}
		if own, err = u.ownDues(ctx, o, last); err != nil {
			return nil, 0, err
		}
		for after < last {
			due, _ := p.Next(after)
			if !own.Has(due) {
				return own, after, nil
			}
			after = due
		}
		if due, ok := p.Next(after); !ok || due > to {
			return own, after, nil
		}
	}
}

// ownDues reads them. Memory comes first: what leaves it was stored before.
func (u *unfolding) ownDues(ctx context.Context, o engine.Owed, to int64) (policy.Spans, error) {
	if l, ok := u.looks[o.Key]; ok && to <= l.to {
		return l.own, nil
	}
	own := u.e.memory.DuesOf(o.Key.Timer, o.Key.Due-1, to)
	stored, err := u.e.StoredDues(ctx, o, to)
	own = append(own, stored...)
	return own.Ordered(), err
}
