package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xtimer/engine"
)

// BulkAction is what a bulk operation does to each thing it selects.
type BulkAction uint8

// The bulk actions; RedriveAll works on tasks, the others on timers.
const (
	EnableAll BulkAction = iota
	DisableAll
	DeleteAll
	RedriveAll
)

var bulkNames = [...]string{"enable", "disable", "delete", "retry"}

func (a BulkAction) String() string { return bulkNames[a] }

// Bulk is the request of a bulk operation.
type Bulk struct {
	Action BulkAction
	Timers engine.TimerFilter // for the actions on timers
	Tasks  engine.TaskFilter  // for RedriveAll
	DryRun bool               // only count
	Reason string             // of DisableAll
	Until  int64              // of DisableAll
}

// Operation is the progress of a bulk operation.
type Operation struct {
	ID      string
	Action  BulkAction
	App     string // "" when it was not limited to one
	Total   int64  // how many were selected
	Done    int64
	Failed  int64
	Ended   bool
	Error   string // the first failure
	Started time.Time
}

// bulkAtOnce is how many a call does before it answers; more go on in the
// background.
const bulkAtOnce = 10_000

// operationsKept bounds the operations whose end can still be looked up.
const operationsKept = 1000

type operations struct {
	mu    sync.Mutex
	byID  map[string]*Operation
	order []string
}

// StartBulk selects, counts, and does: up to 10,000 within the call, more of
// them in the background (then Ended is false). What is created while it
// selects may be selected or not.
func (e *Scheduler) StartBulk(ctx context.Context, b Bulk) (Operation, error) {
	if err := e.serving(); err != nil {
		return Operation{}, err
	}
	if b.Until != 0 && b.Until <= e.now() {
		return Operation{}, errUntil
	}
	op := Operation{Action: b.Action, App: b.Timers.App, Started: e.cfg.Now()}
	var do func(ctx context.Context, i int) error
	if b.Action == RedriveAll {
		op.App = b.Tasks.App
		keys, err := e.selectTasks(ctx, b.Tasks)
		if err != nil {
			return op, err
		}
		op.Total = int64(len(keys))
		do = func(ctx context.Context, i int) error { return e.Redrive(ctx, keys[i]) }
	} else {
		ids, err := e.selectTimers(ctx, b.Timers)
		if err != nil {
			return op, err
		}
		op.Total = int64(len(ids))
		do = func(ctx context.Context, i int) error { return e.bulkOne(ctx, &b, ids[i]) }
	}
	if b.DryRun || op.Total == 0 {
		op.Ended = true
		return op, nil
	}
	op.ID = e.ids.Next(e.now()).String()
	p := e.operations.enter(op)
	if op.Total <= bulkAtOnce {
		e.bulkRun(ctx, p, do)
	} else {
		e.background.Go(func() { e.bulkRun(e.life, p, do) })
	}
	op, _ = e.Operation(op.ID)
	return op, nil
}

func (e *Scheduler) bulkOne(ctx context.Context, b *Bulk, id engine.TimerID) error {
	var err error
	switch b.Action {
	case EnableAll:
		_, err = e.Enable(ctx, id, engine.CatchUpNone)
	case DisableAll:
		_, err = e.Disable(ctx, id, b.Reason, b.Until)
	case DeleteAll:
		_, err = e.Delete(ctx, id, 0)
	default:
		panic(fmt.Sprintf("BUG: bulk action %d of timers", b.Action))
	}
	if errors.Is(err, engine.ErrNotFound) {
		return nil // gone meanwhile: nothing is left to do
	}
	return err
}

// bulkWorkers work at one operation, so that their commits are shared.
const bulkWorkers = 32

func (e *Scheduler) bulkRun(ctx context.Context, op *Operation, do func(context.Context, int) error) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range bulkWorkers {
		wg.Go(func() {
			for i := range next {
				err := do(ctx, i)
				e.operations.mu.Lock()
				if op.Done++; err != nil {
					if op.Failed++; op.Error == "" {
						op.Error = err.Error()
					}
				}
				e.operations.mu.Unlock()
			}
		})
	}
	for i := range int(op.Total) {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	e.operations.mu.Lock()
	op.Ended = true
	if err := ctx.Err(); err != nil && op.Error == "" {
		op.Error = "stopped: " + err.Error()
	}
	e.operations.mu.Unlock()
}

func (e *Scheduler) selectTimers(ctx context.Context, f engine.TimerFilter) ([]engine.TimerID, error) {
	var ids []engine.TimerID
	for after := ""; ; {
		vs, next, err := e.Timers(ctx, f, after, 1000)
		if err != nil {
			return nil, err
		}
		for _, v := range vs {
			ids = append(ids, v.ID)
		}
		if after = next; after == "" {
			return ids, nil
		}
	}
}

// selectTasks selects what can be retried by hand.
func (e *Scheduler) selectTasks(ctx context.Context, f engine.TaskFilter) ([]engine.Key, error) {
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

// Operation finds a bulk operation of this process by its id.
func (e *Scheduler) Operation(id string) (Operation, bool) {
	e.operations.mu.Lock()
	defer e.operations.mu.Unlock()
	p := e.operations.byID[id]
	if p == nil {
		return Operation{}, false
	}
	return *p, true
}

func (o *operations) enter(op Operation) *Operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.order) == operationsKept {
		delete(o.byID, o.order[0])
		o.order = o.order[1:]
	}
	o.byID[op.ID] = &op
	o.order = append(o.order, op.ID)
	return &op
}
