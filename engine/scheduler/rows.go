package scheduler

import (
	"context"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
)

// isTaken reports whether a key is or was a task's, or has a row.
func (e *Scheduler) isTaken(ctx context.Context, k engine.Key) (bool, error) {
	if o, err := e.RowAt(ctx, k); o != nil || err != nil {
		return o != nil, err
	}
	return e.HadTask(ctx, k)
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
			if o, err := e.RowAt(ctx, k); err == nil {
				return o != nil && o.To == 0
			}
		}
		process.Sleep(ctx, time.Second)
	}
	return false
}
