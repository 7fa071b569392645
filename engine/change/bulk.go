package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
)

// BulkAction is what a bulk operation does to each thing it selects.
type BulkAction uint8

// The bulk actions; RedriveAll works on tasks, the others on timers. ResetClock selects
// by itself: see Maker.ResetClock.
const (
	EnableAll BulkAction = iota
	DisableAll
	DeleteAll
	RedriveAll
	ResetClock
)

var bulkNames = [...]string{"enable", "disable", "delete", "retry", "clock_reset"}

func (a BulkAction) String() string { return bulkNames[a] }

// Bulk is the request of a bulk operation.
type Bulk struct {
	Action BulkAction
	Timers engine.TimerFilter // for the actions on timers
	Tasks  engine.TaskFilter  // for RedriveAll
	DryRun bool               // only count
	Reason string             // of DisableAll
	Until  int64              // of DisableAll; of ResetClock, the watermark
	Part   Part
}

// Part is what this node does of an operation in which several nodes take part, each with
// the timers in its own shards.
type Part struct {
	ID   string     // of the operation; "": a new one
	Done engine.Set // shards that are left out
}

// bulkAtOnce is how many a call does before it answers; more go on in the
// background.
const bulkAtOnce = 10_000

// StartBulk selects, counts, and does: up to 10,000 within the call, more of
// them in the background (then Ended is false), also after a restart. What is created
// while it selects may be selected or not.
func (e *Maker) StartBulk(ctx context.Context, b Bulk) (Operation, error) {
	if err := e.process.Refusal(); err != nil {
		return Operation{}, err
	}
	if b.Action == DisableAll && b.Until != 0 && b.Until <= e.now() {
		return Operation{}, errUntil
	}
	op, w, err := e.selectBulk(ctx, b)
	if err != nil || op.Ended {
		return op, err
	}
	w.op = e.operations.enter(op)
	if op.Total <= bulkAtOnce {
		e.bulkRun(ctx, &w)
	} else {
		e.bulkGo(&w)
	}
	return e.operations.look(w.op), nil
}

// selectBulk selects what an operation is to do. One that has nothing to do is Ended.
func (e *Maker) selectBulk(ctx context.Context, b Bulk) (op Operation, w bulkWork, err error) {
	op = Operation{Action: b.Action, App: b.Timers.App, Started: e.cfg.Now()}
	if err := e.operations.turn(ctx); err != nil {
		return op, w, err
	}
	defer func() { <-e.operations.selecting }()
	if op.Shards = e.memory.Owned().Without(b.Part.Done); op.Shards == (engine.Set{}) {
		op.Ended = true
		return op, w, nil
	}
	var items []engine.Key
	switch b.Action {
	case RedriveAll:
		op.App = b.Tasks.App
		items, err = e.selectTasks(ctx, b.Tasks)
	case ResetClock:
		items, err = e.selectResting(ctx)
	default:
		items, err = e.selectTimers(ctx, b.Timers)
	}
	if err != nil {
		return op, w, err
	}
	items = slices.DeleteFunc(items, func(k engine.Key) bool { return !op.Shards.Has(k.Timer.Shard()) })
	op.Total = int64(len(items))
	if b.DryRun || op.Total == 0 {
		op.Ended = true
		return op, w, nil
	}
	op.ID = e.operations.free(cmp.Or(b.Part.ID, e.OperationID()))
	w = bulkWork{items: items, bulkHeader: bulkHeader{
		ID: op.ID, Action: b.Action, App: op.App, Reason: b.Reason, Until: b.Until, By: engine.Author(ctx), Started: op.Started.UnixMilli(), Shards: op.Shards,
	}}
	if op.Total <= bulkAtOnce {
		return op, w, nil
	}
	if e.operations.count(0) >= bulkGoing {
		return op, w, errManyOperations
	}
	if e.cfg.OperationsDir != "" {
		if w.file, err = makeBulkFile(e.cfg.OperationsDir, w.bulkHeader, items); err != nil {
			return op, w, fmt.Errorf("cannot keep the operation for a restart: %w", err)
		}
		w.items = nil
	}
	return op, w, nil
}

// bulkGo goes on with an operation in the background, when its turn comes.
func (e *Maker) bulkGo(w *bulkWork) {
	e.operations.count(1)
	e.process.Go(func(ctx context.Context) {
		defer e.operations.count(-1)
		select {
		case e.operations.working <- struct{}{}:
			defer func() { <-e.operations.working }()
		case <-ctx.Done(): // the next start goes on with it
		}
		if w.resumed {
			e.awaitShards(ctx)
		}
		e.bulkRun(ctx, w)
	})
}

// ResumeBulk goes on with the operations that the former process was at. Those that
// cannot be read stay where they are.
func (e *Maker) ResumeBulk() {
	names, err := bulkFiles(e.cfg.OperationsDir)
	if err != nil {
		e.log.Error("cannot look for operations to go on with; the next start will", "error", err)
	}
	for _, name := range names {
		file, h, total, done, failed, err := openBulkFile(name)
		if err != nil {
			e.log.Error("cannot go on with an operation", "file", name, "error", err)
			continue
		}
		e.log.Info("going on with an operation", "id", h.ID, "action", h.Action, "done", done, "of", total)
		op := Operation{
			ID: h.ID, Action: h.Action, App: h.App, Total: total, Done: done, Failed: failed, Started: time.UnixMilli(h.Started), Shards: h.Shards,
		}
		e.bulkGo(&bulkWork{bulkHeader: h, file: file, resumed: true, op: e.operations.enter(op)})
	}
}

// bulkWork is an operation with what it needs to be done.
type bulkWork struct {
	bulkHeader
	op      *Operation
	items   []engine.Key // of actions on timers without a due; nil: file has them
	file    *bulkFile    // nil: it ends with the process
	resumed bool
	// patience is set and used by bulkRun only.
	patience *patience
}

// round returns the items that are done next.
func (w *bulkWork) round() ([]engine.Key, error) {
	from, to := w.op.Done, min(w.op.Done+bulkRound, w.op.Total)
	if w.items != nil {
		return w.items[from:to], nil
	}
	return w.file.read(w.op.Total, from, to)
}

// bulkOne does one item; doing it again changes nothing.
func (e *Maker) bulkOne(ctx context.Context, x *item) error {
	k := x.Key
	var err error
	switch x.Action {
	case EnableAll:
		_, err = e.Enable(ctx, k.Timer, 0, engine.CatchUpNone)
	case DisableAll:
		_, err = e.Disable(ctx, k.Timer, 0, x.Reason, x.Until)
	case DeleteAll:
		_, err = e.Delete(ctx, k.Timer, 0)
	case RedriveAll:
		if x.Again {
			if t, err := e.Task(ctx, k); err == nil && t.Origin == engine.FromRedrive && t.Since >= x.Started {
				return nil // it was done
			}
		}
		return e.Redrive(ctx, k)
	case ResetClock:
		err = e.resetOne(ctx, k.Timer)
	default:
		panic(fmt.Sprintf("BUG: bulk action %d", x.Action))
	}
	if errors.Is(err, engine.ErrNotFound) {
		return nil // gone meanwhile: nothing is left to do
	}
	return err
}

// bulkWorkers work at one operation, so that their commits are shared.
const bulkWorkers = 32

// bulkRound is how many items are done between two notes of progress.
const bulkRound = 1000

func (e *Maker) bulkRun(ctx context.Context, w *bulkWork) {
	ctx = engine.WithAuthor(ctx, w.By)
	w.patience = &patience{}
	var unread error
	for w.op.Done < w.op.Total && ctx.Err() == nil {
		var items []engine.Key
		if items, unread = w.round(); unread != nil {
			e.log.Error("cannot read what an operation is to do; the next start goes on with it", "id", w.ID, "error", unread)
			break
		}
		e.bulkSome(ctx, w, items)
		if ctx.Err() != nil {
			break // this round may not be whole
		}
		if err := w.file.progress(w.op.Done, w.op.Failed); err != nil {
			e.log.Error("cannot note the progress of an operation", "id", w.ID, "error", err)
		}
	}
	err := cmp.Or(ctx.Err(), unread)
	if err := w.file.close(err == nil, e.cfg.OperationsDir, w.ID); err != nil {
		e.log.Error("cannot end the file of an operation; the next start does its last part again", "id", w.ID, "error", err)
	}
	e.operations.mu.Lock()
	defer e.operations.mu.Unlock()
	w.op.Ended = true
	if w.Action == ResetClock && err == nil && w.op.Failed == 0 {
		e.noteReset(w.Until)
	}
	if err != nil && w.op.Error == "" {
		w.op.Error = "stopped: " + err.Error()
	}
}

// bulkSome does some items, and returns when all that it began are done.
func (e *Maker) bulkSome(ctx context.Context, w *bulkWork, items []engine.Key) {
	var wg sync.WaitGroup
	workers := make(chan struct{}, bulkWorkers)
	for _, k := range items {
		if ctx.Err() != nil {
			break
		}
		workers <- struct{}{}
		wg.Go(func() {
			err := e.bulkByOwner(ctx, w, k)
			e.operations.mu.Lock()
			if w.op.Done++; err != nil {
				if w.op.Failed++; w.op.Error == "" {
					w.op.Error = err.Error()
				}
			}
			e.operations.mu.Unlock()
			<-workers
		})
	}
	wg.Wait()
}

func (e *Maker) selectTimers(ctx context.Context, f engine.TimerFilter) ([]engine.Key, error) {
	var ids []engine.Key
	for after := ""; ; {
		vs, next, err := e.Timers(ctx, f, after, 1000, false, nil)
		if err != nil {
			return nil, err
		}
		for _, v := range vs {
			ids = append(ids, engine.Key{Timer: v.ID})
		}
		if after = next; after == "" {
			return ids, nil
		}
	}
}

// selectTasks selects what can be retried by hand.
func (e *Maker) selectTasks(ctx context.Context, f engine.TaskFilter) ([]engine.Key, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = []engine.TaskStatus{engine.Failed, engine.Dead}
	}
	var keys []engine.Key
	for before := (engine.Key{}); ; {
		ts, next, err := e.Tasks(ctx, f, before, 1000)
		if err != nil {
			return nil, err
		}
		for _, t := range ts {
			keys = append(keys, t.Key)
		}
		if before = next; before == (engine.Key{}) {
			return keys, nil
		}
	}
}
