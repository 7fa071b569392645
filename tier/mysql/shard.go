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

// Take takes all shards for a node. Repeated, it moves the fences once more,
// which hurts nobody but who had them before.
func (s *Store) Take(ctx context.Context, owner string) (shards []engine.Shard, err error) {
	err = s.transact(ctx, "take the shards", func(t *transaction) error {
		b := append(t.buf[:0], "UPDATE shards SET fence=fence+1,owner="...)
		if err := t.run(string(appendBytes(b, owner))); err != nil {
			return err
		}
		shards = make([]engine.Shard, engine.Shards)
		return t.scan(selectShards, readShards(shards))
	})
	return shards, err
}
