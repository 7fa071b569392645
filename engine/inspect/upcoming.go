package inspect

import (
	"context"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Upcoming lists the next n dues of a timer that will be called. ErrElsewhere: see View.
func (r *Reader) Upcoming(ctx context.Context, id engine.TimerID, n int) ([]int64, error) {
	if err := r.memory.Owns(id); err != nil {
		return nil, err
	}
	t, err := r.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.Status != engine.Enabled {
		return []int64{}, nil
	}
	return r.upcoming(ctx, t, r.now(), n)
}

// upcoming are the next n dues of a timer after now that will be called. The watermark is
// later than now only after the clock was set back: what the plan has up to there is then
// called if it is owed.
func (r *Reader) upcoming(ctx context.Context, t *engine.Timer, now int64, n int) ([]int64, error) {
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	w := r.memory.FinishedTo(t.ID)
	if w <= now {
		return Called(&p, now, nil, nil, n), nil
	}
	rows, err := r.RowsOf(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var spent policy.Spans
	rows = slices.DeleteFunc(rows, func(o engine.Owed) bool {
		return o.Generation != t.Generation || o.Used() || max(o.Key.Due, o.To) <= now
	})
	for i := range rows {
		o := &rows[i]
		if o.To == 0 {
			continue
		}
		if o.NotBefore = max(o.NotBefore, now+1); o.To == engine.Endless {
			o.To = w
		}
		s, err := r.Spent(ctx, t, &p, o.NotBefore-1, o.To)
		if err != nil {
			return nil, err
		}
		spent = append(spent, s...)
	}
	spent = spent.Ordered()
	return Called(&p, w, rows, spent, n), nil
}

// NextDue is the next due of a timer after now that will be called, 0 for none.
func (r *Reader) NextDue(ctx context.Context, t *engine.Timer, now int64) int64 {
	dues, err := r.upcoming(ctx, t, now, 1)
	if err != nil || len(dues) == 0 {
		return 0
	}
	return dues[0]
}

// Called are the first n dues of a timer that will be called: those of its rows that are
// not spent, and those of its plan that come after the rows and after w.
func Called(p *plan.Plan, w int64, rows []engine.Owed, spent policy.Spans, n int) []int64 {
	dues := make([]int64, 0, n)
	add := func(after, to int64) {
		for due, ok := p.Next(after); ok && due <= to && n > 0; due, ok = p.Next(due) {
			dues = append(dues, due)
			n--
		}
	}
	most := n
	for i := range rows {
		o := &rows[i]
		if n = most; o.To == 0 {
			dues = append(dues, o.Key.Due)
			continue
		}
		for _, s := range spent.Open(p, o.NotBefore-1, o.To) {
			add(s[0]-1, s[1])
		}
		w = max(w, o.To)
	}
	n = most
	add(w, engine.MaxDue)
	slices.Sort(dues)
	dues = slices.Compact(dues)
	return dues[:min(most, len(dues))]
}
