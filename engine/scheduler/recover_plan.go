package scheduler

import (
	"cmp"
	"context"
	"slices"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// shardDecisions are what a start has decided of the dues that the plans derive, in
// (W, now], by shard. They are stored with the watermark of their shard, in one
// transaction: were they stored without, and the start cut short, the next one would
// judge by another clock, and record a due twice.
//
// Many timers leave more than fits into memory, so a start may go through the plans
// several times, for some of the shards each.
type shardDecisions struct {
	of    [engine.Shards]policy.Triage
	from  int // the shards that this pass is for, without until
	until int
	held  int // rows and records
}

// maxHeld is how many rows and records of a start are held before they are stored; a
// variable for tests.
var maxHeld = 10 * maxDecided

// trim leaves the upper shards to a later pass when too much is held.
func (s *shardDecisions) trim() {
	for s.held > maxHeld && s.until-s.from > 1 {
		middle := (s.from + s.until) / 2
		for i := middle; i < s.until; i++ {
			s.held -= len(s.of[i].Records) + len(s.of[i].Owe)
			s.of[i] = policy.Triage{}
		}
		s.until = middle
	}
}

// fromPlans decides the dues in (W, now] of all timers, and stores that with the
// watermarks.
func (r *recovery) fromPlans(ctx context.Context, lowest int64) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	to := max(r.now, slices.Max(r.reach[:]))
	s := &r.shards
	for s.until < engine.Shards {
		s.from, s.until = s.until, engine.Shards
		err := r.e.cfg.Cold.Due(ctx, lowest, to, func(cs []engine.Candidate) error { return r.fromPlan(ctx, cs) })
		if err != nil {
			return err
		}
		failpoint.Hit("recovery-scan")
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle stores what a pass has decided, so many shards in a transaction as fit into one.
func (r *recovery) settle(ctx context.Context) error {
	var d policy.Triage
	var marks []engine.Mark
	s := &r.shards
	for i := s.from; i < s.until; i++ {
		d.Records, d.Owe = append(d.Records, s.of[i].Records...), append(d.Owe, s.of[i].Owe...)
		s.of[i] = policy.Triage{}
		if sh := &r.e.shards[i]; r.mark(i) > sh.watermark {
			marks = append(marks, engine.Mark{Shard: i, Fence: sh.fence, W: r.mark(i)})
		}
		if len(d.Records)+len(d.Owe) < maxDecided && i+1 < s.until {
			continue
		}
		if err := r.store(ctx, &d, nil, marks); err != nil {
			return err
		}
		d, marks = policy.Triage{}, nil
	}
	s.held = 0
	return nil
}

// fromPlan decides the dues of candidates.
func (r *recovery) fromPlan(ctx context.Context, cs []engine.Candidate) error {
	var ids []engine.TimerID
	var defs [][]byte
	s := &r.shards
	for _, c := range cs {
		switch i := c.ID.Shard(); {
		case i < s.from || i >= s.until:
		case c.Definition != nil:
			defs = append(defs, slices.Clone(c.Definition)) // the page is its reader's again
		case c.Due > r.e.shards[i].watermark:
			ids = append(ids, c.ID)
		}
	}
	loaded, err := r.e.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return err
	}
	for _, b := range append(defs, loaded...) {
		if b == nil {
			continue
		}
		t, err := engine.DecodeTimer(b)
		if err != nil {
			return err
		}
		if t.Status != engine.Enabled {
			continue
		}
		p, err := plan.Of(t)
		if err != nil {
			r.e.leaveOut(t.ID, err)
			continue
		}
		r.decide(t, &p)
	}
	s.trim()
	return nil
}

// decide decides the dues of one timer that its plan derives.
func (r *recovery) decide(t *engine.Timer, p *plan.Plan) {
	shard := t.ID.Shard()
	w, mark := r.e.shards[shard].watermark, r.mark(shard)
	d := &r.shards.of[shard]
	was := len(d.Records) + len(d.Owe)
	d.Now = r.now
	over := r.over(t)
	for _, k := range r.touchedOf(t.ID) {
		if _, ok := r.begun[k]; ok && w < k.Due && k.Due <= mark && !r.owed[k] && !r.ranged(t, k.Due) && p.Has(k.Due) {
			r.again(d, t, k)
		}
	}
	d.Decide(t, p, over.Open(p, w, r.now))
	if !r.hasRange(t) { // else they were owed with what is left of it
		r.ahead(d, t, p, w, mark)
	}
	r.shards.held += len(d.Records) + len(d.Owe) - was
}

// touch lists the keys of the journal and of rows.
func (r *recovery) touch() {
	for k := range r.finished {
		r.touched = append(r.touched, k)
	}
	for k := range r.begun {
		r.touched = append(r.touched, k)
	}
	for k := range r.owed {
		r.touched = append(r.touched, k)
	}
	slices.SortFunc(r.touched, func(a, b engine.Key) int { return cmp.Or(cmp.Compare(a.Timer, b.Timer), cmp.Compare(a.Due, b.Due)) })
	r.touched = slices.Compact(r.touched)
}

// touchedOf are those of one timer.
func (r *recovery) touchedOf(id engine.TimerID) []engine.Key {
	byTimer := func(k engine.Key, id engine.TimerID) int { return cmp.Compare(k.Timer, id) }
	from, _ := slices.BinarySearchFunc(r.touched, id, byTimer)
	n, _ := slices.BinarySearchFunc(r.touched[from:], id+1, byTimer)
	return r.touched[from : from+n]
}

// over are the dues of a timer that are not to be decided by its plan: the journal or a
// row has them, or they lie in a range, which was decided before. A range may reach
// beyond the watermark, where the settle that should have moved it there was lost.
func (r *recovery) over(t *engine.Timer) (over policy.Spans) {
	for _, k := range r.touchedOf(t.ID) {
		over = append(over, [2]int64{k.Due, k.Due})
	}
	for _, o := range r.ranges[t.ID] {
		if o.Generation == t.Generation {
			over = append(over, [2]int64{o.Key.Due, o.To})
		}
	}
	slices.SortFunc(over, policy.CompareSpans)
	return over
}
