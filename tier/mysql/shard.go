package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strconv"
	"sync/atomic"

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

var errNoShard = errors.New("the shard does not exist")

func readShards(into []engine.Shard) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var i int
		var sh engine.Shard
		if err := rows.Scan(&i, &sh.Fence, &sh.Owner, &sh.Watermark); err != nil {
			return err
		}
		if i < 0 || i >= len(into) {
			return &rowError{damaged("shards", i, errNoShard)}
		}
		into[i] = sh
		return nil
	}
}

// Take takes all shards for a node, when the former owner calls no more: see owner. It is
// refused while nodes share the database. A repeated transaction moves the fences once more,
// which does no harm.
func (s *Store) Take(ctx context.Context, owner string) (shards []engine.Shard, newest engine.TimerID, err error) {
	silent, err := s.silentNodes(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := s.claim(ctx); err != nil {
		return nil, 0, err
	}
	mine := &life{node: owner, id: s.id}
	err = s.transact(ctx, "take the shards", func(t *transaction) error {
		if err := s.inherit(t); err != nil {
			return err
		}
		if err := endNodes(t, silent); err != nil {
			return err
		}
		if err := mine.replaceAll(t); err != nil {
			return err
		}
		var err error
		if newest, err = s.newest.read(t.ctx, t.tx); err != nil {
			return err
		}
		b := fmt.Appendf(t.buf[:0], "UPDATE shards SET fence=fence+1,heir='',clean=0,former=0,holder=%d,owner=", mine.id)
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
	Kind: engine.FaultUnavailable, Code: "taken_over", Detail: "another xtimer has taken the timers over: send the request to that one",
})

// life is the time of a process from its Take, or Join, until another process ends it. Each
// write transaction of a life first adds 1 to n in a row of fences. The row stays locked until
// the transaction ends, so who ends the life waits for the transaction. Then the row has
// another life, and the next transaction fails. The row is written, and not only locked,
// because a cluster that certifies transactions (Galera, Group Replication) compares only
// writes: two of its members could each grant the lock.
//
// The row has at least the n that the life has committed there. If not, the database has gone
// back, and what the life goes by is not stored: the life is over.
type life struct {
	node    string
	id      uint64                  // not 0
	counted [slotsMade]atomic.Int64 // n of each slot, as committed
}

// The slots of a process, from Store.slots on: writers of one slot wait for each other.
const (
	slotSettle  = 0 // the committers have the next ones
	slotRaise   = committers + 1
	slotSweep   = committers + 2
	slotMembers = committers + 3
	slotEvict   = committers + 4 // it may wait for long
	slotObjects = committers + 5
	slotBeside  = committers + 6 // a settlement that waits for no other
	slotBuckets = committers + 7
)

func (s *Store) slot(i int64) int64 { return (s.slots + i) % slotsMade }

// replaceAll starts the life and ends every other one, also that of a former program. It
// waits for the write transactions that are under way.
func (l *life) replaceAll(t *transaction) error {
	if err := endAll(t); err != nil {
		return err
	}
	if err := l.begin(t); err != nil {
		return err
	}
	return t.run(deleteFences)
}

// endAll ends all lives. Programs of schema 8 and before compare fence.
func endAll(t *transaction) error { return t.run("UPDATE fences SET fence=fence+1,life=0") }

// deleteFences deletes the rows of nodes that have no life.
const deleteFences = "DELETE FROM fences WHERE life=0 AND node<>''"

// begin starts the life in place of that of the node.
func (l *life) begin(t *transaction) error {
	return t.many("INSERT INTO fences (slot,fence,node,life) VALUES (", "),(", ") ON DUPLICATE KEY UPDATE life=VALUES(life)",
		slotsMade, func(b []byte, i int) []byte {
			b = append(appendBytes(append(appendInts(b, int64(i), 0), ','), l.node), ',')
			return strconv.AppendUint(b, l.id, 10)
		})
}

// of selects the row of a slot.
func (l *life) of(slot int64) []byte {
	return strconv.AppendUint(append(appendBytes(append(appendInt([]byte(" WHERE slot="), slot), " AND node="...), l.node), " AND life="...), l.id, 10)
}

// commits are the n of the life's slots, as committed.
func (l *life) commits() (ns [slotsMade]int64) {
	for i := range ns {
		ns[i] = l.counted[i].Load()
	}
	return ns
}

// has returns an error if the database has fewer commits of the life than before the call, or not the life any more:
// each slot counts for itself, and a failover may lose the last commit of one alone.
func (l *life) has(ctx context.Context, from querier, before [slotsMade]int64) error {
	found, lost := 0, false
	b := appendBytes(appendSlots([]byte("SELECT slot,n FROM fences WHERE ")), l.node)
	err := scan(ctx, from, string(fmt.Appendf(b, " AND life=%d", l.id)), func(rows *sql.Rows) error {
		var slot, n int64
		err := rows.Scan(&slot, &n)
		found, lost = found+1, lost || n < before[slot]
		return err
	})
	switch {
	case err != nil:
		return err
	case found < slotsMade:
		return errTaken
	case lost:
		return errWentBack
	}
	return nil
}

// own adds 1 to n in the row of a slot.
func (l *life) own(t *transaction, slot int64) error {
	of := l.of(slot)
	b := append(append(t.buf[:0], "UPDATE fences SET n=LAST_INSERT_ID(n+1)"...), of...)
	t.buf = appendInt(append(b, " AND n>="...), l.counted[slot].Load())
	res, err := t.exec(string(t.buf))
	if err != nil {
		return err
	}
	rows, err := res.RowsAffected()
	if err == nil && rows == 1 {
		t.life, t.slot = l, slot
		t.n, err = res.LastInsertId()
		return err
	}
	found := false
	err = cmp.Or(err, t.scan("SELECT n FROM fences"+string(of), func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&t.n)
	}))
	switch {
	case err != nil:
		return err
	case found:
		return errWentBack
	}
	return errTaken
}

// own adds 1 to n in the row of a slot, see life. It does nothing in a store that has taken
// no shards, such as that of an export.
func (s *Store) own(t *transaction, slot int64) error {
	if mine := s.life.Load(); mine != nil {
		return mine.own(t, slot)
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

// moveShards changes those of the shards that a life holds; 0: those that are free. They are
// read first, so that the UPDATE locks no others.
func moveShards(t *transaction, holder uint64, of engine.Set, set func(b []byte) []byte) error {
	var held []int
	err := t.scan(fmt.Sprintf("SELECT shard FROM shards WHERE holder=%d ORDER BY shard", holder), func(rows *sql.Rows) error {
		var i int
		err := rows.Scan(&i)
		if i >= 0 && i < engine.Shards && of.Has(i) {
			held = append(held, i)
		}
		return err
	})
	if err != nil || len(held) == 0 {
		return err
	}
	b := set(append(t.buf[:0], "UPDATE shards SET "...))
	t.buf = fmt.Appendf(b, " WHERE %s AND holder=%d", inShards(held...), holder)
	if err := t.run(string(t.buf)); err != nil {
		return err
	}
	return countMove(t)
}

// countMove notes that shards were taken or freed. It is the last statement of a transaction. The
// moves grow by a random number: where the database goes back, as a failover that loses commits
// has it, the number that a node knows does not come again for other holders.
func countMove(t *transaction) error {
	return t.run(fmt.Sprintf("UPDATE cluster SET moves=moves+%d WHERE one=1", 1+mrand.Uint64N(1<<20)))
}
