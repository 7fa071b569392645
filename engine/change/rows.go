package change

import (
	"context"

	"xtimer/engine"
)

// isTaken reports whether a key is or was a task's, or has a row.
func (e *Maker) isTaken(ctx context.Context, k engine.Key) (bool, error) {
	if o, err := e.RowAt(ctx, k); o != nil || err != nil {
		return o != nil, err
	}
	return e.HadTask(ctx, k)
}

// expects has tasks that are due later wait, where order is kept, for one that is requested now, until it is
// over.
func (e *Maker) expects(t *engine.Timer, now int64, over func()) func() {
	come := e.memory.Expect(t, &engine.Owed{NotBefore: now, Lane: t.Lane()})
	return func() {
		come()
		over()
	}
}

// oweNow commits a row, takes it into memory and ends the claim of its timer. The claim stays while the commit is in
// doubt. A record of the task of the row goes along: where memory has no room for the row, readers find that the task waits.
func (e *Maker) oweNow(ctx context.Context, t *engine.Timer, o engine.Owed, release func()) error {
	s := &engine.Settlement{Owner: e.cfg.Node, Owe: []engine.Owed{o}}
	if o.Task != nil {
		s.Tasks = []engine.Record{{Key: o.Key, Status: o.Task.Status, Encoded: engine.EncodeTask(o.Task)}}
	}
	err := e.cfg.Cold.Settle(ctx, s)
	if err != nil && inDoubt(err) {
		e.process.Go(func(ctx context.Context) {
			made, _ := e.resolve(ctx, func() (bool, error) {
				row, err := e.RowAt(ctx, o.Key)
				return row != nil && row.To == 0, err
			})
			if made {
				if err := e.memory.AddRequested(t, o); err != nil {
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
	return e.memory.AddRequested(t, o)
}
