package engine

import (
	"context"
	"time"
)

// Watermarks are those of all shards, in Unix ms; 0: not known.
type Watermarks [Shards]int64

// Position is a place in the journal: the number of records before it.
type Position uint64

// Journal keeps the attempts that this node has begun and finished until they are
// settled. wal.Log implements Journal.
//
// Records are appended in the order of calls and become durable in that order,
// many in one sync. Begin and Finish never wait for the disk.
type Journal interface {
	Open(ctx context.Context) error
	// Run commits what is appended, until ctx ends; then it commits the rest.
	Run(ctx context.Context) error
	Close() error

	// Begin notes that an attempt starts.
	Begin(b Begun) Position
	// Finish notes an outcome: task is a record encoded by AppendTask, copied
	// before Finish returns.
	Finish(task []byte) Position
	// Sync waits until all records up to and including p are durable.
	Sync(ctx context.Context, p Position) error
	// Next is the position that the next record will get.
	Next() Position
	// Forget drops what was appended before p, or keeps it for a while. w are the watermarks
	// of the cold tier since it has what these records tell; nil: as before.
	Forget(p Position, w *Watermarks) error
	// Replay reads the records that are not forgotten, in order; kept: and before them those
	// that were forgotten and are kept. Call Replay after Open and before the first Begin.
	Replay(kept bool, begun func(Begun) error, finished func(task []byte) error) error
	// Settled are the watermarks that Forget was told of each shard last; nil: nothing is kept.
	Settled() *Watermarks
	// Len is the number of records not forgotten.
	Len() int64
	// Unsynced is how many records are not durable yet, and for how long the
	// oldest of them has not been.
	Unsynced() (records int64, age time.Duration)
	// Backup writes a consistent copy to a new folder.
	Backup(ctx context.Context, dir string) error
}

// Begun is the note that an attempt starts.
type Begun struct {
	Key        Key
	Generation uint32
	Attempt    uint32
	Origin     Origin
	AtMostOnce bool
}
