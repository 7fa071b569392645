package scheduler

import (
	"context"

	"xtimer/engine"
)

// rowAt is the row under a key, nil for none.
func (e *Scheduler) rowAt(ctx context.Context, k engine.Key) (*engine.Owed, error) {
	rows, err := e.cfg.Cold.OwedPage(ctx, k.Timer, k.Due-1, 1)
	if err != nil || len(rows) == 0 || rows[0].Key != k {
		return nil, err
	}
	return &rows[0], nil
}

// isTaken reports whether a key is or was a task's, or has a row.
func (e *Scheduler) isTaken(ctx context.Context, k engine.Key) (bool, error) {
	if o, err := e.rowAt(ctx, k); o != nil || err != nil {
		return o != nil, err
	}
	return e.known(ctx, k)
}

// rowsOfTimer reads all rows of a timer.
func (e *Scheduler) rowsOfTimer(ctx context.Context, id engine.TimerID) (rows []engine.Owed, err error) {
	err = e.eachRow(ctx, id, -1, func(o *engine.Owed) bool {
		rows = append(rows, *o)
		return true
	})
	return rows, err
}

// eachRow reads the rows of a timer that are later than after, in order, until f is
// content.
func (e *Scheduler) eachRow(ctx context.Context, id engine.TimerID, after int64, f func(*engine.Owed) (more bool)) error {
	for {
		rows, err := e.cfg.Cold.OwedPage(ctx, id, after, page)
		if err != nil {
			return err
		}
		for i := range rows {
			if !f(&rows[i]) {
				return nil
			}
		}
		if len(rows) < page {
			return nil
		}
		after = rows[page-1].Key.Due
	}
}
