package mysql

import (
	"bytes"
	"database/sql"
	"fmt"
	"testing"

	"xtimer/engine"
)

// largeTimers makes n timers of more than 4 KiB each in a store whose pages should have
// no more than sixteen of them.
func largeTimers(t *testing.T, n int, status engine.Status) (s *Store, ids []engine.TimerID) {
	t.Helper()
	s = opened(t)
	s.pageBytes = 72 << 10
	for i := range n {
		x := shot(engine.TimerID(i+1), fmt.Sprint("n", i))
		x.Status, x.UpdatedAt = status, benchNow
		x.Callback.Body = bytes.Repeat([]byte{'x'}, 4<<10)
		mustApply(t, s, create(x))
		ids = append(ids, x.ID)
	}
	return s, ids
}

// counter counts what the one session of a store has done.
func counter(t *testing.T, s *Store, name string) func() int {
	s.db.SetMaxOpenConns(1)
	return func() (n int) {
		t.Helper()
		err := s.scan(t.Context(), "SHOW SESSION STATUS LIKE '"+name+"'", func(rows *sql.Rows) error { return rows.Scan(&name, &n) })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// change makes more versions of a timer.
func change(t *testing.T, s *Store, id engine.TimerID, versions int) {
	t.Helper()
	for range versions {
		x, err := s.Timer(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		was := x.Version
		x.Version++
		mustApply(t, s, &engine.Change{Timer: x, ID: id, Was: was, At: benchNow})
	}
}

// TestLoadByBytes: large definitions are read a few at a time, each with a patience of its
// own, and small ones many at a time.
func TestLoadByBytes(t *testing.T) {
	s, ids := largeTimers(t, 200, engine.Enabled)
	selects := counter(t, s, "Com_select")
	before := selects()
	defs, err := s.Load(t.Context(), ids)
	if err != nil || len(defs) != len(ids) {
		t.Fatal(len(defs), err)
	}
	for i, b := range defs {
		if x, err := engine.DecodeTimer(b); err != nil || x.ID != ids[i] {
			t.Fatalf("definition %d: %v", i, err)
		}
	}
	if n, least := selects()-before, (200-firstLoad)/17; n < least {
		t.Errorf("%d statements, want %d at least", n, least)
	}
	s.pageBytes = 16 << 20
	before = selects()
	if _, err := s.Load(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if n := selects() - before; n > 2 {
		t.Errorf("%d statements for what is small", n)
	}
}

// TestLivesByBytes: a page of lives is short where they have many large versions.
func TestLivesByBytes(t *testing.T) {
	s, ids := largeTimers(t, 8, engine.Enabled)
	for _, id := range ids[2:6] {
		change(t, s, id, 20)
	}
	var told []engine.TimerID
	for after := engine.TimerID(0); ; {
		ls, err := s.Lives(t.Context(), after, 512)
		if err != nil {
			t.Fatal(err)
		}
		if len(ls) == 0 {
			break
		}
		versions := 0
		for _, l := range ls {
			told, after, versions = append(told, l.ID), l.ID, versions+len(l.Versions)
		}
		if versions > 21 {
			t.Errorf("%d versions at once", versions)
		}
	}
	if fmt.Sprint(told) != fmt.Sprint(ids) {
		t.Errorf("lives of %v", told)
	}
}

// TestSweepByBytes: no transaction of the housekeeping takes more large definitions than
// there is time for, and with enough of them all are made.
func TestSweepByBytes(t *testing.T) {
	s, ids := largeTimers(t, 100, engine.Finished)
	change(t, s, ids[7], 50)
	commits := counter(t, s, "Com_commit")
	before := commits()
	for more := true; more; {
		var err error
		if more, err = s.removeFinished(t.Context(), benchNow+dayMs); err != nil {
			t.Fatal(err)
		}
	}
	if n := commits() - before; n < 100/17+50/17 {
		t.Errorf("%d commits", n)
	}
	if ls, err := s.Lives(t.Context(), 0, 512); err != nil || len(ls) > 0 {
		t.Errorf("%d lives are left, %v", len(ls), err)
	}

	mustApply(t, s, create(shot(1001, "again")))
	big := shot(1000, "changed")
	big.Callback.Body = bytes.Repeat([]byte{'x'}, 4<<10)
	mustApply(t, s, create(big))
	change(t, s, big.ID, 50)
	before = commits()
	for more := true; more; {
		var err error
		if more, err = s.forgetVersions(t.Context(), benchNow+dayMs); err != nil {
			t.Fatal(err)
		}
	}
	if n := commits() - before; n < 50/17 {
		t.Errorf("%d commits", n)
	}
	if vs, err := s.Versions(t.Context(), big.ID, 0, 100); err != nil || len(vs) > 0 {
		t.Errorf("%d versions are left, %v", len(vs), err)
	}
}

// TestArchiveByBytes: what is finished is archived a few at a time where it is large.
func TestArchiveByBytes(t *testing.T) {
	s, ids := largeTimers(t, 100, engine.Enabled)
	st := &engine.Settlement{Owner: "n"}
	for shard := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: shard, W: benchNow + dayMs})
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	commits := counter(t, s, "Com_commit")
	before := commits()
	if _, err := s.archiveEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := commits() - before; n < 100/17 {
		t.Errorf("%d commits", n)
	}
	if n, err := s.Counts(t.Context()); err != nil || n.Finished != int64(len(ids)) {
		t.Errorf("%+v, %v", n, err)
	}
}
