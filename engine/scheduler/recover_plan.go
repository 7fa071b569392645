package scheduler

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// decisions are rows and records that are stored in one transaction.
type decisions struct {
	policy.Triage
	pay []engine.Key // rows that go, unless they are owed again
}

func (d *decisions) size() int { return len(d.Records) + len(d.Owe) + len(d.pay) }

// shardDecisions are the decisions of a start on dues later than the watermark W, by
// shard: on rows and ranges, and on the dues in (W, now] that the plans derive. They are
// stored with the watermark of their shard, in one transaction. If they were stored without
// it, and the start were cut short, the next start would derive the dues from the plan, find
// no row, judge them by another clock, and record a due twice.
//
// Many timers leave more than fits into memory, so a start may go through the ranges and
// the plans in several passes, for some of the shards each.
type shardDecisions struct {
	rows   [engine.Shards]decisions     // on rows and ranges: made once
	plans  [engine.Shards]policy.Triage // on dues of plans: a later pass makes those again that trim drops
	ranges []engine.TimerID             // timers whose ranges no pass has decided, by shard
	from   int                          // the shards that this pass is for, without until
	until  int
	held   int // rows and records
}

// maxHeld is how many rows and records of a start are held before they are stored; a
// variable for tests.
var maxHeld = 10 * maxDecided

// next begins the next pass.
func (s *shardDecisions) next() {
	s.from, s.until, s.held = s.until, engine.Shards, 0
	for i := s.from; i < s.until; i++ {
		s.held += s.rows[i].size()
	}
}

// takes reports whether this pass decides the ranges of a timer. The shard of the timer that
// came last is before. When ranges fill half of the pass, the pass ends before the next shard.
func (s *shardDecisions) takes(id engine.TimerID, before int) bool {
	if shard := id.Shard(); shard > max(s.from, before) && shard < s.until && s.held > maxHeld/2 {
		s.until = shard
	}
	return id.Shard() < s.until
}

// trim leaves the upper shards to a later pass when too much is held.
func (s *shardDecisions) trim() {
	for s.held > maxHeld && s.until-s.from > 1 {
		middle := (s.from + s.until) / 2
		for i := middle; i < s.until; i++ {
			s.held -= len(s.plans[i].Records) + len(s.plans[i].Owe) + s.rows[i].size()
			s.plans[i] = policy.Triage{}
		}
		s.until = middle
	}
}

// place returns the decisions that are to take in one on dues of a timer, of which the last
// is due: those of the shard if that is later than the watermark.
func (r *recovery) place(id engine.TimerID, due int64) *decisions {
	d := &r.d
	if due > r.watermark(id) {
		d = &r.shards.rows[id.Shard()]
	}
	d.Now = r.now
	return d
}

// rowsFound are the rows of a timer: their oldest generation, and their lane; 0: they are in several.
type rowsFound struct {
	oldest uint32
	lane   engine.Lane
}

// changeLanes stores the rows of timers with overlap queue in the present lanes of these timers. A timer whose target
// or flow keys were changed has left rows in its former lane, and rows of later dues were, or are, stored in the
// present one: refill reads the rows of one lane in order, but may begin with either lane.
func (r *recovery) changeLanes(ctx context.Context) error {
	if len(r.strays) == 0 {
		return nil
	}
	if err := r.flush(ctx); err != nil { // the rows are as they were decided
		return err
	}
	for ids := range slices.Chunk(r.strays, page) {
		ts, _, err := r.definitions(ctx, ids)
		if err != nil {
			return err
		}
		for _, t := range ts {
			if t == nil {
				continue
			}
			if err := r.changeLane(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recovery) changeLane(ctx context.Context, t *engine.Timer) (err error) {
	read := r.e.EachRow(ctx, t.ID, -1, func(o *engine.Owed) bool {
		if o.To == 0 && isStray(t, o) { // what is left of a range gets a new row
			o.Lane = t.LaneFor(o)
			r.d.Owe = append(r.d.Owe, *o)
			err = r.flushMany(ctx)
		}
		return err == nil
	})
	return cmp.Or(err, read)
}

// fromPlans decides the ranges, and the dues in (W, now] of all timers, and stores that
// with the watermarks.
func (r *recovery) fromPlans(ctx context.Context, lowest int64) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	to := max(r.now, slices.Max(r.reach[:]))
	s := &r.shards
	s.ranges = slices.SortedFunc(maps.Keys(r.ranges), func(a, b engine.TimerID) int { return cmp.Compare(a.Shard(), b.Shard()) })
	for s.until < engine.Shards {
		s.next()
		if err := r.fromRanges(ctx); err != nil {
			return err
		}
		err := r.e.cfg.Cold.Due(ctx, r.of, lowest, to, func(cs []engine.Candidate) error { return r.fromPlan(ctx, cs) })
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

// settle stores what a pass has decided, so many shards in a transaction as fit into one;
// fewer, when that did not fit into the tier's time.
func (r *recovery) settle(ctx context.Context) error {
	s := &r.shards
	if err := r.flush(ctx); err != nil { // what the journal knows of dues in ranges
		return err
	}
	for again := false; s.from < s.until; {
		d, marks, upTo := r.piece(r.e.pieces.of(maxDecided))
		if err := r.store(ctx, d, marks); err != nil {
			if again || ctx.Err() != nil || upTo == s.from+1 {
				return err
			}
			again = true
			continue
		}
		clear(s.rows[s.from:upTo])
		clear(s.plans[s.from:upTo])
		s.from, again = upTo, false
	}
	return nil
}

// piece is what was decided of the next shards, up to the one that fills it.
func (r *recovery) piece(rows int) (d *decisions, marks []engine.Mark, upTo int) {
	d = &decisions{}
	for upTo = r.shards.from; upTo < r.shards.until && d.size() < rows; upTo++ {
		of, plans := &r.shards.rows[upTo], &r.shards.plans[upTo]
		d.pay = append(d.pay, of.pay...)
		d.Records, d.Owe = slices.Concat(d.Records, of.Records, plans.Records), slices.Concat(d.Owe, of.Owe, plans.Owe)
		if sh := r.e.memory.Shard(upTo); r.of.Has(upTo) {
			marks = append(marks, engine.Mark{Shard: upTo, Fence: sh.Fence, W: r.mark(upTo)})
		}
	}
	return d, marks, upTo
}

// fromPlan decides the dues of candidates.
func (r *recovery) fromPlan(ctx context.Context, cs []engine.Candidate) error {
	var ids, load []engine.TimerID
	var defs [][]byte
	s := &r.shards
	for _, c := range cs {
		switch i := c.ID.Shard(); {
		case i < s.from || i >= s.until:
		case c.Definition != nil:
			ids, defs = append(ids, c.ID), append(defs, slices.Clone(c.Definition)) // the page is its reader's again
		case c.Due > r.watermark(c.ID):
			load = append(load, c.ID)
		}
	}
	loaded, err := r.e.cfg.Cold.Load(ctx, load)
	if err != nil {
		return err
	}
	ids = append(ids, load...)
	for i, b := range append(defs, loaded...) {
		if b == nil {
			continue
		}
		t, err := engine.DecodeTimer(b)
		if err != nil {
			r.e.leaveOut(ids[i], err)
			continue
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
	w, mark := r.watermark(t.ID), r.mark(shard)
	d := &r.shards.plans[shard]
	was := len(d.Records) + len(d.Owe)
	ranges := r.rangesOf(t)
	if d.Now, d.RangedFrom = r.now, 0; len(ranges) > 0 {
		d.RangedFrom = ranges[0].Key.Due
	}
	over := r.over(t, ranges)
	for _, k := range r.touchedOf(t.ID) {
		if _, ok := r.begun[k]; ok && w < k.Due && k.Due <= mark && !r.owed[k] && !ranged(ranges, k.Due) && p.Has(k.Due) {
			r.again(d, t, k)
		}
	}
	open := over.Open(p, w, r.now)
	if r.e.memory.IsGated(t) {
		open = r.hold(d, t, p, open)
	}
	d.Judge(t, p, open, r.e.memory.PausedFrom(t))
	if len(ranges) == 0 { // else they were owed with what is left of it
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

// over are the dues of a timer that are not to be decided by its plan: the journal, a
// record or a row has them, or they lie in a range, which was decided before.
func (r *recovery) over(t *engine.Timer, ranges []engine.Owed) (over policy.Spans) {
	for _, k := range r.touchedOf(t.ID) {
		over = append(over, [2]int64{k.Due, k.Due})
	}
	over = append(over, r.recorded[t.ID]...)
	for _, o := range ranges {
		over = append(over, [2]int64{o.Key.Due, o.To})
	}
	return over.Ordered()
}

// definitions reads timers in the order of ids; a missing one is nil. Those that cannot be
// read are left out, and told of: what is owed of them stays.
func (r *recovery) definitions(ctx context.Context, ids []engine.TimerID) (ts []*engine.Timer, unread map[engine.TimerID]error, err error) {
	if ts, unread, err = r.e.Definitions(ctx, ids); err != nil {
		return nil, nil, err
	}
	for id, err := range unread {
		r.e.leaveOut(id, err)
	}
	return ts, unread, nil
}

// keepBusy notes a row of a task that is under way: its timer is busy, which
// must be known before anything of it fires.
func (r *recovery) keepBusy(o engine.Owed) { r.busy = append(r.busy, o) }

// judge settles rows that may have been sent at most once, and gives those that
// were never tried to the misfire policy. What is decided of a row stays together; of a
// timer there may be more than fits into one transaction.
func (r *recovery) judge(ctx context.Context, t *engine.Timer, os []engine.Owed) error {
	held := int64(engine.MaxDue)
	if t != nil {
		held = r.e.memory.PausedFrom(t)
	}
	for i, o := range os {
		if err := r.flushMany(ctx); err != nil {
			return err
		}
		d := r.place(o.Key.Timer, o.Key.Due)
		switch {
		case t == nil || t.Generation != o.Generation: // it has ended
		case o.Begun && t.Delivery == engine.AtMostOnce && o.NotBefore <= r.now: // until then the node that made the call may tell its result, see resident.Learn
			d.pay = append(d.pay, o.Key)
			r.unknown(&d.Triage, t, o.Key, o.Origin, o.Task)
		case o.Begun:
			r.d.Owe = append(r.d.Owe, o) // again at once
			r.keepBusy(o)
		case o.Key.Due >= held:
		case t.Schedule.OneShot() && r.now-o.Key.Due <= t.Misfire.Window.Milliseconds():
		case r.now-o.Key.Due > t.Misfire.Window.Milliseconds():
			d.pay = append(d.pay, o.Key)
			d.Records = append(d.Records, policy.NotCalled(t, o.Key.Due, engine.Missed, engine.ReasonWindow, r.now))
		case t.Misfire.Policy == engine.MisfireSkip, t.Misfire.Policy == engine.MisfireLatest && r.overtaken(t, os[i+1:], o.Key.Due):
			d.pay = append(d.pay, o.Key)
			d.Records = append(d.Records, policy.NotCalled(t, o.Key.Due, engine.Skipped, engine.ReasonMisfire, r.now))
		}
	}
	return r.flushMany(ctx)
}

// ended brings a row to where the journal has its task.
func (r *recovery) ended(o engine.Owed, t *engine.Task) {
	if t.Status.Final() {
		r.d.pay = append(r.d.pay, o.Key)
	} else {
		r.retry(&r.d, t, o.Generation, o.Lane)
		r.keepBusy(engine.Owed{Key: o.Key, Generation: o.Generation, Origin: t.Origin, NotBefore: t.NotBefore, Task: t})
	}
	r.record(t, true)
	delete(r.finished, o.Key)
}

// retry owes a task that was waiting for its next attempt.
func (r *recovery) retry(d *decisions, t *engine.Task, generation uint32, lane engine.Lane) {
	d.Owe = append(d.Owe, engine.Owed{
		Key: t.Key, Generation: generation, Origin: t.Origin, NotBefore: max(t.NotBefore, t.Key.Due), Lane: lane, Task: t,
	})
}

// isPassed reports whether the watermark w has passed the due of a task whose end the journal has, and no row of
// the due is left.
func (r *recovery) isPassed(t *engine.Task, w int64) bool {
	return t.Status.Final() && t.Key.Due <= w && !ranged(r.ranges[t.Key.Timer], t.Key.Due)
}

// fromPassed stores the ends of tasks whose dues are passed. The cold tier has what became of such a due, or
// has lost it with a commit, or was to get it with the rest of a settle in pieces. But another owner that moved the
// watermark may have decided the due in a run, beside which a record of one due would count twice: a node that was
// suspended notes ends later than that, and what a former life had not settled stays among the records that the journal
// keeps. So a due in a run gets no record.
//
// Such results are many: one call that runs holds all later records in the journal, the results of some 10 s.
func (r *recovery) fromPassed(ctx context.Context, passed []*engine.Task) error {
	slices.SortFunc(passed, func(a, b *engine.Task) int {
		return cmp.Or(cmp.Compare(a.Key.Timer, b.Key.Timer), cmp.Compare(a.Key.Due, b.Key.Due))
	})
	for ts := range slices.Chunk(passed, page) {
		untold, err := r.e.Untold(ctx, ts)
		if err != nil {
			return err
		}
		for _, t := range untold {
			r.record(t, false)
		}
		if err := r.flushMany(ctx); err != nil {
			return err
		}
	}
	return nil
}
