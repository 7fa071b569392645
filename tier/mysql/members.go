package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"xtimer/engine"
)

var _ engine.Members = (*Members)(nil)

// Members is the table of the nodes that share the database, for one process. The process's
// store writes under the life that Join begins. What each call locks, in this order:
//
//	Join    the row of owner; the node's row, its fences, the shards of its former life
//	Beat    the node's row
//	Evict   a fence of the own life; the other node's row, its fences, its shards
//	Take    a fence of the own life; the shards that are free
//	Give    a fence of the own life; the shards
//	Leave   the node's row, its fences, its shards
//
// and at last the moves. Who ends a life writes all its fences, so the call waits for the
// write transactions of that life: see life.
type Members struct {
	store *Store
	mu    sync.Mutex // guards waits
	// waits is since when this process has seen that the owner without nodes is to end.
	waits struct {
		process string
		since   time.Time // zero: it has not seen that
	}
}

// NewMembers returns the table of the nodes that share the database of a store.
func NewMembers(s *Store) *Members { return &Members{store: s} }

// Join begins the life of a node. If a process has the shards without nodes, Join first ends
// that one's life, as a Take does: it waits until that process begins no call any more. A
// Join that ctx ends meanwhile is continued by the next Join.
func (m *Members) Join(ctx context.Context, n engine.Node, was engine.Pulse) error {
	if err := m.succeed(ctx); err != nil {
		return err
	}
	if err := m.store.fillShards(ctx); err != nil {
		return err
	}
	if err := m.forgetGone(ctx); err != nil {
		return err
	}
	mine := &life{node: n.Name, id: n.Life}
	m.store.life.Store(mine) // what the store writes before that life has begun is refused
	return m.store.transact(ctx, "join the other nodes", func(t *transaction) error {
		o, err := lockOwner(t)
		if err != nil {
			return err
		}
		if !o.isNobody() {
			return &rowError{errors.New("a server without nodes took the shards at the same time")}
		}
		before, err := lockNode(t, n.Name)
		switch {
		case err != nil:
			return err
		case before.Life == n.Life:
			return errNothing
		case before != was:
			return engine.ErrConflict
		}
		if err := mine.begin(t); err != nil {
			return err
		}
		n.Beat = before.Beat + 1
		if err := putNode(t, &n, before.Node == ""); err != nil {
			return err
		}
		if before.Life == 0 {
			return makeSecret(t)
		}
		return moveShards(t, before.Life, engine.AllShards, func(b []byte) []byte {
			b = fmt.Appendf(b, "fence=fence+1,clean=0,"+setFormer+",holder=%d", before.Life, n.Life)
			return appendBytes(append(b, ",owner="...), n.Name)
		})
	})
}

// lockNode locks the row of a node, and returns its pulse, or zero if there is no row.
func lockNode(t *transaction, name string) (p engine.Pulse, err error) {
	b := appendBytes(append(t.buf[:0], "SELECT name,life,beat FROM nodes WHERE name="...), name)
	t.buf = append(b, " FOR UPDATE"...)
	err = t.scan(string(t.buf), func(rows *sql.Rows) error { return rows.Scan(&p.Node, &p.Life, &p.Beat) })
	return p, err
}

// putNode writes the row of a node.
func putNode(t *transaction, n *engine.Node, isNew bool) error {
	b := append(t.buf[:0], "UPDATE nodes SET "...)
	if isNew {
		b = append(t.buf[:0], "INSERT INTO nodes SET "...)
	}
	b = appendBytes(append(b, "name="...), n.Name)
	b = appendBytes(append(b, ",journal="...), n.Journal[:])
	b = appendBytes(append(b, ",address="...), n.Address)
	b = fmt.Appendf(b, ",life=%d,beat=%d,state=%d,weight=%d,skew=%d,wish=%d,speaks=%d", n.Life, n.Beat, n.State, n.Weight, n.Skew, n.Wish, n.Speaks)
	if !isNew {
		b = appendBytes(append(b, " WHERE name="...), n.Name)
	}
	t.buf = b
	return t.run(string(b))
}

// makeSecret makes the secret of the nodes, for a node that had no life: the first one had none.
func makeSecret(t *transaction) error {
	var secret [32]byte
	rand.Read(secret[:])
	t.buf = append(appendBytes(append(t.buf[:0], "UPDATE cluster SET secret="...), secret[:]), " WHERE one=1 AND secret=''"...)
	return t.run(string(t.buf))
}

// forgetGone removes the rows of nodes that have had no life for engine.NodeKept, with their
// fences. It locks no row of another node.
func (m *Members) forgetGone(ctx context.Context) error {
	gone := fmt.Sprintf("life=0 AND ended<%s-%d", serverTime, engine.NodeKept.Milliseconds())
	var names []string
	err := m.store.read(ctx, "look for nodes that are gone", func(ctx context.Context) error {
		return scan(ctx, m.store.db, "SELECT name FROM nodes WHERE "+gone, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			names = append(names, name)
			return err
		})
	})
	for _, name := range names {
		err = errors.Join(err, m.store.transact(ctx, "forget a node that is gone", func(t *transaction) error {
			n, err := t.affect(string(appendBytes(append(t.buf[:0], "DELETE FROM nodes WHERE "+gone+" AND name="...), name)))
			if err != nil || n == 0 {
				return err
			}
			return t.run(string(appendBytes(appendSlots(append(t.buf[:0], "DELETE FROM fences WHERE life=0 AND "...)), name)))
		}))
	}
	return err
}

// serverTime is the server's clock, in Unix ms.
const serverTime = "CAST(UNIX_TIMESTAMP(NOW(3))*1000 AS SIGNED)"

// Wish stores what is wished of a life.
func (m *Members) Wish(ctx context.Context, life uint64, w engine.Wish) error {
	found := int64(0)
	err := m.store.readWithin(ctx, m.store.patience, "store what is wished of a node", func(ctx context.Context) error {
		res, err := m.store.asks.ExecContext(ctx, fmt.Sprintf("UPDATE nodes SET wish=%d WHERE life=%d AND life<>0", w, life))
		if err != nil {
			return err
		}
		found, err = res.RowsAffected()
		return err
	})
	if err == nil && found == 0 {
		err = engine.ErrConflict
	}
	return err
}

// Beat changes the beat of n's life, over a connection that waits for nothing else.
func (m *Members) Beat(ctx context.Context, n engine.Node) error {
	b := fmt.Appendf(nil, "UPDATE nodes SET beat=beat+1,state=%d,weight=%d,skew=%d WHERE life=%d AND name=", n.State, n.Weight, n.Skew, n.Life)
	q := string(appendBytes(b, n.Name))
	found := int64(0)
	err := m.store.readWithin(ctx, m.store.patience, "beat", func(ctx context.Context) error {
		res, err := m.store.asks.ExecContext(ctx, q)
		if err != nil {
			return err
		}
		found, err = res.RowsAffected()
		return err
	})
	if err == nil && found == 0 {
		err = engine.ErrFenced
	}
	return err
}

// Look reads the nodes and the moves in one statement, over a connection that waits for
// nothing else. If the shards have moved it reads all of it again, as of one instant.
func (m *Members) Look(ctx context.Context, moves uint64) (seen engine.Membership, err error) {
	err = m.store.readWithin(ctx, m.store.patience, "look at the nodes", func(ctx context.Context) error {
		if seen, err = lookAtNodes(ctx, m.store.asks); err != nil || seen.Moves == moves {
			return err
		}
		tx, err := m.store.asks.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it only read
		if seen, err = lookAtNodes(ctx, tx); err != nil {
			return err
		}
		seen.Shards = new([engine.Shards]engine.Holding)
		return scan(ctx, tx, "SELECT shard,holder,fence,heir,clean,former FROM shards", readHoldings(seen.Shards))
	})
	return seen, err
}

func lookAtNodes(ctx context.Context, from querier) (seen engine.Membership, err error) {
	const q = "SELECT " + serverTime + ",c.moves,c.secret,n.name,n.journal,n.life,n.beat,n.state,n.weight,n.skew,n.wish,n.speaks,n.address FROM cluster c LEFT JOIN nodes n ON TRUE WHERE c.one=1 ORDER BY n.name"
	err = scan(ctx, from, q, func(rows *sql.Rows) error {
		var name, address sql.NullString // NULL in the row that stands for no nodes
		var secret, journal sql.RawBytes
		var life, beat sql.Null[uint64]
		var state, weight, skew, wish, speaks sql.NullInt64
		if err := rows.Scan(&seen.Now, &seen.Moves, &secret, &name, &journal, &life, &beat, &state, &weight, &skew, &wish, &speaks, &address); err != nil {
			return err
		}
		copy(seen.Secret[:], secret)
		if !name.Valid {
			return nil
		}
		n := engine.Node{Name: name.String, Life: life.V, Beat: beat.V, State: engine.NodeState(state.Int64), Weight: int(weight.Int64), Skew: skew.Int64, Wish: engine.Wish(wish.Int64), Speaks: int(speaks.Int64), Address: address.String}
		copy(n.Journal[:], journal)
		seen.Nodes = append(seen.Nodes, n)
		return nil
	})
	if err == nil && seen.Moves == 0 {
		err = &rowError{damaged("cluster", 1, errors.New("the moves are missing"))}
	}
	return seen, err
}

func readHoldings(into *[engine.Shards]engine.Holding) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var i int
		var h engine.Holding
		if err := rows.Scan(&i, &h.Holder, &h.Fence, &h.Heir, &h.Clean, &h.Former); err != nil {
			return err
		}
		if i < 0 || i >= len(into) {
			return &rowError{damaged("shards", i, errNoShard)}
		}
		into[i] = h
		return nil
	}
}

// Evict ends the life of another node by its pulse.
func (m *Members) Evict(ctx context.Context, id uint64, dead engine.Pulse) error {
	return m.write(ctx, "evict a node", id, slotEvict, func(t *transaction, _ *life) error {
		p, err := lockNode(t, dead.Node)
		if err != nil {
			return err
		}
		if p != dead || p.Life == 0 {
			return engine.ErrConflict
		}
		return endNode(t, p)
	})
}

// Take makes a life the holder of shards that are free.
func (m *Members) Take(ctx context.Context, id uint64, shards engine.Set) error {
	return m.write(ctx, "take shards", id, slotMembers, func(t *transaction, mine *life) error {
		return moveShards(t, 0, shards, func(b []byte) []byte {
			b = strconv.AppendUint(append(b, "fence=fence+1,heir='',holder="...), mine.id, 10)
			return appendBytes(append(b, ",owner="...), mine.node)
		})
	})
}

// Give frees shards of a life for their heirs. It is refused where the database has lost a commit of
// the life: the heir of a clean shard would repeat, without a mark, what a settle had stored.
func (m *Members) Give(ctx context.Context, id uint64, shards []engine.Handover) error {
	return m.write(ctx, "give shards", id, slotMembers, func(t *transaction, mine *life) error {
		if err := mine.has(t.ctx, t.tx, mine.commits()); err != nil {
			return err
		}
		given := int64(0)
		for _, g := range shards {
			b := appendBytes(append(t.buf[:0], "UPDATE shards SET holder=0,heir="...), g.Heir)
			former := uint64(0)
			if g.Unclean {
				former = id
			}
			t.buf = fmt.Appendf(b, ",clean=%t,former=%d WHERE shard=%d AND holder=%d AND fence=%d", !g.Unclean, former, g.Shard, id, g.Fence)
			n, err := t.affect(string(t.buf))
			if err != nil {
				return err
			}
			given += n
		}
		if given == 0 {
			return errNothing
		}
		return countMove(t)
	})
}

// Leave ends the life of this process.
func (m *Members) Leave(ctx context.Context, id uint64) error {
	mine := m.store.life.Load()
	if mine == nil || mine.id != id {
		return nil
	}
	return m.store.transact(ctx, "leave the other nodes", func(t *transaction) error {
		p, err := lockNode(t, mine.node)
		if err != nil {
			return err
		}
		if p.Life != id {
			return errNothing
		}
		return endNode(t, p)
	})
}

// Newest is the greatest id that was ever stored.
func (m *Members) Newest(ctx context.Context) (id engine.TimerID, err error) {
	err = m.store.read(ctx, "look for the newest id", func(ctx context.Context) error {
		id, err = m.store.newest.read(ctx, m.store.db)
		return err
	})
	return id, err
}

// write runs f in a transaction of the life of this process.
func (m *Members) write(ctx context.Context, what string, id uint64, slot int64, f func(t *transaction, mine *life) error) error {
	mine := m.store.life.Load()
	if mine == nil || mine.id != id {
		return engine.ErrFenced
	}
	return m.store.transact(ctx, what, func(t *transaction) error {
		if err := mine.own(t, m.store.slot(slot)); err != nil {
			return err
		}
		return f(t, mine)
	})
}

// setFormer makes a life the former one of a shard, unless the life has not gained the shard: then
// the former one stays. A mark of the life says that it has, see Store.mark.
const setFormer = "former=IF(former=0,%d,former)"

// endNode ends the life of a node, whose row is locked, and frees its shards.
func endNode(t *transaction, p engine.Pulse) error {
	b := appendBytes(appendSlots(append(t.buf[:0], "UPDATE fences SET life=0 WHERE "...)), p.Node)
	if err := t.run(string(fmt.Appendf(b, " AND life=%d", p.Life))); err != nil {
		return err
	}
	if err := t.run("UPDATE nodes SET life=0,ended=" + serverTime + " WHERE name=" + string(appendBytes(nil, p.Node))); err != nil {
		return err
	}
	return moveShards(t, p.Life, engine.AllShards, func(b []byte) []byte {
		return fmt.Appendf(b, "holder=0,heir='',clean=0,"+setFormer, p.Life)
	})
}

// appendSlots appends the condition of the fences of a node, whose name follows. Only their
// rows are looked at.
func appendSlots(b []byte) []byte {
	b = append(b, "slot IN ("...)
	for slot := range int64(slotsMade) {
		if slot > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, slot)
	}
	return append(b, ") AND node="...)
}
