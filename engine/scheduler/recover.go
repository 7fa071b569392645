package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// recovery is what a start finds, or a node that gains shards (gain.go): what the former
// process left, put together from the journal and the cold tier, decided, and settled
// before anything is sent.
//
//	journal,  finished                       → history (and owed, when it is to be tried again)
//	mirror    begun, at_most_once            → unknown: it may have been sent
//	plan      dues in (W, now], not finished → late ≤ 10 s: owed, called again as redelivered
//	                                           later: by the misfire policy; from the instant of a
//	                                           pause on that is in force: owed, and held
//	owed      rows                           → as they stand; the rest as above
//	          … of one-shots not begun yet   → not looked at: judged when their turn comes
//	then W = now, in one transaction with all that was decided of dues later than W.
//
// The clock may have been set back since: then the journal has dues that are later than now. W goes up to the last of
// them in its shard, so that none comes again, and what else lies up to there is owed, singly or as a range (see rewind.go).
type recovery struct {
	e             *Scheduler
	of            engine.Set // the shards that it is for
	clean         engine.Set // those of them that were given, see engine.Holding
	now           int64
	newest        int64                            // the newest watermark that was found and is past, see lived
	former                                         // what it finds in the journal; what is dealt with is taken out
	rows          map[engine.TimerID]rowsFound     // of the timers whose definitions are to be looked at
	strays        []engine.TimerID                 // timers with overlap queue that have rows in another lane than theirs
	late          map[engine.TimerID][]engine.Owed // rows that may be misfires, or were begun
	owed          map[engine.Key]bool              // rows later than the watermark: a recovery was cut short
	busy          []engine.Owed                    // rows of tasks that are under way; see keepEarly
	early         []engine.Owed                    // those that have to be in memory before the first fire
	ranges        map[engine.TimerID][]engine.Owed // rows that are ranges
	recorded      map[engine.TimerID]policy.Spans  // dues later than the watermark that are recorded as not called
	keys          map[engine.Key]bool              // of rows that are not ranges, from now on
	reach         [engine.Shards]int64             // the last due in the journal, where that is later than now
	touched       []engine.Key                     // keys of the journal and of rows, by timer and due
	d             decisions                        // on dues up to the watermark; see place
	outdated      map[engine.TimerID]*engine.Timer // timers that have rows of former generations, as they stand; nil: gone
	shards        shardDecisions                   // on dues later than the watermark
	records       []engine.Record
	owing, judged int // what was stored, for the log
}

// recoverShards brings the tiers to the present, as far as some shards are concerned, and
// leaves all that is unfinished in owed. found is how the shards stand since they were
// taken, and j what the former process of this node left of them in its journal: the
// recovery takes out of j what it has dealt with.
func (e *Scheduler) recoverShards(ctx context.Context, of, clean engine.Set, found []engine.Shard, j former) (*recovery, error) {
	started := time.Now()
	r := &recovery{
		e: e, of: of, clean: clean, now: e.now(), former: j, late: map[engine.TimerID][]engine.Owed{}, rows: map[engine.TimerID]rowsFound{}, owed: map[engine.Key]bool{},
		ranges: map[engine.TimerID][]engine.Owed{}, recorded: map[engine.TimerID]policy.Spans{}, keys: map[engine.Key]bool{}, outdated: map[engine.TimerID]*engine.Timer{},
	}
	lowest := r.now
	for i := range of.All() {
		e.memory.Own(i, found[i])
		w := found[i].Watermark
		if lowest = min(lowest, w); w <= r.now {
			r.newest = max(r.newest, w)
		}
	}
	r.see()
	if err := r.fromOwed(ctx); err != nil {
		return nil, fmt.Errorf("cannot go through what is owed: %w", err)
	}
	r.touch()
	if err := r.fromJournal(ctx); err != nil {
		return nil, fmt.Errorf("cannot go through the journal: %w", err)
	}
	if err := r.changeLanes(ctx); err != nil {
		return nil, fmt.Errorf("cannot store what is owed in other lanes: %w", err)
	}
	if err := r.fromRecords(ctx, lowest); err != nil {
		return nil, fmt.Errorf("cannot go through what was recorded last: %w", err)
	}
	if err := r.fromPlans(ctx, lowest); err != nil {
		return nil, fmt.Errorf("cannot go through what was due: %w", err)
	}
	for i := range of.All() {
		e.memory.Mark(i, r.mark(i), r.now, clean.Has(i))
	}
	for id, t := range r.outdated { // not before: a stage ends them that may be running
		e.memory.Former.End(id, nil, t, r.now)
	}
	if err := r.keepEarly(ctx); err != nil {
		return nil, fmt.Errorf("cannot see which timers are busy: %w", err)
	}
	e.log.Info("recovered", "took", time.Since(started).Round(time.Millisecond),
		"journal_finished", len(r.finished), "owed", r.owing, "not_called", r.judged)
	return r, nil
}

// mark is the watermark that a shard will have.
func (r *recovery) mark(shard int) int64 {
	return max(r.e.memory.Shard(shard).Watermark, r.now, r.reach[shard])
}

// watermark is that of a timer's shard as it was found.
func (r *recovery) watermark(id engine.TimerID) int64 { return r.e.memory.Shard(id.Shard()).Watermark }

// fromOwed brings rows up to date with what the journal knows of them. Rows of
// which it knows nothing stay; the misfire policy then judges those that were
// never tried.
func (r *recovery) fromOwed(ctx context.Context) error {
	err := r.e.cfg.Cold.Owed(ctx, r.of, -1, engine.MaxDue, func(os []engine.Owed) error {
		for _, o := range os {
			r.sort(o)
			if err := r.flushMany(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(r.rows)), page) {
		ts, unread, err := r.definitions(ctx, ids)
		if err != nil {
			return err
		}
		for i, t := range ts {
			if unread[ids[i]] != nil {
				continue
			}
			if t == nil || r.rows[ids[i]].oldest < t.Generation {
				r.outdated[ids[i]] = t
			}
			if t != nil && t.Overlap == engine.OverlapQueue && r.rows[t.ID].lane != t.Lane() {
				r.strays = append(r.strays, t.ID)
			}
			os, err := r.judgeFormer(ctx, ids[i], t, r.late[ids[i]])
			if err != nil {
				return err
			}
			if err := r.judge(ctx, t, os); err != nil {
				return err
			}
		}
	}
	return nil
}

// row sorts one row.
func (r *recovery) row(o engine.Owed) {
	if o.To != 0 {
		r.found(&o)
		r.ranges[o.Key.Timer] = append(r.ranges[o.Key.Timer], o)
		return
	}
	if o.Key.Due >= r.now {
		r.keys[o.Key] = true
	}
	if shard := o.Key.Timer.Shard(); o.Begun && o.Key.Due > r.now {
		r.reach[shard] = max(r.reach[shard], o.Key.Due)
	}
	if o.Key.Due > r.watermark(o.Key.Timer) {
		r.owed[o.Key] = true
	}
	t := r.finished[o.Key]
	if o.Task != nil {
		r.hasEnded(o.Task)
	}
	if _, begun := r.begun[o.Key]; begun {
		r.unended(o, t)
		return
	}
	if t == nil && o.OneShot && o.Task == nil && !o.Begun {
		return // it waits, and is judged when its turn comes
	}
	r.found(&o)
	switch {
	case t != nil && precedes(t, &o):
		delete(r.finished, o.Key)
	case t != nil:
		r.ended(o, t)
		return
	}
	switch {
	case o.Begun || r.isMisfire(&o):
		r.late[o.Key.Timer] = append(r.late[o.Key.Timer], o)
	case o.Task != nil && len(o.Task.Attempts) > 0:
		r.keepBusy(o)
	}
}

// isMisfire reports whether a row is of a due that was never tried, and is late without
// anybody's will: one that was held, or whose shard was given, waited for its turn.
func (r *recovery) isMisfire(o *engine.Owed) bool {
	return o.Task == nil && o.Origin == engine.FromSchedule && r.now-o.Key.Due > policy.MisfireAfter &&
		o.Held == 0 && !r.clean.Has(o.Key.Timer.Shard())
}

// precedes reports whether a record is of an attempt from before the row: of an end before the
// redrive that the row is of; or, where later records are missing, of an attempt before the
// last one that the row knows, or before the one that may have been sent.
func precedes(t *engine.Task, o *engine.Owed) bool {
	if o.Task != nil && t.Base < o.Task.Base || engine.RankOf(t).Below(engine.RankOf(o.Task)) {
		return true
	}
	return o.Begun && !t.Status.Final() && t.LastAttempt() <= engine.RankOf(o.Task).Attempt
}

// unended sorts a row whose last attempt has no end. What the journal has of earlier ones,
// t if it has, goes into the row.
func (r *recovery) unended(o engine.Owed, t *engine.Task) {
	r.found(&o)
	if t != nil && (o.Task == nil || t.LastAttempt() > o.Task.LastAttempt()) {
		o.Task = t
	}
	delete(r.finished, o.Key)
	delete(r.begun, o.Key)
	o.Begun = true
	r.late[o.Key.Timer] = append(r.late[o.Key.Timer], o)
}

// found notes that the definition of a row is to be looked at.
func (r *recovery) found(o *engine.Owed) {
	x, ok := r.rows[o.Key.Timer]
	if !ok {
		x = rowsFound{o.Generation, o.Lane}
	} else if x.oldest = min(x.oldest, o.Generation); x.lane != o.Lane {
		x.lane = 0
	}
	r.rows[o.Key.Timer] = x
}

// judgeFormer ends the rows that were begun under a definition that is not in force any
// more: they may have been sent, and are not repeated. The rest is returned.
func (r *recovery) judgeFormer(ctx context.Context, id engine.TimerID, t *engine.Timer, os []engine.Owed) (rest []engine.Owed, err error) {
	isFormer := func(o engine.Owed) bool { return o.Begun && (t == nil || t.Generation != o.Generation) }
	if !slices.ContainsFunc(os, isFormer) {
		return os, nil
	}
	l, err := r.e.VersionHistory(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, o := range os {
		if !isFormer(o) {
			rest = append(rest, o)
			continue
		}
		d := r.place(id, o.Key.Due)
		d.pay = append(d.pay, o.Key)
		end, _ := policy.EndingOf(l, o.Generation)
		ended := end.Cancelled(&o)
		ended.Ended = r.now // as a reader that comes back finds it
		d.Records = append(d.Records, ended)
	}
	return rest, nil
}

// overtaken reports whether a later misfire of the timer will be called in place of
// this one: a row, or a due of the plan that is still to be decided.
func (r *recovery) overtaken(t *engine.Timer, rest []engine.Owed, due int64) bool {
	for _, o := range rest {
		if o.Key.Due > due && o.Generation == t.Generation && !o.Begun {
			return true
		}
	}
	p, err := plan.Of(t)
	if err != nil {
		return false
	}
	w := r.watermark(t.ID)
	next, ok := p.Next(max(w, due))
	return ok && next < r.now-policy.MisfireAfter
}

// fromJournal takes what is left of the journal: results that were not settled.
func (r *recovery) fromJournal(ctx context.Context) error {
	var passed []*engine.Task
	for k, t := range r.finished {
		if _, ok := r.begun[k]; ok {
			continue // a later attempt has no end: the plan decides
		}
		switch w := r.watermark(k.Timer); {
		case r.isPassed(t, w):
			if len(t.Attempts) > 0 { // an end without a call tells nothing
				passed = append(passed, t)
			}
		case t.Status.Final():
			r.record(t, false)
		case slices.ContainsFunc(r.ranges[k.Timer], func(o engine.Owed) bool { return o.Key == k }): // fromRange stores its row in place of the range
		case k.Due > w:
			r.retry(&r.d, t, t.Generation, 0)
			r.keepBusy(engine.Owed{Key: k, Generation: t.Generation, Origin: t.Origin, NotBefore: t.NotBefore, Task: t})
			r.record(t, false)
		}
		if err := r.flushMany(ctx); err != nil {
			return err
		}
	}
	return r.fromPassed(ctx, passed)
}

// flushMany is flush of what is much for one transaction, and keepEarly of what is much for memory.
func (r *recovery) flushMany(ctx context.Context) error {
	if len(r.busy) >= page {
		if err := r.keepEarly(ctx); err != nil {
			return err
		}
	}
	if r.d.size() > r.e.pieces.of(maxDecided) {
		return r.flush(ctx)
	}
	return nil
}

// record has what the journal tells of a task stored; kept: see Record.
func (r *recovery) record(t *engine.Task, kept bool) {
	r.records = append(r.records, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.EncodeTask(t), Kept: kept})
}

// unknown is the end of an at_most_once task that may have been sent.
func (r *recovery) unknown(d *policy.Triage, t *engine.Timer, k engine.Key, origin engine.Origin, was *engine.Task) {
	rec := policy.NotCalled(t, k.Due, engine.Unknown, engine.ReasonMayHaveBeen, r.now)
	rec.DueLast, rec.Count, rec.Origin = 0, 0, origin
	if was != nil {
		rec.Attempts, rec.Holds, rec.Origin, rec.Lateness = was.Attempts, was.Holds, was.Origin, was.Lateness
	}
	policy.PerhapsSent(rec)
	d.Records = append(d.Records, rec)
}

// keepEarly keeps those of the busy rows for whose tasks others of the timer wait. The rest stay in the cold tier: a
// million tasks that wait for a retry have 3.5 KB each, with the responses of three attempts.
func (r *recovery) keepEarly(ctx context.Context) error {
	if len(r.busy) == 0 {
		return nil
	}
	ids := make([]engine.TimerID, len(r.busy))
	for i := range r.busy {
		ids[i] = r.busy[i].Key.Timer
	}
	ts, _, err := r.definitions(ctx, ids)
	if err != nil {
		return err
	}
	for i, t := range ts {
		if t != nil && r.e.memory.KeepsTurn(t, &r.busy[i]) {
			r.early = append(r.early, r.busy[i])
		}
	}
	clear(r.busy)
	r.busy = r.busy[:0]
	return nil
}

// flush stores what was decided so far of rows and of the journal, and moves no watermark. What the journal tells of
// ends goes first, in pieces: the next start would find it, and store the same. The rest is one transaction: a row may
// be paid and owed again, and stands then.
func (r *recovery) flush(ctx context.Context) error {
	if len(r.records) > 0 {
		if err := r.e.settlePieces(ctx, &engine.Settlement{Owner: r.e.cfg.Node, Replayed: true, Tasks: r.records}); err != nil {
			return err
		}
	}
	d := r.d
	r.records, r.d = nil, decisions{}
	return r.store(ctx, &d, nil)
}

// store stores decisions in one transaction.
func (r *recovery) store(ctx context.Context, d *decisions, marks []engine.Mark) error {
	err := r.e.cfg.Cold.Settle(ctx, &engine.Settlement{
		Owner: r.e.cfg.Node, Replayed: true, Tasks: records(d.Records), Owe: d.Owe, Pay: d.pay, Marks: marks,
	})
	r.e.pieces.heard(d.size(), err)
	if err != nil {
		return err
	}
	r.e.tally.Found(d.Records, r.e.now())
	r.owing, r.judged = r.owing+len(d.Owe), r.judged+len(d.Records)
	return nil
}
