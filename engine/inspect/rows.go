package inspect

import (
	"context"

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
// ends), in any order.
func (r *Reader) EndedDues(ctx context.Context, id engine.TimerID, generation uint32, from, to int64) (s policy.Spans, err error) {
	f := engine.TaskFilter{Timer: id, From: from, To: to + 1}
	for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
		var ts []*engine.Task
		if ts, before, err = r.cfg.Cold.Tasks(ctx, f, before, 1000); err != nil {
			return nil, err
		}
		for _, t := range ts {
			if policy.Ends(t, generation) {
				s = append(s, [2]int64{t.Key.Due, max(t.Key.Due, t.DueLast)})
			}
		}
	}
	return s, nil
}

// Spent are the dues of a timer's plan in (after, to] that are spent.
func (r *Reader) Spent(ctx context.Context, t *engine.Timer, p *plan.Plan, after, to int64) (policy.Spans, error) {
	s := r.memory.Used(t.ID, after, to) // first: a task that leaves memory is stored by then
	done, err := r.EndedDues(ctx, t.ID, t.Generation, after+1, to)
	if err != nil {
		return nil, err
	}
	rows, err := r.RowsOf(ctx, t.ID)
	for i := range rows {
		if o := &rows[i]; o.To == 0 && (o.Used() || o.Generation == t.Generation) {
			done = append(done, [2]int64{o.Key.Due, o.Key.Due})
		}
	}
	return append(s, done...).Joined(p), err
}
