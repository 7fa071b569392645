package mysql

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
)

// marking is a settlement that moves the watermarks of two shards.
func marking(w int64) *engine.Settlement {
	return &engine.Settlement{
		Owner: "n", Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: w}, NotBefore: w}},
		Marks: []engine.Mark{{Shard: 1, Fence: 1, W: w}, {Shard: 7, Fence: 1, W: w + 1}},
	}
}

// TestLifeEnds: a life that has ended in fences writes nothing more, whatever it is.
func TestLifeEnds(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	one := create(recurringTimer(1))
	mustApply(t, s, one)
	st := marking(benchNow)
	st.LeftOut = []int64{benchNow - benchNow%minute}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("UPDATE fences SET life=0"); err != nil {
		t.Fatal(err)
	}
	for what, write := range map[string]func() error{
		"a create": func() error { _, err := s.Apply(t.Context(), create(shot(2, "two"))); return err },
		"a delete": func() error { _, err := s.Apply(t.Context(), &engine.Change{ID: 1, Was: 1}); return err },
		"a settle": func() error { return s.Settle(t.Context(), marking(benchNow+5)) },
		"a settle without marks": func() error {
			return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Pay: []engine.Key{{Timer: 1, Due: benchNow}}})
		},
		"a settle beside another": func() error {
			return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Beside: true, Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: benchNow}}}})
		},
		"a bound": func() error {
			return s.Raise(t.Context(), []engine.Bound{{ID: 1, Version: 1, Due: benchNow + dayMs}})
		},
		"an archive":       func() error { return s.Raise(t.Context(), []engine.Bound{{ID: 1, Version: 1, Finished: true}}) },
		"a removal":        func() error { return s.remove(t.Context(), []engine.TimerID{1}, benchNow+dayMs) },
		"old versions":     func() error { return s.deleteVersions(t.Context(), []versionMark{{timer: 1, version: 1}}) },
		"minutes left out": func() error { _, err := s.forgetLeftOut(t.Context(), benchNow+dayMs); return err },
		"a sweep":          func() error { _, err := s.forgetFeed(t.Context(), benchNow+dayMs); return err },
	} {
		if err := write(); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func recurringTimer(id engine.TimerID) *engine.Timer {
	x := shot(id, "every")
	x.Schedule, x.At, x.LastDue = engine.Schedule{Cron: "* * * * *"}, 0, 0
	return x
}

// TestEachWriteIsCounted: a transaction writes its fence, and does not only lock it.
func TestEachWriteIsCounted(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	counted := func() (n int) {
		t.Helper()
		if err := s.db.QueryRow("SELECT CAST(SUM(n) AS SIGNED) FROM fences WHERE node='n'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	mustApply(t, s, create(shot(1, "one")))
	if n := counted(); n != 1 {
		t.Errorf("%d after a create", n)
	}
	if err := s.Settle(t.Context(), marking(benchNow)); err != nil {
		t.Fatal(err)
	}
	if n := counted(); n != 2 {
		t.Errorf("%d after a settle", n)
	}
}

// TestSettleBeside: a settlement beside another is stored while the other is under way, in the
// table that both write, and while the fate of a commit is not known.
func TestSettleBeside(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	row := func(i int) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: engine.TimerID(i), Due: benchNow}, Begun: true, NotBefore: benchNow}
	}
	var stored, under []engine.Owed
	for i := range 300 {
		stored, under = append(stored, row(3*i)), append(under, row(3*i+1))
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: stored}); err != nil {
		t.Fatal(err)
	}
	tx := &transaction{tx: holder(t, s), ctx: t.Context()}
	err := errors.Join(s.own(tx, s.slot(slotSettle)), s.mark(tx, "n", marking(benchNow).Marks), putOwed(tx, under))
	for i := range stored[:100] {
		err = errors.Join(err, payOwed(tx, []engine.Key{stored[i].Key}))
	}
	if err != nil {
		t.Fatal(err)
	}
	doubt := &op{done: make(chan struct{})}
	s.doubts.leave(doubt)
	for i := 300; i < 900; i += 10 { // rows that stand, too
		st := &engine.Settlement{Owner: "n", Beside: true, Owe: []engine.Owed{row(i)}}
		if i%3 == 1 {
			st.Owe[0].Key.Due++
		}
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	close(doubt.done)
	if err := tx.tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestHolder: shards that another life holds are not marked, and nothing comes with the
// marks, also where the fence is the same.
func TestHolder(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	if _, err := s.db.Exec("UPDATE shards SET holder=holder-1 WHERE shard=7"); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), marking(benchNow)); !errors.Is(err, engine.ErrFenced) {
		t.Fatal(err)
	}
	if rows, err := s.OwedPage(t.Context(), 1, -1, 10); err != nil || len(rows) > 0 {
		t.Fatalf("%d rows are owed, %v", len(rows), err)
	}
}

// TestDatabaseWentBack: a process ends when its database has lost what the process stored;
// the next one goes on from what is there.
func TestDatabaseWentBack(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	for _, w := range []int64{benchNow, benchNow + 10, benchNow + 5} { // a mark may be lower than what stands
		if err := s.Settle(t.Context(), marking(w)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec("UPDATE shards SET watermark=watermark-1 WHERE shard=7"); err != nil {
		t.Fatal(err)
	}
	err := s.Settle(t.Context(), marking(benchNow+20))
	var f *engine.Fault
	if !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Code != "database_went_back" {
		t.Fatal(err)
	}
	mustTake(t, s)
	st := marking(benchNow + 20)
	for i := range st.Marks {
		st.Marks[i].Fence = 2
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
}

// TestWriteAfterTheDatabaseWentBack: whatever a process has written is lost, its next write of that
// kind is refused. A settle without marks leaves no other trace: the row of a timer that is behind.
func TestWriteAfterTheDatabaseWentBack(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	o := engine.Owed{Key: engine.Key{Timer: 1, Due: benchNow}, NotBefore: benchNow}
	settle := func() error {
		return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{o}})
	}
	for range 2 {
		if err := settle(); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{"UPDATE fences SET n=n-1 WHERE n>0", "DELETE FROM owed"} {
		if _, err := s.db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	var f *engine.Fault
	if err := settle(); !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Code != "database_went_back" {
		t.Error(err)
	}
	mustTake(t, s)
	if err := settle(); err != nil {
		t.Errorf("the next life: %v", err)
	}
}

// TestMarkAfterOneCommitIsLost: a failover may lose the last commit alone: the row of a call that begins, or a
// change. No watermark passes a due in such a database.
func TestMarkAfterOneCommitIsLost(t *testing.T) {
	k := engine.Key{Timer: 1, Due: benchNow}
	for what, commit := range map[string]func(s *Store) error{
		"intent": func(s *Store) error {
			return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: k, NotBefore: benchNow, Begun: true}}, Beside: true})
		},
		"change": func(s *Store) error {
			_, err := s.Apply(t.Context(), create(shot(k.Timer, "one")))
			return err
		},
		"change without an answer": func(s *Store) error {
			f := &faulty{}
			f.under(t, s)
			f.failOnce(func(commit func() error, cut func()) error { commit(); cut(); return mysql.ErrInvalidConn })
			_, err := s.Apply(t.Context(), create(shot(k.Timer, "one")))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, unhurried(t))
			mustTake(t, s)
			settle := func(w int64) error {
				return s.Settle(t.Context(), &engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: k.Timer.Shard(), Fence: 1, W: w}}})
			}
			if err := errors.Join(settle(benchNow-1), commit(s), settle(benchNow)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.db.Exec("UPDATE fences SET n=n-1 WHERE n>0 AND slot<>?", s.slot(slotSettle)); err != nil {
				t.Fatal(err)
			}
			var f *engine.Fault
			if err := settle(benchNow + 1); !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Code != "database_went_back" {
				t.Error(err)
			}
			if found, err := s.Shards(t.Context()); err != nil || found[k.Timer.Shard()].Watermark != benchNow {
				t.Errorf("the watermark is %d, %v", found[k.Timer.Shard()].Watermark, err)
			}
		})
	}
}

// TestLaneAfterTheDatabaseWentBack: a database that went back has rows again of tasks that are over, so a
// process whose settles are lost reads none.
func TestLaneAfterTheDatabaseWentBack(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	o := engine.Owed{Key: engine.Key{Timer: 1, Due: benchNow}, NotBefore: benchNow, Lane: 7}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{o}}); err != nil {
		t.Fatal(err)
	}
	read := func() (int, error) {
		os, err := s.OwedIn(t.Context(), engine.AllShards, 7, engine.Place{}, benchNow, 10)
		return len(os), err
	}
	if n, err := read(); n != 1 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := s.db.Exec("UPDATE fences SET n=n-1 WHERE n>0"); err != nil {
		t.Fatal(err)
	}
	var f *engine.Fault
	if _, err := read(); !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Code != "database_went_back" {
		t.Error(err)
	}
}

// TestRaiseAfterTheDatabaseWentBack: a bound says that all dues before it are over. A process
// whose database has lost what the process stored raises none, and ends; and none of a timer in
// a shard that another has.
func TestRaiseAfterTheDatabaseWentBack(t *testing.T) {
	s := open(t, unhurried(t))
	mustTake(t, s)
	mustApply(t, s, create(recurringTimer(1)))
	shard := engine.TimerID(1).Shard()
	st := &engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: shard, Fence: 1, W: benchNow}}}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	raise := func() error {
		return s.Raise(t.Context(), []engine.Bound{{ID: 1, Version: 1, Due: benchNow + dayMs}})
	}
	bound := func() (at int64) {
		t.Helper()
		if err := s.db.QueryRow("SELECT bound FROM timers WHERE id=1").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	exec := func(q string) {
		t.Helper()
		if _, err := s.db.Exec(fmt.Sprintf("UPDATE shards SET %s WHERE shard=%d", q, shard)); err != nil {
			t.Fatal(err)
		}
	}
	exec("holder=holder+1")
	if err := raise(); err != nil || bound() == benchNow+dayMs {
		t.Errorf("the shard is another's: %v, the bound %d", err, bound())
	}
	exec("holder=holder-1,watermark=watermark-1")
	var f *engine.Fault
	if err := raise(); !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Code != "database_went_back" || bound() == benchNow+dayMs {
		t.Errorf("the watermark is lost: %v, the bound %d", err, bound())
	}
	exec("watermark=watermark+1")
	if err := raise(); err != nil || bound() != benchNow+dayMs {
		t.Errorf("all is there: %v, the bound %d", err, bound())
	}
}

// TestFencesOfFormerNodes: a node's rows of fences go when another node has taken the
// shards, and a program of schema 8 finds its fence moved.
func TestFencesOfFormerNodes(t *testing.T) {
	s := open(t, unhurried(t))
	for i, node := range []string{"a", "b", "b"} {
		if _, _, err := s.Take(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		for q, want := range map[string]int{
			"SELECT COUNT(*) FROM fences WHERE life<>0":                                                  slotsMade,
			"SELECT COUNT(*) FROM fences WHERE node='" + node + "' AND life<>0":                          slotsMade,
			"SELECT COUNT(*) FROM fences":                                                                2 * slotsMade,
			"SELECT CAST(SUM(fence) AS SIGNED) FROM fences WHERE node=''":                                (i + 1) * slotsMade,
			"SELECT COUNT(DISTINCT fence) FROM fences WHERE node='' AND slot<64":                         1,
			"SELECT COUNT(*) FROM shards WHERE holder=0 OR holder IS NULL":                               0,
			"SELECT COUNT(DISTINCT holder) FROM shards":                                                  1,
			"SELECT COUNT(*) FROM shards s JOIN fences f ON f.life=s.holder AND f.node<>'' AND f.slot=0": engine.Shards,
		} {
			var n int
			if err := s.db.QueryRow(q).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d, want %d, %v", q, n, want, err)
			}
		}
	}
}
