package scheduler

import (
	"context"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// A range is one row for many dues of a timer that wait:
//
//	from Key.Due to To          a start, a step of the clock or a change has decided that they are called
//	from Key.Due, without end   the timer is behind (live.behind): its lane has no room, or there was a
//	                            stall. Dues that come meanwhile cost nothing: they lie in the range.
//
// When its turn in its lane comes, refill unfolds it: the first of its dues come into memory.
// One transaction before gives these dues a range of their own, or a row each (see
// resident.MayShare), and puts what is left of the range behind the others of the lane. A range
// without end is over when no due of it is past; then the timer's dues come through the wheel again.
// What a step of the clock made late meanwhile, and is not called, has a record: see resident.Memory.Step.

const (
	// unfoldTurn is how many dues a range has unfolded in its turn, and unfoldRanges how
	// many ranges at most have theirs in one transaction.
	unfoldTurn   = 16
	unfoldRanges = 64
)

// unfolding is one transaction.
type unfolding struct {
	e        *Scheduler
	timers   map[engine.TimerID]*engine.Timer
	d        policy.Triage // the dues that become rows, or are not called
	pay      []engine.Key
	rests    []engine.Owed
	shared   []sharing
	waits    []engine.Owed
	unfolded []unfolded
	looks    map[engine.Key]look // by the key before the first due of the range
	claims   []func()            // of timers
	pins     []*resident.Pin
}

// look is what memory has of a range of whose dues up to an instant nothing is stored.
type look struct {
	to  int64
	own policy.Spans // in memory
}

// sharing are dues of a timer that come into memory with one row.
type sharing struct {
	row  engine.Owed // a range
	dues []engine.Owed
}

// unfolded is a timer that is behind: up to when its dues have rows, or are not called, once the transaction is
// committed. caughtUp: its dues after that come through the wheel.
type unfolded struct {
	timer    *engine.Timer
	upTo     int64
	caughtUp bool
}

func (e *Scheduler) unfoldPart(ctx context.Context, os []engine.Owed, most int) (done, made int, err error) {
	u := &unfolding{e: e, timers: map[engine.TimerID]*engine.Timer{}, looks: map[engine.Key]look{}}
	defer func() { u.end() }()
	found, err := u.claim(ctx, os)
	if err != nil {
		return 0, 0, err
	}
	if err := u.look(ctx, found, most); err != nil {
		return 0, 0, err
	}
	for i := range found {
		if err := u.unfold(ctx, &found[i], most); err != nil {
			return 0, 0, err
		}
	}
	if len(u.waits) > 0 {
		come, end := e.expect(u.waits), e.memory.SetAside(u.waits)
		e.process.Go(func(ctx context.Context) {
			process.Sleep(ctx, settleEvery)
			e.standAgain(u.waits)
			end()
			come()
		})
	}
	if len(u.pay) == 0 {
		return 0, 0, nil
	}
	s := &engine.Settlement{Owner: e.cfg.Node, Owe: slices.Concat(u.d.Owe, u.rests), Pay: u.pay}
	for i := range u.shared {
		s.Owe = append(s.Owe, u.shared[i].row)
	}
	settle := func() error {
		s.Tasks = e.endedNow(u.d.Records)
		return e.cfg.Cold.Settle(ctx, s)
	}
	for err = settle(); err != nil; err = settle() {
		// It may have been made: what follows from it must follow.
		e.log.Error("cannot store rows of dues that wait; trying again", "error", err)
		if process.Sleep(ctx, time.Second); ctx.Err() != nil {
			u.pins = nil // the pins stay: the commit may have been made, and no wheel has the dues that follow
			return 0, 0, ctx.Err()
		}
	}
	e.tally.Decided(u.d.Records)
	e.memory.NoteRemoved(u.pay) // first: the row of a range's first due has the key of the range, and is new
	ranges, made, err := u.enter()
	if err != nil {
		return 0, 0, err
	}
	for _, x := range u.unfolded { // last: what came due meanwhile is called after the rows
		if x.caughtUp {
			e.memory.CaughtUp(x.timer, x.upTo)
		} else {
			e.memory.Unfolded(x.timer, x.upTo)
		}
	}
	read := e.memory.Reads.Begin() // before a change goes on
	defer read.End()
	u.end()
	if err := e.resumeAll(ctx, ranges, read, true); err != nil {
		return 0, 0, err
	}
	return len(u.pay), made, e.resumeAll(ctx, u.rests, read, false)
}

// enter takes the dues into memory that have just got their rows. ranges are the other new rows.
func (u *unfolding) enter() (ranges []engine.Owed, made int, err error) {
	for _, o := range u.d.Owe {
		if o.To != 0 {
			ranges = append(ranges, o)
			continue
		}
		made++
		if err := u.e.memory.AddStored(u.timers[o.Key.Timer], o); err != nil {
			return nil, 0, err
		}
	}
	for _, x := range u.shared {
		made += len(x.dues)
		if err := u.e.memory.AddUnfolded(u.timers[x.row.Key.Timer], x.row.Key, x.dues); err != nil {
			return nil, 0, err
		}
	}
	return ranges, made, nil
}

// end gives back what the transaction has claimed and pinned.
func (u *unfolding) end() {
	for _, release := range u.claims {
		release()
	}
	for _, p := range u.pins {
		u.e.memory.Pins.Release(p)
	}
	u.claims, u.pins = nil, nil
}

// unfold unfolds one range.
func (u *unfolding) unfold(ctx context.Context, r *timerRange, most int) error {
	e, o, t, p, now := u.e, r.Owed, r.timer, &r.plan, r.now
	to := o.To
	if to == engine.Endless {
		to = max(now, r.settling)
	}
	u.pay, u.timers[t.ID] = append(u.pay, o.Key), t
	after, err := u.begin(ctx, t, p, o, now, min(to, now), r.settled, most)
	if err != nil {
		return err
	}
	due, ok := p.Next(after)
	rests := ok && due <= to && due <= now
	if o.To == engine.Endless {
		u.unfolded = append(u.unfolded, unfolded{t, after, !rests})
	}
	switch {
	case rests:
		rest := o // keyed by its first due, which has no row yet
		rest.Key.Due, rest.NotBefore, rest.Lane = due, now, t.Lane()
		if e.memory.InOrder(t) { // else the ranges of the lane take turns
			rest.NotBefore = due
		}
		u.rests = append(u.rests, rest)
		return nil
	case ok && due <= to: // the clock was set back: the wheel goes through it
		from, err := e.BehindRun(ctx, t, due-1)
		if err != nil {
			return err
		}
		os, err := policy.Ranges(t, p, from, to, func(k engine.Key) (bool, error) {
			if slices.ContainsFunc(u.d.Owe, func(x engine.Owed) bool { return x.Key == k }) {
				return true, nil
			}
			return e.HadTask(ctx, k)
		})
		if err != nil {
			return err
		}
		u.rests = append(u.rests, os...)
	}
	return nil
}

// begin makes rows of the first dues of a range up to the instant, most of them at most,
// and returns up to when it has. What is stale gets a record, as far as the watermark has
// settled: a record of a due that the plan may yet derive would be one too many.
func (u *unfolding) begin(ctx context.Context, t *engine.Timer, p *plan.Plan, o engine.Owed, now, to, settled int64, most int) (after int64, err error) {
	found := u.e.memory.Found(t.ID, now)
	after = o.Key.Due - 1
	stale := min(policy.StaleBefore(t, found, now)-1, to, settled)
	last := max(after, stale)
	var dues []int64
	for due, ok := p.Next(last); ok && due <= to && len(dues) < most; due, ok = p.Next(due) {
		dues, last = append(dues, due), due
	}
	from := o
	from.Key.Due-- // with the key that a shared row would have
	own, left, err := u.own(ctx, p, from, last, to)
	if err != nil {
		return after, err
	}
	if stale > after {
		u.d.Now = now
		for _, s := range own.Open(p, after, stale) {
			u.d.Pass(t, p, s[0], s[1], engine.Skipped, engine.ReasonStale)
		}
	}
	var rows []engine.Owed
	for _, due := range dues {
		if !own.Has(due) {
			r := policy.Row(t, due)
			r.Origin, r.Held = o.Origin, o.Held
			rows = append(rows, r)
		}
	}
	if len(rows) > 1 && resident.MayShare(t) {
		row := rows[0]
		if row.Key.Due, row.To = row.Key.Due-1, last; !p.Hits(row.Key.Due) && !own.Has(row.Key.Due) && !u.e.memory.IsTurning(row.Key) {
			u.shared = append(u.shared, sharing{row, rows})
			return left, nil
		}
	}
	u.d.Owe = append(u.d.Owe, rows...)
	return left, nil
}

// look reads which dues of all ranges are taken, as far as ownDues asks at first: of most ranges no due is stored. With
// two reads for each range, a takeover of 66 timers took 160 statements.
func (u *unfolding) look(ctx context.Context, ranges []timerRange, most int) error {
	os := make([]engine.Owed, len(ranges))
	own := make([]policy.Spans, len(ranges))
	for i := range ranges {
		r := &ranges[i]
		to := r.Key.Due
		for range most {
			due, ok := r.plan.Next(to)
			if !ok || due > min(r.To, r.now) {
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
