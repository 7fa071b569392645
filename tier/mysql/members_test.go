package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// station is the process of one node.
type station struct {
	*testing.T
	*Store
	table *Members
	node  engine.Node
}

// stationOver is a node that has not joined, over the database of a store.
func stationOver(t *testing.T, first *Store, name string, life uint64) *station {
	t.Helper()
	s := New(first.cfg)
	s.cfg.Folder = name
	s.patience, s.answer, s.heirWaits = time.Minute, time.Minute, first.heirWaits
	open(t, s)
	n := engine.Node{Name: name, Life: life, State: engine.Serving, Weight: 1, Journal: [16]byte{byte(life)}}
	return &station{t, s, NewMembers(s), n}
}

// nodes have joined one database. Node i has the life i+1.
func nodes(t *testing.T, names ...string) (ss []*station) {
	t.Helper()
	first := fresh(t)
	for i, name := range names {
		s := stationOver(t, first, name, uint64(i+1))
		s.ok(s.join())
		ss = append(ss, s)
	}
	return ss
}

func (s *station) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *station) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%v, want %v", err, want)
	}
}

func (s *station) look() engine.Membership {
	s.Helper()
	seen, err := s.table.Look(s.Context(), 0)
	s.ok(err)
	return seen
}

// pulse is that of the node's row.
func (s *station) pulse() engine.Pulse {
	s.Helper()
	for _, n := range s.look().Nodes {
		if n.Name == s.node.Name {
			return n.Pulse()
		}
	}
	return engine.Pulse{}
}

func (s *station) join() error {
	s.Helper()
	return s.table.Join(s.Context(), s.node, s.pulse())
}

func (s *station) beat() error { return s.table.Beat(s.Context(), s.node) }

func (s *station) take(shards ...int) error {
	return s.table.Take(s.Context(), s.node.Life, engine.SetOf(shards...))
}

func (s *station) give(shard int, heir string) error {
	s.Helper()
	return s.table.Give(s.Context(), s.node.Life, []engine.Handover{{Shard: shard, Fence: s.look().Shards[shard].Fence, Heir: heir}})
}

func (s *station) evict(of *station) error {
	s.Helper()
	return s.table.Evict(s.Context(), s.node.Life, of.pulse())
}

func (s *station) leaveNodes() error { return s.table.Leave(s.Context(), s.node.Life) }

// settle moves the watermark of a shard.
func (s *station) settle(shard int, w int64) error {
	s.Helper()
	fence := s.look().Shards[shard].Fence
	return s.Settle(s.Context(), &engine.Settlement{Owner: s.node.Name, Marks: []engine.Mark{{Shard: shard, Fence: fence, W: w}}})
}

func (s *station) watermark(shard int) int64 {
	s.Helper()
	shards, err := s.Shards(s.Context())
	s.ok(err)
	return shards[shard].Watermark
}

// holders checks which life holds each of some shards.
func (s *station) holders(want map[int]uint64) {
	s.Helper()
	for shard, life := range want {
		if h := s.look().Shards[shard]; h.Holder != life {
			s.Errorf("shard %d: %+v, want the holder %d", shard, h, life)
		}
	}
}

// TestNodesThatAreGone: a join removes the rows of nodes that have had no life for an hour.
func TestNodesThatAreGone(t *testing.T) {
	ns := nodes(t, "a", "b", "c", "d")
	a, b, c := ns[0], ns[1], ns[2]
	for _, x := range []*station{b, c} {
		x.ok(x.take(int(x.node.Life)))
		x.ok(x.leaveNodes())
	}
	_, err := a.db.Exec("UPDATE nodes SET ended=ended-3600000 WHERE name IN ('b','d')")
	a.ok(err)
	e := stationOver(t, a.Store, "e", 9)
	e.ok(e.join())
	var names []string
	for _, n := range e.look().Nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"a", "c", "d", "e"}) {
		t.Errorf("the nodes are %v", names)
	}
	fences := 0
	a.ok(a.db.QueryRow("SELECT COUNT(*) FROM fences WHERE node='b'").Scan(&fences))
	if fences > 0 {
		t.Errorf("%d fences of a node that is gone", fences)
	}
	b.node.Life = 10
	b.ok(b.join())
	b.ok(b.take(2))
	b.holders(map[int]uint64{2: 10})
}

// TestMembersLockTheirOwn: no call waits for what another node writes, except for the node
// whose life it ends.
func TestMembersLockTheirOwn(t *testing.T) {
	ns := nodes(t, "a", "b", "c")
	a, b, c := ns[0], ns[1], ns[2]
	a.ok(a.take(1, 2))
	b.ok(b.take(3, 4))
	c.ok(c.take(5, 6, 250))
	d, next := stationOver(t, a.Store, "d", 4), stationOver(t, a.Store, "a", 9)
	other := holder(t, c.Store)
	for _, q := range []string{
		"UPDATE fences SET n=n+1 WHERE node='c'", "UPDATE nodes SET beat=beat+1 WHERE name='c'", "UPDATE shards SET watermark=watermark+1 WHERE holder=3",
	} {
		_, err := other.Exec(q)
		c.ok(err)
	}
	for _, call := range []struct {
		what string
		call func() error
	}{
		{"a beat", a.beat},
		{"a join", d.join},
		{"a take of all", func() error { return d.table.Take(t.Context(), 4, engine.AllShards) }},
		{"a gift", func() error { return b.give(3, "a") }},
		{"a settle", func() error { return b.settle(4, benchNow) }},
		{"a join of the next life", next.join},
		{"an eviction", func() error { return next.evict(b) }},
		{"the end of a life", d.leaveNodes},
	} {
		if err := call.call(); err != nil {
			t.Fatalf("%s: %v", call.what, err)
		}
	}
	a.holders(map[int]uint64{1: 9, 2: 9, 3: 0, 4: 0, 5: 3, 6: 3, 7: 0, 250: 3})
}

// TestEvictWaits: an eviction waits for what the dead life has under way, or until the server
// ends the session of the dead life, which it does 2 s after the last statement. After that
// nothing is stored under the life.
func TestEvictWaits(t *testing.T) {
	for _, ended := range []bool{false, true} {
		t.Run(fmt.Sprint("ended by the server=", ended), func(t *testing.T) {
			t.Parallel()
			ns := nodes(t, "a", "b")
			a, b := ns[0], ns[1]
			b.ok(b.take(5))
			b.ok(b.settle(5, benchNow))
			written, goOn, dead := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			first := true
			go func() {
				dead <- b.write(t.Context(), "settle", slotSettle, func(tx *transaction) error {
					if !first {
						return nil
					}
					first = false
					if !ended {
						if err := tx.run(maySilent); err != nil {
							return err
						}
					}
					if err := tx.run("UPDATE shards SET watermark=7777777777777 WHERE shard=5"); err != nil {
						return err
					}
					close(written)
					<-goOn
					return nil
				})
			}()
			<-written
			evicted, silent := make(chan error, 1), time.Now()
			go func() { evicted <- a.evict(b) }()
			want := benchNow
			if !ended {
				want = 7777777777777
				patient(t, "it waits", func() bool {
					out := servertest.SharedMariaDB(t).Do("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE fences SET life=0%'")
					return strings.TrimSpace(out) != "0" && len(evicted) == 0
				})
				close(goOn)
				a.ok(<-dead)
			}
			a.ok(<-evicted)
			if ended {
				if took := time.Since(silent); took > 8*time.Second {
					t.Errorf("the node was evicted %v after its last statement", took)
				}
				close(goOn)
				b.is(<-dead, engine.ErrFenced)
			}
			if w := a.watermark(5); w != want {
				t.Errorf("the watermark is %d, want %d", w, want)
			}
			b.is(b.settle(5, benchNow+1), engine.ErrFenced)
			_, err := b.Apply(t.Context(), create(shot(1, "one")))
			b.is(err, engine.ErrFenced)
			a.ok(a.take(5))
			a.ok(a.settle(5, want+1))
		})
	}
}

// TestMovesAfterTheDatabaseWentBack: the number of moves that a node knows does not come again
// for other holders when the database goes back and shards move anew.
func TestMovesAfterTheDatabaseWentBack(t *testing.T) {
	a := nodes(t, "a")[0]
	before := a.look().Moves
	a.ok(a.take(1))
	known := a.look().Moves
	for _, q := range []string{fmt.Sprintf("UPDATE cluster SET moves=%d", before), "UPDATE shards SET holder=0,fence=0 WHERE shard=1"} {
		_, err := a.db.Exec(q)
		a.ok(err)
	}
	a.ok(a.take(2))
	seen, err := a.table.Look(t.Context(), known)
	a.ok(err)
	if seen.Shards == nil {
		t.Errorf("there are %d moves again: the node does not see that shard 1 is free", known)
	}
}

// TestGiftAfterTheDatabaseWentBack: a shard is not given whose results the database has lost since:
// its heir would call them again, without a mark.
func TestGiftAfterTheDatabaseWentBack(t *testing.T) {
	a := nodes(t, "a", "b")[0]
	a.ok(a.take(1))
	a.ok(a.settle(1, benchNow))
	_, err := a.db.Exec("UPDATE fences SET n=n-1 WHERE n>0 AND node='a' AND slot=" + strconv.FormatInt(a.slot(slotSettle), 10))
	a.ok(err)
	err = a.table.Give(t.Context(), a.node.Life, []engine.Handover{{Shard: 1, Fence: a.look().Shards[1].Fence, Heir: "b"}})
	var f *engine.Fault
	if !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Code != "database_went_back" {
		t.Error(err)
	}
}

// TestMembersDeadlock: an eviction that the server gives up for another transaction is made
// again.
func TestMembersDeadlock(t *testing.T) {
	ns := nodes(t, "a", "b")
	a, b := ns[0], ns[1]
	f := &faulty{}
	f.under(t, a.Store)
	dead := b.pulse()
	other := holder(t, b.Store)
	exec := func(q string) {
		t.Helper()
		_, err := other.Exec(q)
		b.ok(err)
	}
	for i := range 200 { // it has more to undo, so the server gives up the other one
		exec(fmt.Sprintf("INSERT INTO labels VALUES ('x','%d',1)", i))
	}
	exec("SELECT 1 FROM fences WHERE node='b' AND slot=63 FOR UPDATE")
	done := make(chan error, 1)
	go func() { done <- a.table.Evict(t.Context(), 1, dead) }()
	patient(t, "a wait for a lock", waiting(servertest.SharedMariaDB(t), 1))
	exec("SELECT 1 FROM nodes WHERE name='b' FOR UPDATE")
	b.ok(other.Commit())
	a.ok(<-done)
	if f.transactions() < 2 {
		t.Error("there was no deadlock")
	}
	b.is(b.beat(), engine.ErrFenced)
}

// TestMutualEviction: of two nodes that evict each other one lives on.
func TestMutualEviction(t *testing.T) {
	ns := nodes(t, "a", "b")
	a, b := ns[0], ns[1]
	for i := range 10 {
		errs := make(chan error, 1)
		pa, pb := a.pulse(), b.pulse()
		go func() { errs <- a.table.Evict(t.Context(), a.node.Life, pb) }()
		second := b.table.Evict(t.Context(), b.node.Life, pa)
		first := <-errs
		alive, over := a, b
		if second == nil {
			alive, over, first, second = b, a, second, first
		}
		if first != nil || !errors.Is(second, engine.ErrFenced) {
			t.Fatalf("round %d: %v, %v", i, first, second)
		}
		alive.ok(alive.beat())
		over.is(over.beat(), engine.ErrFenced)
		over.node.Life += 100
		over.ok(over.join())
	}
}

// TestMembersWithoutAnswer: a call whose commit got no answer is made once, whether the
// commit was made or not.
func TestMembersWithoutAnswer(t *testing.T) {
	made := func(commit func() error, cut func()) error { _ = commit(); cut(); return mysql.ErrInvalidConn }
	lost := func(_ func() error, cut func()) error { cut(); return mysql.ErrInvalidConn }
	for _, fail := range []func(func() error, func()) error{made, lost} {
		ns := nodes(t, "b")
		b := ns[0]
		a := stationOver(t, b.Store, "a", 9)
		f := &faulty{}
		f.under(t, a.Store)
		once := func(call func() error) error {
			t.Helper()
			f.failOnce(fail)
			return call()
		}
		a.ok(once(a.join))
		if p := a.pulse(); p != (engine.Pulse{Node: "a", Life: 9, Beat: 1}) {
			t.Errorf("joined: %+v", p)
		}
		a.ok(once(func() error { return a.take(3, 4) }))
		a.holders(map[int]uint64{3: 9, 4: 9})
		if h := a.look().Shards[3]; h.Fence != 1 {
			t.Errorf("taken: %+v", h)
		}
		a.ok(once(func() error { return a.give(4, "b") }))
		if h := a.look().Shards[4]; h != (engine.Holding{Fence: 1, Heir: "b", Clean: true}) {
			t.Errorf("given: %+v", h)
		}
		if err := once(func() error { return a.evict(b) }); err != nil && !errors.Is(err, engine.ErrConflict) {
			t.Error(err)
		}
		b.is(b.beat(), engine.ErrFenced)
		a.ok(once(a.leaveNodes))
		a.holders(map[int]uint64{3: 0})
		a.is(a.beat(), engine.ErrFenced)
	}
}

// TestBeatWithoutAnswer: a beat that got no answer ends with its context, may be carried out,
// and can be repeated.
func TestBeatWithoutAnswer(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	link := servertest.NewProxy(t, server.Addr())
	first := New(Config{DSN: strings.Replace(server.DSN("x"), server.Addr(), link.Addr(), 1)})
	a := stationOver(t, first, "a", 1)
	a.ok(a.join())
	was := a.pulse().Beat
	link.SwallowReplies(true)
	a.patience = time.Second
	if err := a.beat(); err == nil {
		t.Error("a beat without an answer was acknowledged")
	}
	link.Heal()
	a.patience = time.Minute
	a.ok(a.beat())
	if now := a.pulse().Beat; now < was+1 || now > was+6 {
		t.Errorf("the beat is %d, was %d", now, was)
	}
}

// TestBeatWhileBusy: beats and looks wait for no connection of those that do the work.
func TestBeatWhileBusy(t *testing.T) {
	a := nodes(t, "a")[0]
	for range a.db.Stats().MaxOpenConnections {
		conn, err := a.db.Conn(t.Context())
		a.ok(err)
		defer conn.Close()
	}
	a.ok(a.beat())
	a.look()
}

// TestBeforeItJoins: a process whose Join was refused, or not carried out, stores nothing.
func TestBeforeItJoins(t *testing.T) {
	a := nodes(t, "a")[0]
	b := stationOver(t, a.Store, "b", 2)
	b.is(b.take(1), engine.ErrFenced)
	b.is(b.table.Join(t.Context(), b.node, engine.Pulse{Node: "b", Life: 7, Beat: 1}), engine.ErrConflict)
	b.is(b.take(1), engine.ErrFenced)
	b.is(b.Settle(t.Context(), &engine.Settlement{Owner: "b", Pay: []engine.Key{{Timer: 1, Due: benchNow}}}), engine.ErrFenced)
	_, err := b.Apply(t.Context(), create(shot(1, "one")))
	b.is(err, engine.ErrFenced)
}

// TestMembersReadLittle: no call reads the timers, or what is owed.
func TestMembersReadLittle(t *testing.T) {
	ns := nodes(t, "a", "b")
	a, b := ns[0], ns[1]
	const n = 6000
	st := &engine.Settlement{Owner: "n"}
	var cs []*engine.Change
	for i := range n {
		cs = append(cs, create(benchTimer(i)))
		st.Owe = append(st.Owe, engine.Owed{Key: engine.Key{Timer: benchTimer(i).ID, Due: benchNow}, NotBefore: benchNow})
	}
	for _, applied := range a.ApplyAll(t.Context(), cs) {
		a.ok(applied.Err)
	}
	a.ok(a.Settle(t.Context(), st))
	_, err := a.db.Exec("ANALYZE TABLE timers, owed")
	a.ok(err)
	next := stationOver(t, a.Store, "a", 9)
	dead, former := b.pulse(), a.pulse()
	read := countReads(t, next.Store)
	for _, call := range []struct {
		what string
		call func() error
	}{
		{"a join", func() error { return next.table.Join(t.Context(), next.node, former) }},
		{"a take", func() error { return next.take(1, 2, 3) }},
		{"an eviction", func() error { return next.table.Evict(t.Context(), 9, dead) }},
		{"a gift", func() error { return next.give(1, "b") }},
		{"the end", next.leaveNodes},
	} {
		before := read()
		next.ok(call.call())
		if cost := read() - before; cost > 3*engine.Shards {
			t.Errorf("%s: %d rows read", call.what, cost)
		}
	}
}
