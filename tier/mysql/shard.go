package mysql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

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
			return &rowError{damaged("shards", i, fmt.Errorf("the shard does not exist"))}
		}
		into[i] = sh
		return nil
	}
}

// Take takes all shards for a node, when the former owner calls no more: see owner. A
// repeated transaction moves the fences once more, which does no harm.
func (s *Store) Take(ctx context.Context, owner string) (shards []engine.Shard, newest engine.TimerID, err error) {
	if err := s.claim(ctx); err != nil {
		return nil, 0, err
	}
	mine := &life{node: owner, id: s.id}
	err = s.transact(ctx, "take the shards", func(t *transaction) error {
		if err := s.inherit(t); err != nil {
			return err
		}
		if err := mine.begin(t); err != nil {
			return err
		}
		var err error
		if newest, err = s.newest.read(t.ctx, t.tx); err != nil {
			return err
		}
		b := fmt.Appendf(t.buf[:0], "UPDATE shards SET fence=fence+1,holder=%d,owner=", mine.id)
		if err := t.run(string(appendBytes(b, owner))); err != nil {
			return err
		}
		shards = make([]engine.Shard, engine.Shards)
		return t.scan(selectShards, readShards(shards))
	})
	if err != nil {
		return nil, 0, err
	}
	for i := range shards {
		s.marked[i].Store(shards[i].Watermark)
	}
	s.life.Store(mine)
	return shards, newest, s.fillShards(ctx)
}

// errTaken is the end of what a process writes after another took the shards.
var errTaken = fmt.Errorf("%w: %w", engine.ErrFenced, &engine.Fault{
	Kind: engine.FaultUnavailable, Code: "taken_over", Detail: "another xtimer has taken this database over: ask that one",
})

// life is the time of a process from its Take to the next Take of any process. Each write
// transaction of a life first adds 1 to n in a row of fences. The row stays locked until the
// transaction ends, so Take waits for the transaction. After Take the row has another life,
// and the transaction fails. The row is written, and not only locked, because a cluster that
// certifies transactions (Galera, Group Replication) compares only writes: two of its members
// could each grant the lock.
type life struct {
	node string
	id   uint64 // not 0
}

// The slots of a process, from Store.slots on: writers of one slot wait for each other.
const (
	slotSettle = 0 // the committers have the next ones
	slotRaise  = committers + 1
	slotSweep  = committers + 2
)

func (s *Store) slot(i int64) int64 { return (s.slots + i) % slotsMade }

// begin starts the life and ends every other one, also that of a former program. It waits
// for the write transactions that are under way.
func (l *life) begin(t *transaction) error {
	if err := t.run("UPDATE fences SET fence=fence+1,life=0"); err != nil {
		return err
	}
	err := t.many("INSERT INTO fences (slot,fence,node,life) VALUES (", "),(", ") ON DUPLICATE KEY UPDATE life=VALUES(life)",
		slotsMade, func(b []byte, i int) []byte {
			b = append(appendBytes(append(appendInts(b, int64(i), 0), ','), l.node), ',')
			return strconv.AppendUint(b, l.id, 10)
		})
	if err != nil {
		return err
	}
	return t.run("DELETE FROM fences WHERE life=0 AND node<>''")
}

// own adds 1 to n in the row of a slot, see life. It does nothing in a store that has taken
// no shards, such as that of an export.
func (s *Store) own(t *transaction, slot int64) error {
	mine := s.life.Load()
	if mine == nil {
		return nil
	}
	b := appendInt(append(t.buf[:0], "UPDATE fences SET n=n+1 WHERE slot="...), slot)
	b = appendBytes(append(b, " AND node="...), mine.node)
	t.buf = strconv.AppendUint(append(b, " AND life="...), mine.id, 10)
	res, err := t.exec(string(t.buf))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return cmp.Or(err, errTaken)
	}
	return nil
}

// write is transact for what only the owner of the shards may write.
func (s *Store) write(ctx context.Context, what string, slot int64, f func(*transaction) error) error {
	return s.transact(ctx, what, func(t *transaction) error {
		if err := s.own(t, s.slot(slot)); err != nil {
			return err
		}
		return f(t)
	})
}

var _ engine.Shared = (*Store)(nil)

// heirWaits is how long a process waits between its claim and its Take. The former owner
// begins no call 1.2 s after the claim, whether it sees the claim or is stopped
// (engine/process.Ownership); if it sees the claim, the rest is time for its calls in
// flight and its last settle.
const heirWaits = 3 * time.Second

// owner is the row of the table owner:
//
//	claim   heir = the new process               the former one sees that within 400 ms, begins no
//	                                             call any more, settles, and closes: ended = 1
//	take    process, folder = those of the heir  once ended = 1, or after heirWaits, with the fences
//
// So what the former process called is settled when the new one reads the tables, but
// for calls in flight, unless the former one was stopped, or has no connection.
type owner struct {
	process, folder, heir string
	ended                 bool
}

const selectOwner = "SELECT process,folder,ended,heir FROM owner WHERE one=1"

func readOwner(into *owner) func(*sql.Rows) error {
	return func(rows *sql.Rows) error { return rows.Scan(&into.process, &into.folder, &into.ended, &into.heir) }
}

// callsNoMore reports whether the owner begins no call any more: it has said so, or it had
// the data directory, which is locked by this process now. Or it is this process.
func (o *owner) callsNoMore(s *Store) bool {
	return o.ended || o.process == s.process || o.folder != "" && o.folder == s.cfg.Folder
}

// newProcess makes a word for this process.
func newProcess() string { return rand.Text() }

// claim makes this process the heir, and waits until the owner calls no more.
func (s *Store) claim(ctx context.Context) error {
	free := false
	err := s.transact(ctx, "claim the shards", func(t *transaction) error {
		var o owner
		if err := t.scan(selectOwner+" FOR UPDATE", readOwner(&o)); err != nil {
			return err
		}
		if free = o.callsNoMore(s); free {
			return errNothing
		}
		return t.run("UPDATE owner SET heir=" + s.quoted())
	})
	for claimed := time.Now(); err == nil && !free && time.Since(claimed) < s.heirWaits; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.heirWaits / 60):
		}
		var o owner
		err = s.read(ctx, "look whether the shards are free", func(ctx context.Context) error {
			return s.scan(ctx, selectOwner, readOwner(&o))
		})
		if free = o.ended; err == nil && o.heir != s.process {
			err = errTaken
		}
	}
	return err
}

// inherit makes this process the owner. If another claimed or took the shards meanwhile,
// it ends the transaction.
func (s *Store) inherit(t *transaction) error {
	var o owner
	if err := t.scan(selectOwner+" FOR UPDATE", readOwner(&o)); err != nil {
		return err
	}
	if o.heir != s.process && !o.callsNoMore(s) {
		return errTaken
	}
	b := append(t.buf[:0], "UPDATE owner SET ended=0,heir='',process="...)
	b = append(b, s.quoted()...)
	return t.run(string(appendBytes(append(b, ",folder="...), s.cfg.Folder)))
}

func (s *Store) quoted() string { return string(appendBytes(nil, s.process)) }

// Owns implements engine.Shared, over a connection of its own.
func (s *Store) Owns(ctx context.Context) error {
	var o owner
	err := s.readWithin(ctx, s.patience, "see whether the shards are still this process's", func(ctx context.Context) error {
		return scan(ctx, s.asks, selectOwner, readOwner(&o))
	})
	if err == nil && (o.process != s.process || o.heir != "" && o.heir != s.process) {
		err = errTaken
	}
	return err
}

// leave notes that this process begins no call any more. If that cannot be noted, the next
// one waits.
func (s *Store) leave() {
	if s.life.Load() == nil {
		return
	}
	_ = s.try(context.Background(), time.Second, "note the end", func(ctx context.Context) error {
		_, err := s.db.ExecContext(ctx, "UPDATE owner SET ended=1 WHERE process="+s.quoted())
		return err
	})
}

// newest knows the greatest id that was ever stored, so that no id is issued twice.
// A stored timer holds its own id. The table ids holds the ids of timers that were
// removed, and of timers that were never stored here but have a record or a row. So
// a create costs nothing.
//
// Both fields are known to be committed: they may be lower than what the database
// holds, never higher.
type newest struct {
	used  atomic.Uint64 // held by a stored timer, or by the table ids
	noted atomic.Uint64 // held by the table ids
}

// read asks the database.
func (n *newest) read(ctx context.Context, from querier) (engine.TimerID, error) {
	var id, noted engine.TimerID
	const q = "SELECT COALESCE((SELECT MAX(id) FROM timers),0),COALESCE((SELECT MAX(newest) FROM ids),0)"
	err := scan(ctx, from, q, func(rows *sql.Rows) error { return rows.Scan(&id, &noted) })
	n.committed(id, noted)
	return max(id, noted), err
}

// committed is called with the greatest ids that a commit created and noted.
func (n *newest) committed(created, noted engine.TimerID) {
	lift(&n.used, max(created, noted))
	lift(&n.noted, noted)
}

func lift(v *atomic.Uint64, to engine.TimerID) {
	for was := v.Load(); uint64(to) > was && !v.CompareAndSwap(was, uint64(to)); was = v.Load() {
	}
}

// note writes an id to the table ids, unless known is greater. It must be the last
// statement of a transaction: the lock on the row of the slot then waits for nothing
// but the commit.
func note(t *transaction, known *atomic.Uint64, slot int64, id engine.TimerID) error {
	if uint64(id) <= known.Load() {
		return nil
	}
	t.noted = id
	b := appendInts(append(t.buf[:0], "INSERT INTO ids (slot,newest) VALUES ("...), slot, int64(id))
	t.buf = append(b, ") ON DUPLICATE KEY UPDATE newest=GREATEST(newest,VALUES(newest))"...)
	return t.run(string(t.buf))
}
