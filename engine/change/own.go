package change

import (
	"context"
	"errors"
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

// whenOwned does something to a timer, again until an instant while its shard is not this
// node's.
func (e *Maker) whenOwned(ctx context.Context, until time.Time, do func() error) error {
	err := do()
	for errors.Is(err, engine.ErrElsewhere) && time.Now().Before(until) && ctx.Err() == nil {
		process.Sleep(ctx, ownedPause)
		err = do()
	}
	return err
}
