package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"xtimer/engine"
)

const selectShards = "SELECT shard,fence,owner,watermark FROM shards ORDER BY shard"

// Shards reads fence and watermark of all shards, in order.
func (s *Store) Shards(ctx context.Context) (shards []engine.Shard, err error) {
	err = s.read(ctx, "read the shards", func(ctx context.Context) error {
		shards = make([]engine.Shard, engine.Shards)
		return s.scan(ctx, selectShards, readShards(shards))
	})
	return shards, err
}

func readShards(into []engine.Shard) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var i int
		var sh engine.Shard
		if err := rows.Scan(&i, &sh.Fence, &sh.Owner, &sh.Watermark); err != nil {
			return err
		}
		if i < 0 || i >= len(into) {
			return &rowError{damaged("shards", i, fmt.Errorf("there is no such shard"))}
		}
		into[i] = sh
		return nil
	}
}

// Take takes all shards for a node. A repeated transaction moves the fences once
// more, which does no harm.
func (s *Store) Take(ctx context.Context, owner string) (shards []engine.Shard, newest engine.TimerID, err error) {
	fence := int64(0)
	err = s.transact(ctx, "take the shards", func(t *transaction) error {
		if err := t.run("UPDATE fences SET fence=fence+1"); err != nil { // waits for the groups of the former owner
			return err
		}
		var err error
		if newest, err = s.newest.read(t.ctx, t.tx); err != nil {
			return err
		}
		if err := t.scan("SELECT fence FROM fences WHERE slot=0", func(rows *sql.Rows) error { return rows.Scan(&fence) }); err != nil {
			return err
		}
		b := append(t.buf[:0], "UPDATE shards SET fence=fence+1,owner="...)
		if err := t.run(string(appendBytes(b, owner))); err != nil {
			return err
		}
		shards = make([]engine.Shard, engine.Shards)
		return t.scan(selectShards, readShards(shards))
	})
	if err == nil {
		s.fence.Store(fence)
	}
	return shards, newest, err
}

// errTaken is the end of what a process writes after another took the shards.
var errTaken = fmt.Errorf("%w: %w", engine.ErrFenced, &engine.Fault{
	Kind: engine.FaultUnavailable, Code: "taken_over", Detail: "another xtimer has taken this database over: ask that one",
})

// own locks the fence of a slot until the transaction ends: nobody takes the shards
// before that, and nothing is written once somebody did. A store that has taken
// none, as an export's, asks nobody.
func (s *Store) own(t *transaction, slot int64) error {
	mine := s.fence.Load()
	if mine == 0 {
		return nil
	}
	stands := int64(0)
	err := t.scan(fmt.Sprintf("SELECT fence FROM fences WHERE slot=%d FOR UPDATE", slot), func(rows *sql.Rows) error { return rows.Scan(&stands) })
	if err == nil && stands != mine {
		err = errTaken
	}
	return err
}
