package change

import (
	"context"
	"errors"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/resident"
)

// rowsOf reads the rows that a change takes along: the first Config.Rows, and those of dues that
// are yet to come, by a clock that was set back, for the next generation may have the
// same. more: others are left to memory.Former.
func (e *Maker) rowsOf(ctx context.Context, id engine.TimerID, upTo int64) (rows []engine.Owed, more bool, err error) {
	limit := e.cfg.Rows
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
// memory that has a row is left to retire. A row that an earlier change left is cancelled as
// that change says. waited reports whether there was any due that waited.
func (e *Maker) cancel(ctx context.Context, c *engine.Change, end *policy.Ending, rows []engine.Owed, read *resident.Read) (inFlight int, waited bool, err error) {
	t := end.Former
	isFormer := func(o engine.Owed) bool { return o.Generation != t.Generation && o.Damaged == nil }
	var l *engine.Life
	if slices.ContainsFunc(rows, isFormer) {
		if l, err = e.VersionHistory(ctx, t.ID); err != nil {
			return 0, false, err
		}
	}
	for i := range rows {
		if rows[i].To == 0 && e.memory.Had(rows[i].Key, read) || e.memory.IsShared(rows[i].Key) {
			continue
		}
		of := end
		if isFormer(rows[i]) {
			former, _ := policy.EndingOf(l, rows[i].Generation)
			of = &former
		}
		recs, err := e.EndOf(ctx, of, &rows[i])
		if err != nil {
			return 0, false, err
		}
		c.Pay, c.Tasks = append(c.Pay, rows[i].Key), append(c.Tasks, recs...)
	}
	p, err := plan.Of(t)
	if err != nil { // see leaveOut: it has no dues, and it must be possible to delete it
		p = plan.Plan{}
	}
	inFlight, waited = e.memory.Cancel(c, end, &p)
	return inFlight, waited, nil
}

// syncEnds waits until the journal has what ended of a timer and is not settled: no
// plan will derive it any more, should a crash take it away. Of a node it is stored, for
// whoever takes the shard over does not have its journal; a settle stores it once more.
func (e *Maker) syncEnds(ctx context.Context, id engine.TimerID) error {
	if ends := e.memory.Ends(id); len(ends) > 0 {
		return e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node, Replayed: true, Tasks: ends})
	}
	if next := e.journal.Next(); e.memory.IsUnsettled(id) && next > 0 {
		return e.journal.Sync(ctx, next-1)
	}
	return nil
}

// EndOf are the records of a row whose generation has ended. A due that was yet to
// come, by a clock that was set back, has none.
func (e *Maker) EndOf(ctx context.Context, end *policy.Ending, o *engine.Owed) ([]*engine.Task, error) {
	switch {
	case o.Damaged != nil:
		return e.endOfDamaged(ctx, end, o)
	case o.To == 0 && (o.Key.Due <= end.UpTo || o.Used()):
		return []*engine.Task{end.Cancelled(o)}, nil
	case o.To == 0, end.Former == nil:
		return nil, nil
	}
	p, err := plan.Of(end.Former)
	if err != nil { // see leaveOut
		return nil, nil
	}
	to := min(o.To, end.UpTo)
	own := e.memory.TaskDues(o.Key.Timer, o.Key.Due-1, to) // first: what leaves memory was stored before
	stored, err := e.OwnDues(ctx, *o, to)
	if err != nil {
		return nil, err
	}
	own = append(own, stored...)
	return e.memory.CancelledDues(end, &p, o.Key.Due-1, to, own), nil
}

// endOfDamaged are the records of a row that cannot be read, whose generation has ended. If
// history has the end of the task, the row was of a call by hand after that, and the record
// stays; else it has what is known of the task, or nothing.
func (e *Maker) endOfDamaged(ctx context.Context, end *policy.Ending, o *engine.Owed) ([]*engine.Task, error) {
	was, err := e.Task(ctx, o.Key)
	row := engine.Owed{Key: o.Key, Task: was}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		if row.Task = nil; end.Former != nil {
			row.Generation = end.Former.Generation
		}
	case err != nil && !errors.As(err, new(*engine.Damage)):
		return nil, err
	case err != nil || was.Status.Final():
		return nil, nil
	}
	return []*engine.Task{end.Cancelled(&row)}, nil
}
