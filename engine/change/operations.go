package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"xtimer/engine"
)

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
	// Shards are those that it has selected from.
	Shards engine.Set
}

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

// look copies an operation as it stands.
func (o *operations) look(op *Operation) Operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return *op
}

// OperationID makes the id of an operation. No other node makes the same one.
func (e *Maker) OperationID() string {
	own := e.memory.Owned()
	if own == (engine.Set{}) {
		own = engine.AllShards
	}
	return e.IDs.Next(e.now(), own).String()
}

// Operation finds a bulk operation of this process by its id, or one that it went on with:
// the sum of the parts that it does of it.
func (e *Maker) Operation(id string) (sum Operation, ok bool) {
	e.operations.mu.Lock()
	defer e.operations.mu.Unlock()
	for n := 0; ; n++ {
		p := e.operations.byID[partID(id, n)]
		if p == nil {
			return sum, n > 0
		}
		sum.Add(p)
	}
}

// NoteEmpty records the shards in which an operation of several nodes selected nothing. With these, the parts that the
// nodes keep add up to all shards.
func (e *Maker) NoteEmpty(op Operation, shards engine.Set) {
	if op.Ended && shards == (engine.Set{}) {
		return // else a client was told of the operation, and asks for it here
	}
	e.operations.enter(Operation{ID: e.operations.free(op.ID), Action: op.Action, App: op.App, Ended: true, Started: op.Started, Shards: shards})
}

// Add adds a part of the operation. The sum of no parts is zero.
func (op *Operation) Add(p *Operation) {
	if op.ID == "" && op.Started.IsZero() {
		*op = *p
		return
	}
	op.Total, op.Done, op.Failed = op.Total+p.Total, op.Done+p.Done, op.Failed+p.Failed
	op.Ended, op.Error = op.Ended && p.Ended, cmp.Or(op.Error, p.Error)
	op.ID, op.Shards = cmp.Or(op.ID, p.ID), op.Shards.Union(p.Shards)
}

// partID is the id of a further part of an operation in one process: it does one when it
// gains shards in which the operation was not done yet.
func partID(id string, n int) string {
	if n == 0 {
		return id
	}
	return id + "-" + strconv.Itoa(n)
}

// free is the id of the next part of an operation.
func (o *operations) free(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n := 0; ; n++ {
		if next := partID(id, n); o.byID[next] == nil {
			return next
		}
	}
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
