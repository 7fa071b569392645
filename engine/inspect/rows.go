package inspect

import (
	"context"
	"maps"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// RowAt is the row under a key, nil for none.
func (r *Reader) RowAt(ctx context.Context, k engine.Key) (*engine.Owed, error) {
	rows, err := r.cfg.Cold.OwedPage(ctx, k.Timer, k.Due-1, 1)
	if err != nil || len(rows) == 0 || rows[0].Key != k {
		return nil, err
	}
	return &rows[0], nil
}

// RowsOf reads all rows of a timer.
func (r *Reader) RowsOf(ctx context.Context, id engine.TimerID) (rows []engine.Owed, err error) {
	err = r.EachRow(ctx, id, -1, func(o *engine.Owed) bool {
		rows = append(rows, *o)
		return true
	})
	return rows, err
}

// rowsAtOnce is how many rows are read at a time.
const rowsAtOnce = 512

// EachRow reads the rows of a timer that are later than after, in order, until f is
// content.
func (r *Reader) EachRow(ctx context.Context, id engine.TimerID, after int64, f func(*engine.Owed) (more bool)) error {
	for {
		rows, err := r.cfg.Cold.OwedPage(ctx, id, after, rowsAtOnce)
		if err != nil {
			return err
		}
		for i := range rows {
			if !f(&rows[i]) {
				return nil
			}
		}
		if len(rows) < rowsAtOnce {
			return nil
		}
		after = rows[rowsAtOnce-1].Key.Due
	}
}

// EndedDues reads which dues of a timer in [from, to] a record ends for a generation (see
// ends), in any order. A record that cannot be read ends its due. A run that begins before from is not
// found: no range begins in the middle of one, see BehindRun.
func (r *Reader) EndedDues(ctx context.Context, id engine.TimerID, generation uint32, from, to int64) (s policy.Spans, err error) {
	err = r.EachRecord(ctx, engine.TaskFilter{Timer: id, From: from, To: to + 1}, func(t *engine.Task, damaged bool) {
		if damaged || policy.Ends(t, generation) {
			s = append(s, [2]int64{t.Key.Due, max(t.Key.Due, t.DueLast)})
		}
	})
	return s, err
}

// EachRecord goes through the records of a filter, in any order. Of a damaged record only the key is known.
func (r *Reader) EachRecord(ctx context.Context, filter engine.TaskFilter, f func(t *engine.Task, damaged bool)) error {
	for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
		ts, next, err := r.cfg.Cold.Tasks(ctx, filter, before, 1000)
		d := engine.DamagedRecord(err, before)
		if d != nil {
			ts, next, err = []*engine.Task{{Key: d.Key}}, d.Key, nil
		}
		if err != nil {
			return err
		}
		before = next
		for _, t := range ts {
			f(t, d != nil)
		}
	}
	return nil
}

// RunBefore is the record of a run of dues that begins at or before the instant and goes
// on after it, or nil. Records that cannot be read are left out.
func (r *Reader) RunBefore(ctx context.Context, id engine.TimerID, at int64) (*engine.Task, error) {
	for before := (engine.Key{}); ; {
		ts, next, err := r.cfg.Cold.Tasks(ctx, engine.TaskFilter{Timer: id, To: at + 1}, before, 10)
		if d := engine.DamagedRecord(err, before); d != nil {
			ts, next, err = nil, d.Key, nil
		}
		if err != nil {
			return nil, err
		}
		for _, t := range ts {
			if t.DueLast > at {
				return t, nil
			}
			if t.Origin == engine.FromSchedule {
				return nil, nil
			}
		}
		if before = next; before == (engine.Key{}) {
			return nil, nil
		}
	}
}

// RunsIn are the runs of a timer's dues, as records tell of them, that reach into [from, to].
func (r *Reader) RunsIn(ctx context.Context, id engine.TimerID, from, to int64) (s policy.Spans, err error) {
	run, err := r.RunBefore(ctx, id, from-1)
	if err != nil {
		return nil, err
	}
	if run != nil {
		s = append(s, [2]int64{run.Key.Due, run.DueLast})
	}
	err = r.EachRecord(ctx, engine.TaskFilter{Timer: id, From: from, To: to + 1}, func(t *engine.Task, _ bool) {
		if t.DueLast > t.Key.Due {
			s = append(s, [2]int64{t.Key.Due, t.DueLast})
		}
	})
	return s.Ordered(), err
}

// Untold are those of the tasks, all of which have ended, that no record tells of: neither one under the key that
// says as much, nor that of a run of dues. It reads the former of many tasks at once, and runs only of the timers
// of which a task has no record.
func (r *Reader) Untold(ctx context.Context, ended []*engine.Task) (untold []*engine.Task, err error) {
	keys := make([]engine.Key, len(ended))
	for i, t := range ended {
		keys[i] = t.Key
	}
	ranks, err := r.cfg.Cold.Ranks(ctx, keys)
	if err != nil {
		return nil, err
	}
	without := map[engine.TimerID][]*engine.Task{}
	for i, t := range ended {
		switch {
		case ranks[i] == engine.Rank{}:
			without[t.Key.Timer] = append(without[t.Key.Timer], t)
		case !ranks[i].Run && ranks[i].Below(engine.RankOf(t)):
			untold = append(untold, t)
		}
	}
	ids := slices.Collect(maps.Keys(without))
	defs, err := r.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		outside, err := r.outsideRuns(ctx, defs[i], without[id])
		if err != nil {
			return nil, err
		}
		untold = append(untold, outside...)
	}
	return untold, nil
}

// outsideRuns are those tasks of a timer whose dues are in no run that a record tells of.
func (r *Reader) outsideRuns(ctx context.Context, definition []byte, ts []*engine.Task) ([]*engine.Task, error) {
	if definition != nil {
		def, err := engine.DecodeTimer(definition)
		if err == nil && def.Schedule.OneShot() && len(ts) == 1 && ts[0].Generation == def.Generation {
			return ts, nil // it has one due
		}
	}
	first, last := ts[0].Key.Due, ts[0].Key.Due
	for _, t := range ts {
		first, last = min(first, t.Key.Due), max(last, t.Key.Due)
	}
	runs, err := r.RunsIn(ctx, ts[0].Key.Timer, first, last)
	return slices.DeleteFunc(ts, func(t *engine.Task) bool { return runs.Has(t.Key.Due) }), err
}

// BehindRun is the end of the run of dues that a record ends and that an instant lies in, else the instant. A
// range begins there whose timer goes on in the middle of such a run: the clock was set forward and back.
func (r *Reader) BehindRun(ctx context.Context, t *engine.Timer, at int64) (int64, error) {
	run, err := r.RunBefore(ctx, t.ID, at)
	if err == nil && run != nil && policy.Ends(run, t.Generation) {
		at = run.DueLast
	}
	return at, err
}

// Spent are the dues of a timer's plan in (after, to] that are spent.
func (r *Reader) Spent(ctx context.Context, t *engine.Timer, p *plan.Plan, after, to int64) (policy.Spans, error) {
	s, err := r.openDues(ctx, t.ID, t.Generation, after, to)
	if err != nil {
		return nil, err
	}
	done, err := r.EndedDues(ctx, t.ID, t.Generation, after+1, to)
	return append(s, done...).Joined(p), err
}

// OverDues are the dues of a timer in (after, to] that an enable does not catch up: they have a record, or an open
// task whose key may have been sent. Either comes from a clock that was set back, or from a retry by hand.
func (r *Reader) OverDues(ctx context.Context, id engine.TimerID, after, to int64) (policy.Spans, error) {
	s, err := r.openDues(ctx, id, 0, after, to)
	if err != nil {
		return nil, err
	}
	done, err := r.EndedDues(ctx, id, 0, after+1, to)
	return append(s, done...).Ordered(), err
}

// openDues are the dues of a timer in (after, to] with an open task of the generation (0: of none), or with one whose key
// may have been sent. A caller reads them before the records: a task that has left memory has a row, and one whose row is
// gone has its record.
func (r *Reader) openDues(ctx context.Context, id engine.TimerID, generation uint32, after, to int64) (policy.Spans, error) {
	s := r.memory.Used(id, after, to)
	err := r.EachRow(ctx, id, after, func(o *engine.Owed) bool {
		due := o.Key.Due
		if o.To == 0 && due <= to && (o.Used() || o.Generation == generation) {
			s = append(s, [2]int64{due, due})
		}
		return due < to
	})
	return s, err
}

// OwnDues are the dues of a range up to the instant that have a final record or a row.
func (r *Reader) OwnDues(ctx context.Context, o engine.Owed, to int64) (policy.Spans, error) {
	own, err := r.rowDues(ctx, o, to) // first: a due that has lost its row has a record
	if err != nil {
		return nil, err
	}
	ended, err := r.EndedDues(ctx, o.Key.Timer, o.Generation, o.Key.Due, to)
	own = append(own, ended...)
	return own.Ordered(), err
}

// StoredDues are OwnDues without those that memory knows, for a range that is not older than the
// process or its ownership of the shard. Of a range without end memory knows the dues with a record: the
// range begins behind them, or they are spent; unless the clock was set forward since it began.
func (r *Reader) StoredDues(ctx context.Context, o engine.Owed, to int64) (policy.Spans, error) {
	if r.knows(&o) {
		return r.rowDues(ctx, o, to)
	}
	return r.OwnDues(ctx, o, to)
}

// knows reports whether memory knows the dues of a range that have a record; see StoredDues.
func (r *Reader) knows(o *engine.Owed) bool {
	return o.To == engine.Endless && r.memory.Stepped.Load() < o.Key.Due
}

// waitingDues is how many dues of a range wait up to the instant: those without a record. Only a range without end
// has dues with a record that are not behind its first due, and only after a step of the clock (see StoredDues).
func (r *Reader) waitingDues(ctx context.Context, p *plan.Plan, o *engine.Owed, to int64) (n int64, err error) {
	to = min(o.To, to)
	if o.To != engine.Endless || r.knows(o) {
		return p.Count(o.Key.Due-1, to), nil
	}
	ended, err := r.EndedDues(ctx, o.Key.Timer, o.Generation, o.Key.Due, to)
	if err != nil {
		return 0, err
	}
	ended = ended.Ordered()
	for _, s := range ended.Open(p, o.Key.Due-1, to) {
		n += p.Count(s[0]-1, s[1])
	}
	return n, nil
}

// rowDues are the dues of a range up to the instant that have a row.
func (r *Reader) rowDues(ctx context.Context, o engine.Owed, to int64) (own policy.Spans, err error) {
	err = r.EachRow(ctx, o.Key.Timer, o.Key.Due-1, func(x *engine.Owed) bool {
		if x.To == 0 && x.Key.Due <= to {
			own = append(own, [2]int64{x.Key.Due, x.Key.Due})
		}
		return x.Key.Due < to
	})
	return own, err
}

// SpentOf are the spent dues of the range that is among new rows of a timer, if any.
func (r *Reader) SpentOf(ctx context.Context, t *engine.Timer, os []engine.Owed) (policy.Spans, error) {
	i := slices.IndexFunc(os, func(o engine.Owed) bool { return o.To != 0 })
	if i < 0 {
		return nil, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	return r.Spent(ctx, t, &p, os[i].Key.Due, os[i].To)
}

// DefinitionsOf reads the definitions of the timers of rows, as they are stored, nil for
// none, and the spent dues of the ranges among the rows that reach beyond now, by their keys.
// Each definition is read once, however many rows its timer has.
func (r *Reader) DefinitionsOf(ctx context.Context, os []engine.Owed, now int64) (defs map[engine.TimerID][]byte, spent map[engine.Key]policy.Spans, err error) {
	defs = make(map[engine.TimerID][]byte, len(os))
	for i := range os {
		defs[os[i].Key.Timer] = nil
	}
	ids := slices.Collect(maps.Keys(defs))
	stored, err := r.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for i, id := range ids {
		defs[id] = stored[i]
	}
	for i, o := range os {
		if o.To <= now || o.To == engine.Endless || defs[o.Key.Timer] == nil {
			continue
		}
		t, err := engine.DecodeTimer(defs[o.Key.Timer])
		if err != nil {
			continue // its row stays
		}
		s, err := r.SpentOf(ctx, t, os[i:i+1])
		if err != nil {
			return nil, nil, err
		}
		if spent == nil {
			spent = map[engine.Key]policy.Spans{}
		}
		spent[o.Key] = s
	}
	return defs, spent, nil
}

// VersionHistory reads what is kept of a timer; of one of which nothing is, that it is gone.
func (r *Reader) VersionHistory(ctx context.Context, id engine.TimerID) (*engine.Life, error) {
	ls, err := r.cfg.Cold.Lives(ctx, id-1, 1)
	if err != nil {
		return nil, err
	}
	if len(ls) == 1 && ls[0].ID == id {
		return &ls[0], nil
	}
	return &engine.Life{ID: id, Deleted: r.now()}, nil
}
