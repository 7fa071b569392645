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

// operationsKept bounds the operations that have ended and can still be looked up.
const operationsKept = 1000

type operations struct {
	mu    sync.Mutex // guards the next three
	byID  map[string]*Operation
	order []string
	going int // in the background

	selecting chan struct{} // full while one selects: that has all that it selects in memory
	working   chan struct{} // full while as many go on in the background as may at once
}

const (
	// bulkGoing is how many operations there may be in the background: each has a file.
	bulkGoing = 64
	// bulkWorking is how many of them work at once. The others wait.
	bulkWorking = 4
	// selectWait is how long an operation waits for others that select.
	selectWait = 30 * time.Second
)

var (
	errManyOperations = &engine.Fault{
		Kind: engine.FaultUnavailable, Code: "too_many_operations",
		Detail: fmt.Sprintf("%d bulk operations are under way: retry when one of them has ended", bulkGoing),
	}
	errSelecting = &engine.Fault{
		Kind: engine.FaultUnavailable, Code: "too_many_operations",
		Detail: "other bulk operations select what they work on: retry later",
	}
)

func newOperations() *operations {
	return &operations{byID: map[string]*Operation{}, selecting: make(chan struct{}, 1), working: make(chan struct{}, bulkWorking)}
}

// count counts the operations in the background, and n more.
func (o *operations) count(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.going += n
	return o.going
}

// turn waits until no other operation selects. The caller ends its turn by a receive from
// selecting.
func (o *operations) turn(ctx context.Context) error {
	late := time.NewTimer(selectWait)
	defer late.Stop()
	select {
	case o.selecting <- struct{}{}:
		return nil
	case <-late.C:
		return errSelecting
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
	op, _ = e.Operation(op.ID)
	return op, nil
}

// selectBulk selects what an operation is to do. One that has nothing to do is Ended.
func (e *Maker) selectBulk(ctx context.Context, b Bulk) (op Operation, w bulkWork, err error) {
	op = Operation{Action: b.Action, App: b.Timers.App, Started: e.cfg.Now()}
	if err := e.operations.turn(ctx); err != nil {
		return op, w, err
	}
	defer func() { <-e.operations.selecting }()
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
	op.Total = int64(len(items))
	if b.DryRun || op.Total == 0 {
		op.Ended = true
		return op, w, nil
	}
	own := e.memory.Owned() // so that no other node makes the same id
	if own == (engine.Set{}) {
		return op, w, engine.ErrElsewhere
	}
	op.ID = e.IDs.Next(e.now(), own).String()
	w = bulkWork{items: items, bulkHeader: bulkHeader{
		ID: op.ID, Action: b.Action, App: op.App, Reason: b.Reason, Until: b.Until, By: engine.Author(ctx), Started: op.Started.UnixMilli(),
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
			w.patient = time.Now().Add(ownedWithin)
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
			ID: h.ID, Action: h.Action, App: h.App, Total: total, Done: done, Failed: failed, Started: time.UnixMilli(h.Started),
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
	patient time.Time // see whenOwned
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
func (e *Maker) bulkOne(ctx context.Context, w *bulkWork, k engine.Key) error {
	var err error
	switch w.Action {
	case EnableAll:
		_, err = e.Enable(ctx, k.Timer, 0, engine.CatchUpNone)
	case DisableAll:
		_, err = e.Disable(ctx, k.Timer, 0, w.Reason, w.Until)
	case DeleteAll:
		_, err = e.Delete(ctx, k.Timer, 0)
	case RedriveAll:
		if w.resumed {
			if t, err := e.Task(ctx, k); err == nil && t.Origin == engine.FromRedrive && t.Since >= w.Started {
				return nil // before the restart
			}
		}
		return e.Redrive(ctx, k)
	case ResetClock:
		err = e.resetOne(ctx, k.Timer)
	default:
		panic(fmt.Sprintf("BUG: bulk action %d", w.Action))
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
			err := e.whenOwned(ctx, w.patient, func() error { return e.bulkOne(ctx, w, k) })
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
		vs, next, err := e.Timers(ctx, f, after, 1000)
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

// Operation finds a bulk operation of this process by its id, or one that it went on with.
func (e *Maker) Operation(id string) (Operation, bool) {
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
	if len(o.order) >= operationsKept {
		if i := slices.IndexFunc(o.order, func(id string) bool { return o.byID[id].Ended }); i >= 0 {
			delete(o.byID, o.order[i])
			o.order = slices.Delete(o.order, i, i+1)
		}
	}
	o.byID[op.ID] = &op
	o.order = append(o.order, op.ID)
	return &op
}
