package scheduler

import (
	"context"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
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

// oweNow commits a row, takes it into memory and ends the claim of its timer,
// which it holds on to while the commit is in doubt.
func (e *Scheduler) oweNow(ctx context.Context, t *engine.Timer, o engine.Owed, release func()) error {
	err := e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node, Owe: []engine.Owed{o}})
	if err != nil && inDoubt(err) {
		e.process.Go(func(ctx context.Context) {
			if e.owes(ctx, o.Key) {
				if err := e.memory.AddStored(t, o); err != nil {
					e.log.Error("cannot take in a task; the next start will", "task", o.Key, "error", err)
				}
			}
			release()
		})
		return err
	}
	defer release()
	if err != nil {
		return err
	}
	return e.memory.AddStored(t, o)
}

// owes finds out whether a commit in doubt made a row, see resolve.
func (e *Scheduler) owes(ctx context.Context, k engine.Key) bool {
	for ctx.Err() == nil {
		if err := e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node}); err == nil {
			if o, err := e.rowAt(ctx, k); err == nil {
				return o != nil && o.To == 0
			}
		}
		process.Sleep(ctx, time.Second)
	}
	return false
}
