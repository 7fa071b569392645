package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
)

const (
	// ownedWithin is how long an operation waits until some node owns a shard and does an item of it. After that, an
	// item of the shard is tried each probeEvery, and the others fail at once.
	ownedWithin = 10 * time.Second
	probeEvery  = time.Second
	// ownedPause is between two looks.
	ownedPause = 100 * time.Millisecond
)

// awaitShards waits until the process owns shards. A node among several has none at its start.
func (e *Maker) awaitShards(ctx context.Context) {
	for e.memory.Owned() == (engine.Set{}) && ctx.Err() == nil {
		process.Sleep(ctx, ownedPause)
	}
}

// patience says until when an operation waits for the owner of each shard.
type patience struct {
	mu    sync.Mutex
	until [engine.Shards]time.Time // zero: nobody waits
}

// isOver reports whether the operation has waited long enough for the owner of a shard. The first question starts the
// wait. When it is over, one question in probeEvery is told that it is not.
func (p *patience) isOver(shard int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch until := p.until[shard]; {
	case until.IsZero():
		p.until[shard] = now.Add(ownedWithin)
	case now.Sub(until) > probeEvery:
		p.until[shard] = now
	default:
		return now.After(until)
	}
	return false
}

// end: a node has done an item of the shard. The next wait begins anew.
func (p *patience) end(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until[shard] = time.Time{}
}

// item is what an operation does to one timer or task, in the form in which another node receives it.
type item struct {
	bulkHeader
	Key   engine.Key
	Again bool // it may have been done before
}

// bulkByOwner has an item done by the node that owns its shard: by this one, or else by another. While no node does, it
// tries again.
func (e *Maker) bulkByOwner(ctx context.Context, w *bulkWork, k engine.Key) error {
	x, shard := item{bulkHeader: w.bulkHeader, Key: k, Again: w.resumed}, k.Timer.Shard()
	for ; ; process.Sleep(ctx, ownedPause) {
		err := e.bulkOne(ctx, &x)
		if !errors.Is(err, engine.ErrElsewhere) {
			w.patience.end(shard)
			return err
		}
		if w.patience.isOver(shard) || ctx.Err() != nil {
			return err
		}
		if err = e.bulkElsewhere(ctx, &x); !errors.Is(err, engine.ErrElsewhere) {
			w.patience.end(shard)
			return err
		}
	}
}

// bulkElsewhere has another node do an item. After an answer that is lost, nobody knows whether it was done.
func (e *Maker) bulkElsewhere(ctx context.Context, x *item) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	answer, err := e.cfg.Elsewhere(ctx, x.Key.Timer.Shard(), b)
	switch {
	case err != nil:
		x.Again = true
		return engine.ErrElsewhere
	case string(answer) == engine.ErrElsewhere.Code:
		return engine.ErrElsewhere
	case len(answer) > 0:
		return errors.New(string(answer))
	}
	return nil
}

// DoItem does an item of another node's operation. The answer is empty, or says why the item failed.
func (e *Maker) DoItem(ctx context.Context, b []byte) (answer []byte, err error) {
	var x item
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("cannot read an item of an operation: %w", err)
	}
	if int(x.Action) >= len(bulkNames) {
		return nil, fmt.Errorf("cannot do an item of an operation: it has the action %d", x.Action)
	}
	switch err := e.bulkOne(engine.WithAuthor(ctx, x.By), &x); {
	case errors.Is(err, engine.ErrElsewhere), err != nil && e.process.Refusal() != nil: // another node will own the shard
		return []byte(engine.ErrElsewhere.Code), nil
	case err != nil:
		return []byte(err.Error()), nil
	}
	return nil, nil
}
