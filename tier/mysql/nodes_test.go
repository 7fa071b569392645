package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
)

// settleOwed settles without marks.
func settleOwed(s *Store, t *testing.T) error {
	return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: benchNow}, NotBefore: benchNow}}})
}

func isRefused(err error) bool {
	var f *engine.Fault
	return errors.As(err, &f) && f.Code == "nodes_share_database"
}

// TestTakeWhileNodesBeat: a server without nodes does not take the shards of nodes that beat.
func TestTakeWhileNodesBeat(t *testing.T) {
	s := heirs(t, never, "one")[0]
	a := stationOver(t, s, "a", 1)
	a.ok(a.join())
	a.ok(a.take(1))
	taken := make(chan error, 1)
	go func() {
		_, _, err := s.Take(t.Context(), "n")
		taken <- err
	}()
	for len(taken) == 0 {
		a.ok(a.beat())
		time.Sleep(10 * time.Millisecond)
	}
	if err := <-taken; !isRefused(err) {
		t.Fatal(err)
	}
	a.ok(a.settle(1, benchNow))
}

// TestTakeOfSilentNodes: a server without nodes takes the shards of nodes that have not
// beaten for long enough, and ends their lives.
func TestTakeOfSilentNodes(t *testing.T) {
	const waits = 500 * time.Millisecond
	s := heirs(t, waits, "one")[0]
	a := stationOver(t, s, "a", 1)
	a.ok(a.join())
	a.ok(a.take(1))
	a.ok(a.give(1, "b"))
	before := a.look().Moves
	silent, err := s.silentNodes(t.Context())
	if err != nil || len(silent) != 1 {
		t.Fatal(silent, err)
	}
	a.ok(a.beat()) // between the last look at it and the transaction
	if err := s.transact(t.Context(), "end the nodes", func(tx *transaction) error { return endNodes(tx, silent) }); !isRefused(err) {
		t.Fatal(err)
	}
	began := time.Now()
	mustTake(t, s)
	if took := time.Since(began); took < waits {
		t.Errorf("taken after %v", took)
	}
	owns(t, s, nil)
	a.is(a.beat(), engine.ErrFenced)
	a.is(a.take(2), engine.ErrFenced)
	a.is(settleOwed(a.Store, t), engine.ErrFenced)
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: 2, Fence: 1, W: benchNow}}}); err != nil {
		t.Error(err)
	}
	now := a.look()
	if now.Moves == before || now.Nodes[0].Life != 0 || now.Shards[1].Heir != "" || now.Shards[1].Clean {
		t.Errorf("%+v, %+v", now.Nodes, now.Shards[1])
	}
	// A server that is alone does not wait for nodes that are over.
	s.heirWaits = never
	mustTake(t, s)
}

// server has taken the shards without nodes; a timer of it was written by a former program.
func server(t *testing.T, waits time.Duration) *Store {
	t.Helper()
	s := heirs(t, waits, "one")[0]
	mustTake(t, s)
	mustApply(t, s, create(shot(1, "one")))
	if _, err := s.db.Exec("UPDATE timers SET shard=-1"); err != nil {
		t.Fatal(err)
	}
	return s
}

// succeeded checks that a node has the place of a server.
func (s *station) succeeded(former *Store) {
	s.Helper()
	s.is(former.Owns(s.Context()), engine.ErrFenced)
	s.is(settleOwed(former, s.T), engine.ErrFenced)
	for i, h := range s.look().Shards {
		if h != (engine.Holding{Fence: 2}) {
			s.Errorf("shard %d: %+v", i, h)
		}
	}
	s.ok(s.table.Take(s.Context(), s.node.Life, engine.AllShards))
	s.ok(s.settle(1, benchNow))
	n := 0
	s.ok(s.db.QueryRow("SELECT COUNT(*) FROM timers WHERE shard<0").Scan(&n))
	if n > 0 {
		s.Errorf("%d timers have no shard", n)
	}
	s.ok(s.db.QueryRow("SELECT COUNT(*) FROM fences WHERE node='n'").Scan(&n))
	if n > 0 {
		s.Errorf("%d fences of the former server are left", n)
	}
}

// TestJoinAfterServer: the first node has the place of a server that was closed.
func TestJoinAfterServer(t *testing.T) {
	s := server(t, never)
	a := stationOver(t, s, "a", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a.ok(a.join())
	open(t, s)
	a.succeeded(s)
}

// TestJoinEndsServer: a server without nodes hears of a node, stores what it has left, and
// closes; then the node joins.
func TestJoinEndsServer(t *testing.T) {
	s := server(t, never)
	a := stationOver(t, s, "a", 1)
	joined := make(chan error, 1)
	go func() { joined <- a.table.Join(t.Context(), a.node, engine.Pulse{}) }()
	patient(t, "the server hears of the node", func() bool { return errors.Is(s.Owns(t.Context()), engine.ErrFenced) })
	if err := settleOwed(s, t); err != nil {
		t.Errorf("what it settles after that: %v", err)
	}
	if len(joined) > 0 {
		t.Fatal("the node did not wait")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a.ok(<-joined)
	open(t, s)
	a.succeeded(s)
}

// TestNodesOutwaitServer: of a server that hears nothing the nodes wait for the end, however
// many wait, and over many Joins that end with their contexts.
func TestNodesOutwaitServer(t *testing.T) {
	const waits = 2 * time.Second
	s := server(t, waits)
	ns := []*station{stationOver(t, s, "a", 1), stationOver(t, s, "b", 2)}
	began := time.Now()
	var joins sync.WaitGroup
	for _, n := range ns {
		joins.Go(func() {
			for tries := 1; ; tries++ {
				ctx, cancel := context.WithTimeout(t.Context(), waits/2)
				err := n.table.Join(ctx, n.node, engine.Pulse{})
				cancel()
				if err == nil {
					break
				}
				if time.Since(began) > time.Minute {
					t.Errorf("node %s, after %d tries: %v", n.node.Name, tries, err)
					return
				}
			}
			if took := time.Since(began); took < waits {
				t.Errorf("joined after %v", took)
			}
		})
	}
	joins.Wait()
	if !t.Failed() {
		ns[1].ok(ns[1].beat())
		ns[0].succeeded(s)
	}
}

// TestJoinBesideTake: a server that takes the shards while a node joins keeps them.
func TestJoinBesideTake(t *testing.T) {
	s := server(t, never)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, s)
	a := stationOver(t, s, "a", 1)
	other := holder(t, a.Store)
	_, err := other.Exec("SELECT 1 FROM timers WHERE id=1 FOR UPDATE")
	a.ok(err)
	joined, taken := make(chan error, 1), make(chan error, 1)
	go func() { joined <- a.table.Join(t.Context(), a.node, engine.Pulse{}) }()
	isNobody := func() bool {
		var o owner
		err := s.scan(t.Context(), selectOwner, readOwner(&o))
		return err == nil && o.isNobody()
	}
	patient(t, "the shards are free", isNobody) // the node waits for the timer
	go func() {
		_, _, err := s.Take(t.Context(), "n")
		taken <- err
	}()
	patient(t, "the shards are taken", func() bool { return !isNobody() })
	a.ok(other.Rollback())
	a.ok(<-taken)
	if err := <-joined; err == nil {
		t.Error("the node joined beside the server")
	}
	owns(t, s, nil)
	a.is(a.beat(), engine.ErrFenced)
	if err := settleOwed(s, t); err != nil {
		t.Error(err)
	}
}

// TestUpgradeToNodes: a program of schema 9 writes on while its database is upgraded, by an
// upgrade that is cut short after each statement, until a node joins.
func TestUpgradeToNodes(t *testing.T) {
	s := fresh(t)
	s.patience, s.answer = time.Minute, time.Minute
	var err error
	if s.pools, err = connect(s.cfg.DSN); err != nil {
		t.Fatal(err)
	}
	const schema = 10
	if err := s.migrateTo(t.Context(), migrations()[:schema-1]); err != nil {
		t.Fatal(err)
	}
	s.inserts = newInserts()
	if err := s.inserts.prepare(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	s.opened.Store(true)
	s.queue.open()
	for i := range int64(committers) {
		s.work.Go(func() { s.commitLoop(i + 1) })
	}
	t.Cleanup(func() { _ = s.Close() })
	mine := &life{node: "n", id: s.id}
	err = s.transact(t.Context(), "take the shards as schema 9 did", func(tx *transaction) error {
		if err := s.inherit(tx); err != nil {
			return err
		}
		if err := mine.replaceAll(tx); err != nil {
			return err
		}
		return tx.run(fmt.Sprintf("UPDATE shards SET fence=fence+1,holder=%d,owner='n'", mine.id))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.life.Store(mine)
	id := engine.TimerID(0)
	writes := func() {
		t.Helper()
		id++
		mustApply(t, s, create(shot(id, fmt.Sprint("n", id))))
		err := s.transact(t.Context(), "store watermarks as schema 9 did", func(tx *transaction) error {
			if err := mine.own(tx, s.slot(slotMembers)); err != nil {
				return err
			}
			return tx.run(fmt.Sprintf("UPDATE shards SET watermark=%d,owner='n' WHERE shard IN (1,7) AND fence=1 AND holder=%d", benchNow+int64(id), mine.id))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range migrations()[schema-1].statements {
		short := migrations()[:schema]
		short[schema-1].statements = append(slices.Clone(short[schema-1].statements[:n+1]), "NONSENSE")
		if err := s.migrateTo(t.Context(), short); number(err) != 1064 {
			t.Fatalf("%d statements: %v", n+1, err)
		}
		writes()
	}
	if err := s.migrateTo(t.Context(), migrations()[:schema]); err != nil {
		t.Fatal(err)
	}
	writes()
	s.heirWaits = time.Second
	a := stationOver(t, s, "a", 1)
	a.ok(a.join())
	a.is(settleOwed(s, t), engine.ErrFenced)
	a.ok(a.take(1))
	if w := a.watermark(1); w != benchNow+int64(id) {
		t.Errorf("the watermark is %d", w)
	}
	var h engine.Holding
	a.ok(a.scan(t.Context(), "SELECT heir,clean FROM shards WHERE shard=7", func(rows *sql.Rows) error { return rows.Scan(&h.Heir, &h.Clean) }))
	if h != (engine.Holding{}) {
		t.Errorf("%+v", h)
	}
}
