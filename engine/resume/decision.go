package resume

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

// decision is one transaction.
type decision struct {
	d        *Decider
	now      int64
	ids      []engine.TimerID // claimed
	releases []func()
	frozen   bool

	t     policy.Triage // records, and rows of dues that are to be called
	pay   []engine.Key
	rests []engine.Owed // what is left of ranges
	of    []decided
}

// decided is one timer of it.
type decided struct {
	timer  *engine.Timer
	waits  resident.Waiting
	last   int64 // the due that is called, -1: none
	whole  bool
	caught bool  // its range without end is over, and its plan has no later due
	later  int64 // the last due that is decided about another time; 0: none
}

func (x *decision) claim(id engine.TimerID, release func()) {
	x.ids, x.releases = append(x.ids, id), append(x.releases, release)
}

func (x *decision) freeze(ctx context.Context) error {
	x.frozen = true
	return x.d.memory.FreezeAll(ctx, x.ids)
}

// end lets the timers go on.
func (x *decision) end() {
	for _, id := range x.ids {
		if x.frozen {
			x.d.memory.Thaw(id)
		}
	}
	for _, release := range x.releases {
		release()
	}
	x.ids, x.releases = nil, nil
}

// add decides about one timer. ready is false if all or some of its dues must be decided later.
func (x *decision) add(ctx context.Context, t *engine.Timer) (ready bool, err error) {
	m := x.d.memory
	b := m.Backlogs.Of(t)
	if b.UpTo() == 0 {
		return true, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		x.d.cfg.LeaveOut(t.ID, err)
		return true, nil
	}
	// While the clock is behind the end of the backlog, no due is decided. The queue hands out none of the tasks until
	// the clock has reached that end; then each task asks for a decision again.
	behind := x.now < b.UpTo()
	y := decided{timer: t, whole: !behind}
	if y.waits, ready = m.Waiting(t); !ready {
		return false, nil
	}
	rows, err := x.d.cfg.Reader.RowsOf(ctx, t.ID)
	if err != nil {
		return false, err
	}
	stored, ranges := x.stored(&y, b, rows)
	singles := len(stored)
	if singles > mostRows {
		y.cut(stored)
		x.drop(&y, &p, stored[:mostRows], nil, nil)
		x.of = append(x.of, y)
		return false, nil
	}
	for i := range ranges {
		spans, err := x.fold(ctx, &y, &p, ranges[i], rows, min(b.UpTo(), x.now))
		if err != nil {
			return false, err
		}
		stored = append(stored, spans...)
	}
	all := append(slices.Clone(stored), y.waits.Others...)
	_, y.last = all.Leave(b, &p)
	if y.later > y.last {
		y.last = -1
	}
	x.drop(&y, &p, stored[:singles], stored[singles:], ranges)
	x.of = append(x.of, y)
	return y.whole || behind && y.later == 0, nil
}

// stored are the dues of a backlog that have rows which go in this transaction, and the ranges.
func (x *decision) stored(y *decided, b engine.Backlog, rows []engine.Owed) (stored policy.Spans, ranges []engine.Owed) {
	t := y.timer
	stored = slices.Clone(y.waits.Stored)
	for i := range rows {
		o := &rows[i]
		switch {
		case o.Damaged != nil || o.Generation != t.Generation || !policy.InBacklog(b, t, o.Origin, o.Key.Due, x.now):
		case o.To != 0 && x.d.memory.IsTurning(o.Key): // the wheel goes through it
		case o.To != 0:
			ranges = append(ranges, *o)
		case y.waits.Has(o.Key.Due) || o.Begun || o.Task != nil && len(o.Task.Attempts) > 0:
		case o.Key.Due <= y.waits.Watermark:
			stored = append(stored, [2]int64{o.Key.Due, o.Key.Due})
		default:
			y.leave(o.Key.Due) // until it is in memory, or not later than the watermark
		}
	}
	return stored, ranges
}

// leave leaves a due to another time.
func (y *decided) leave(due int64) { y.whole, y.later = false, max(y.later, due) }

// cut leaves all to another time but the first dues of those that are stored.
func (y *decided) cut(stored policy.Spans) {
	stored = stored.Ordered()
	last := stored[mostRows-1][0]
	y.waits.Stored = slices.DeleteFunc(y.waits.Stored, func(s [2]int64) bool { return s[0] > last })
	y.waits.Others, y.last, y.whole = nil, -1, false
}

// fold takes the dues of a range up to the instant out of it. Those beyond the watermark
// become rows; spans are the others.
func (x *decision) fold(ctx context.Context, y *decided, p *plan.Plan, o engine.Owed, rows []engine.Owed, to int64) (spans policy.Spans, err error) {
	to = min(to, o.To)
	sure := min(to, y.waits.Watermark)
	own := x.d.memory.DuesOf(o.Key.Timer, o.Key.Due-1, to) // first: what leaves memory was stored before
	stored, err := x.d.cfg.Reader.StoredDues(ctx, o, to)
	if err != nil {
		return nil, err
	}
	own = append(own, stored...)
	own = own.Ordered()
	for _, s := range own.Open(p, o.Key.Due-1, sure) {
		if first, last, n := p.Run(s[0]-1, s[1]); n > 0 {
			spans = append(spans, [2]int64{first, last})
		}
	}
	due, ok := p.Next(max(sure, o.Key.Due-1))
	for n := 0; ok && due <= to && n < mostRows; due, ok = p.Next(due) {
		if !own.Has(due) {
			x.t.Owe = append(x.t.Owe, rowOf(y.timer, due, &o))
			y.leave(due)
			n++
		}
	}
	x.pay = append(x.pay, o.Key)
	has := func(due int64) bool {
		return slices.ContainsFunc(rows, func(r engine.Owed) bool { return r.To == 0 && r.Key.Due == due })
	}
	for ok && due <= o.To && (has(due) || y.waits.Has(due)) { // a row has that key
		due, ok = p.Next(due)
	}
	switch {
	case ok && due <= o.To:
		if due <= to {
			y.leave(to)
		}
		o.Key.Due, o.NotBefore, o.Lane = due, x.now, y.timer.Lane()
		x.rests = append(x.rests, o)
	case o.To == engine.Endless:
		y.caught = true
	}
	return spans, nil
}

// mostRows is how many dues of a range become rows at most, and how many rows of a timer are
// removed, in one transaction.
const mostRows = 10_000

// rowOf is the row of a due of a range.
func rowOf(t *engine.Timer, due int64, of *engine.Owed) engine.Owed {
	r := policy.Row(t, due)
	r.Origin, r.Held = of.Origin, of.Held
	return r
}

// drop records that dues are not called which have rows, or lay in ranges: all but the last.
func (x *decision) drop(y *decided, p *plan.Plan, singles, folded policy.Spans, ranges []engine.Owed) {
	var planned policy.Spans
	x.t.Now = x.now
	for _, s := range singles {
		switch {
		case s[0] == y.last:
			continue
		case p.Has(s[0]):
			planned = append(planned, s)
		default: // an enable has caught up with it, or its one-shot was changed
			x.t.Records = append(x.t.Records, policy.NotCalled(y.timer, s[0], engine.Skipped, engine.ReasonPaused, x.now))
		}
		x.pay = append(x.pay, engine.Key{Timer: y.timer.ID, Due: s[0]})
	}
	for _, s := range folded {
		if s[0] <= y.last && y.last <= s[1] {
			i := slices.IndexFunc(ranges, func(o engine.Owed) bool { return o.Key.Due <= y.last && y.last <= o.To })
			x.t.Owe = append(x.t.Owe, rowOf(y.timer, y.last, &ranges[i]))
			if s[1] = y.last - 1; s[1] < s[0] {
				continue
			}
		}
		planned = append(planned, s)
	}
	for _, s := range planned.Joined(p) {
		x.t.Pass(y.timer, p, s[0], s[1], engine.Skipped, engine.ReasonPaused)
	}
}

// store stores it, and puts it into force.
func (x *decision) store(ctx context.Context) error {
	d, m := x.d, x.d.memory
	if len(x.pay) > 0 {
		s := &engine.Settlement{Owner: d.cfg.Node, Owe: slices.Concat(x.t.Owe, x.rests), Pay: x.pay}
		for {
			s.Tasks = nil
			for _, t := range x.t.Records {
				t.Ended = d.cfg.Now()
				s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.EncodeTask(t)})
			}
			err := d.cfg.Cold.Settle(ctx, s)
			if err == nil {
				break
			}
			// It may have been made: what follows from it must follow.
			d.cfg.Log.Error("cannot store what becomes of what a pause held; trying again", "error", err)
			if process.Sleep(ctx, time.Second); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		d.cfg.Tally.Decided(x.t.Records)
		m.NoteRemoved(x.pay) // first: a row of a range's first due has the key of the range, and is new
	}
	read := m.Reads.Begin() // before a change goes on
	defer read.End()
	for i := range x.of {
		y := &x.of[i]
		m.Decided(y.timer, &y.waits, y.last, y.whole)
		if y.whole {
			m.Unfolded(y.timer, min(m.Backlogs.Of(y.timer).UpTo(), x.now))
		}
		if y.caught {
			m.CaughtUp(y.timer, m.Backlogs.Of(y.timer).UpTo())
		}
	}
	x.end()
	for i := range x.rests {
		m.Lanes.Of(x.rests[i].Lane).Waits(x.rests[i].Place())
	}
	return d.cfg.Resume(ctx, x.t.Owe, read)
}
