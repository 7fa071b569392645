package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
)

const (
	// ownedWithin is how long an operation that goes on after a start waits for the shards
	// of what it is to do, from when the node owns any: they come one after the other.
	ownedWithin = 10 * time.Second
	// ownedPause is between two looks.
	ownedPause = 100 * time.Millisecond
)

// awaitShards waits until the process owns shards. A node among several has none at its start.
func (e *Maker) awaitShards(ctx context.Context) {
	for e.memory.Owned() == (engine.Set{}) && ctx.Err() == nil {
		process.Sleep(ctx, ownedPause)
	}
}

// item is what an operation does to one timer or task, as another node is told of it.
type item struct {
	bulkHeader
	Key   engine.Key
	Again bool // it may have been done
}

// bulkByOwner has an item done by the node that owns its shard: by this one, or else by another. While no node does, it
// tries again.
func (e *Maker) bulkByOwner(ctx context.Context, w *bulkWork, k engine.Key) error {
	x := item{bulkHeader: w.bulkHeader, Key: k, Again: w.resumed}
	for until := time.Now().Add(ownedWithin); ; process.Sleep(ctx, ownedPause) {
		err := e.bulkOne(ctx, &x)
		if errors.Is(err, engine.ErrElsewhere) {
			err = e.bulkElsewhere(ctx, &x)
		}
		if !errors.Is(err, engine.ErrElsewhere) || time.Now().After(until) || ctx.Err() != nil {
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
	case errors.Is(err, engine.ErrElsewhere):
		return []byte(engine.ErrElsewhere.Code), nil
	case err != nil:
		return []byte(err.Error()), nil
	}
	return nil, nil
}
