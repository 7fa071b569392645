package scheduler

import (
	"context"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Ranges are unfolded some at a time, in turns: what many timers have missed is one
// commit for some dues of each.
const (
	unfoldRanges = 64   // at most in one commit
	unfoldDues   = 1000 // of all of them together
)

// unfold turns the first dues of ranges into rows of their own, in one transaction with
// what is left of the ranges, and resumes them. left are those that it did not unfold:
// their timers are being changed, or the commit failed.
func (e *Scheduler) unfold(ctx context.Context, os []engine.Owed) (left []engine.Owed, err error) {
	var mine []engine.Owed
	var releases []func()
	release := func() {
		for _, f := range releases {
			f()
		}
		releases = nil
	}
	defer func() { release() }()
	for _, o := range os {
		if f, ok := e.tryClaim(o.Key.Timer); ok { // a change would not know the new rows
			mine, releases = append(mine, o), append(releases, f)
		} else {
			left = append(left, o)
		}
	}
	if len(mine) == 0 {
		return left, nil
	}
	rests, singles, err := e.unfoldClaimed(ctx, mine)
	if err != nil {
		return os, err
	}
	for _, o := range mine {
		sh := e.shardOf(o.Key.Timer)
		sh.mu.Lock()
		sh.left[o.Key] = e.ticks() // who has read it reads again
		sh.mu.Unlock()
		e.backlog.over(o.Key)
	}
	time.Sleep(time.Millisecond) // but for the rows that came of it
	read := time.Now()
	release()
	if err := e.resumeAll(ctx, singles, read, false); err != nil {
		return left, err
	}
	return left, e.resumeAll(ctx, rests, read, false)
}

// tryClaim is claim for who has something else to do meanwhile.
func (e *Scheduler) tryClaim(id engine.TimerID) (release func(), ok bool) {
	sh := e.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.changing[id] != nil {
		return nil, false
	}
	ch := make(chan struct{})
	sh.changing[id] = ch
	return func() {
		sh.mu.Lock()
		delete(sh.changing, id)
		sh.mu.Unlock()
		close(ch)
	}, true
}

// unfoldClaimed commits it.
func (e *Scheduler) unfoldClaimed(ctx context.Context, os []engine.Owed) (rests, singles []engine.Owed, err error) {
	ids := make([]engine.TimerID, len(os))
	for i := range os {
		ids[i] = os[i].Key.Timer
	}
	defs, err := e.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	s := &engine.Settlement{Owner: e.cfg.Node}
	for i, o := range os {
		var t *engine.Timer
		if defs[i] != nil {
			if t, err = engine.DecodeTimer(defs[i]); err != nil {
				return nil, nil, err
			}
		}
		if t == nil || t.Generation != o.Generation {
			e.ended.add(o.Key.Timer, nil, t, e.now())
			continue
		}
		s.Pay = append(s.Pay, o.Key)
		rest, err := e.unfoldInto(ctx, s, t, o, max(unfoldDues/len(os), 1))
		if err != nil {
			return nil, nil, err
		}
		if rest != nil {
			rests = append(rests, *rest)
		}
	}
	singles = s.Owe
	s.Owe = slices.Concat(singles, rests)
	if err := e.cfg.Cold.Settle(ctx, s); err != nil {
		return nil, nil, err
	}
	return rests, singles, nil
}

// unfoldInto adds the rows of the next dues of a range that are past and have neither a
// final record nor a row; rest is what remains of the range.
func (e *Scheduler) unfoldInto(ctx context.Context, s *engine.Settlement, t *engine.Timer, o engine.Owed, most int) (rest *engine.Owed, err error) {
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	now := e.now()
	dues := make([]int64, 0, most)
	due, ok := p.Next(o.Key.Due - 1)
	for ; ok && due <= min(o.To, now) && len(dues) < most; due, ok = p.Next(due) {
		dues = append(dues, due)
	}
	if len(dues) > 0 {
		own, err := e.ownWithin(ctx, o, dues[len(dues)-1])
		if err != nil {
			return nil, err
		}
		for _, due := range dues {
			if !own.Has(due) {
				s.Owe = append(s.Owe, engine.Owed{Key: engine.Key{Timer: t.ID, Due: due}, Generation: t.Generation, Origin: o.Origin, NotBefore: due, Lane: t.Lane()})
			}
		}
	}
	if !ok || due > o.To {
		return nil, nil
	}
	if due > now { // the clock was set back: the wheel goes through it
		os, err := ranges(t, &p, due-1, o.To, func(k engine.Key) (bool, error) {
			if slices.ContainsFunc(s.Owe, func(x engine.Owed) bool { return x.Key == k }) {
				return true, nil
			}
			return e.known(ctx, k)
		})
		if err != nil {
			return nil, err
		}
		if last := len(os) - 1; os[last].To != 0 {
			rest, os = &os[last], os[:last]
		}
		s.Owe = append(s.Owe, os...)
		return rest, nil
	}
	r := o // keyed by its first due, which has no row yet
	r.Key.Due, r.NotBefore = due, max(due, now)
	return &r, nil
}

// ownWithin are the dues of a range up to the instant that have a final record or a row.
func (e *Scheduler) ownWithin(ctx context.Context, o engine.Owed, to int64) (policy.Spans, error) {
	done, err := e.over(ctx, o.Key.Timer, o.Key.Due, to)
	if err != nil {
		return nil, err
	}
	for after, more := o.Key.Due-1, true; more; {
		rows, err := e.cfg.Cold.OwedPage(ctx, o.Key.Timer, after, unfoldDues)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if after = rows[i].Key.Due; rows[i].To == 0 && after <= to {
				done = append(done, [2]int64{after, after})
			}
		}
		more = len(rows) == unfoldDues && after < to
	}
	slices.SortFunc(done, policy.CompareSpans)
	return done, nil
}
