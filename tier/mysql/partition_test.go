package mysql

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
)

// parts are the partitions that stand.
func parts(t *testing.T, s *Store) []string {
	t.Helper()
	var all string
	q := "SELECT GROUP_CONCAT(PARTITION_NAME ORDER BY PARTITION_ORDINAL_POSITION) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME='tasks'"
	if err := s.db.QueryRow(q).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return strings.Split(all, ",")
}

func sweep(t *testing.T, s *Store, now, historyBefore int64) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.Sweep(t.Context(), now, 0, historyBefore); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartitions: days have their partitions before they begin, and go with
// them; what an owed row holds stays, and so does what came late to its day.
func TestPartitions(t *testing.T) {
	s := opened(t)
	other := open(t, New(Config{DSN: s.cfg.DSN})) // a node that sees what the first does
	const first = 20_412 * dayMs                  // 2025-11-20
	same := func(want ...string) {
		t.Helper()
		if got := parts(t, s); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	settle := func(st *engine.Settlement, keys ...engine.Key) {
		t.Helper()
		for _, k := range keys {
			st.Tasks = append(st.Tasks, succeeded(k))
		}
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	told := func(want ...int64) {
		t.Helper()
		ts, _, err := s.Tasks(t.Context(), engine.TaskFilter{}, engine.Key{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, x := range ts {
			got = append(got, (x.Key.Due-first)/dayMs)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got days %v, want %v", got, want)
		}
	}
	sweep(t, s, first+5, 0)
	sweep(t, other, first+5, 0)
	same("d20251120", "d20251121", "d20251122", "d20251123", "ahead")
	sweep(t, s, first+dayMs, 0)
	sweep(t, other, first+dayMs, 0) // it does not know yet that the day is there
	same("d20251120", "d20251121", "d20251122", "d20251123", "d20251124", "ahead")

	settle(&engine.Settlement{},
		engine.Key{Timer: 1, Due: first}, engine.Key{Timer: 1, Due: first + dayMs}, engine.Key{Timer: 2, Due: first + dayMs + 1},
		engine.Key{Timer: 1, Due: first + 2*dayMs}, engine.Key{Timer: 1, Due: first + 9*dayMs})
	held := engine.Owed{Key: engine.Key{Timer: 9, Due: first + dayMs + 7}, NotBefore: first}
	settle(&engine.Settlement{Owe: []engine.Owed{held}})
	sweep(t, s, first+4*dayMs, first+3*dayMs)
	same("d20251121", "d20251123", "d20251124", "d20251125", "d20251126", "d20251127", "ahead")
	told(9, 1, 1)

	// Late for days that are gone: they lie with others', and go by themselves.
	settle(&engine.Settlement{}, engine.Key{Timer: 5, Due: first + 3}, engine.Key{Timer: 5, Due: first + 2*dayMs})
	told(9, 2, 1, 1, 0)
	sweep(t, s, first+4*dayMs, first+2*dayMs)
	told(9, 2, 1, 1)
	settle(&engine.Settlement{}, engine.Key{Timer: 5, Due: first + 3*dayMs})
	settle(&engine.Settlement{Owe: []engine.Owed{{Key: engine.Key{Timer: 8, Due: first + 2*dayMs + 1}, NotBefore: first}}})
	sweep(t, s, first+4*dayMs, first+4*dayMs) // day 3 goes, but not what is held of day 2 with it
	told(9, 2, 1, 1)

	settle(&engine.Settlement{Pay: []engine.Key{held.Key, {Timer: 8, Due: first + 2*dayMs + 1}}})
	var wg sync.WaitGroup
	for _, n := range []*Store{s, other} {
		wg.Go(func() { sweep(t, n, first+4*dayMs, first+4*dayMs) })
	}
	wg.Wait()
	told(9)

	// After a long absence the days since are not made one by one for ever.
	sweep(t, s, first+400*dayMs, first+10*dayMs)
	told()
	if n := len(parts(t, s)); n > daysMade+10 {
		t.Fatalf("%d partitions", n)
	}
	settle(&engine.Settlement{}, engine.Key{Timer: 1, Due: first + 300*dayMs}, engine.Key{Timer: 1, Due: first + 400*dayMs})
	told(400, 300)
}

// TestHistoryBeforeTheFirstSweep: what an import brings, newest first, and what a
// process wrote before it swept lies in partitions of its days, and goes with
// them; so do days that have no record.
func TestHistoryBeforeTheFirstSweep(t *testing.T) {
	const first = 20_412 * dayMs // 2025-11-20
	const now = first + 8*dayMs + 5
	for name, imported := range map[string]bool{"imported": true, "live": false} {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			if err := s.Settle(t.Context(), &engine.Settlement{Marks: []engine.Mark{{W: now}}}); err != nil {
				t.Fatal(err)
			}
			for _, day := range []int64{8, 5, 4, 1, 0, -100} {
				st := &engine.Settlement{Replayed: imported, Tasks: []engine.Record{succeeded(engine.Key{Timer: 1, Due: first + day*dayMs})}}
				if err := s.Settle(t.Context(), st); err != nil {
					t.Fatal(err)
				}
			}
			in := func(partition string) (n int) {
				t.Helper()
				if err := s.db.QueryRow("SELECT COUNT(*) FROM tasks PARTITION (" + partition + ")").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			if !imported {
				if _, err := s.Sweep(t.Context(), now, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(parts(t, s)); n > daysMade+2 {
				t.Fatalf("%d partitions", n)
			}
			for part, want := range map[string]int{"d20251128": 1, "d20251127": 0, "d20251125": 1, "d20251124": 1, "d20251121": 1, "d20251120": 1, "ahead": 0} {
				if n := in(part); n != want {
					t.Errorf("%d records in %s, want %d", n, part, want)
				}
			}
			sweep(t, s, now, first+3*dayMs)
			want := []string{"d20251123", "d20251124", "d20251125", "d20251126", "d20251127", "d20251128", "d20251129", "d20251130", "d20251201", "ahead"}
			if got := parts(t, s); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			sweep(t, s, now, first+5*dayMs) // the first of them has no record
			if got := parts(t, s); !slices.Equal(got, want[2:]) {
				t.Errorf("got %v, want %v", got, want[2:])
			}
		})
	}
}

// TestTwoSweep: nodes that sweep at the same time archive and remove each timer once.
func TestTwoSweep(t *testing.T) {
	s := opened(t)
	other := open(t, New(Config{DSN: s.cfg.DSN}))
	var cs []*engine.Change
	for i := range 1200 {
		x := shot(engine.TimerID(i+1), "")
		x.At = benchNow + int64(i)
		x.LastDue = x.At
		x.Labels = []engine.Label{{Key: "k", Value: "v"}}
		cs = append(cs, create(x))
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	st := &engine.Settlement{Owner: "n"}
	for i := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: i, W: benchNow + 1000})
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	both := func(finishedBefore int64, want engine.Counts) {
		t.Helper()
		var wg sync.WaitGroup
		for _, n := range []*Store{s, other} {
			wg.Go(func() {
				for more := true; more; {
					var err error
					if more, err = n.Sweep(t.Context(), benchNow+2000, finishedBefore, 0); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if got, err := s.Counts(t.Context()); err != nil || got != want {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	both(0, engine.Counts{Enabled: 200 - 1, Finished: 1001})
	both(benchNow+2000, engine.Counts{Enabled: 199})
	var labels int
	if err := s.db.QueryRow("SELECT COUNT(*) FROM labels").Scan(&labels); err != nil || labels != 199 {
		t.Fatal(labels, err)
	}
}

// Two nodes sweep in turns, as that of shard 0 does. Another has dropped a day since a node looked last, and what is of that
// day lies in the partition of the next one: it stays with a record that a range needs.
func TestPartitionDroppedByAnotherNode(t *testing.T) {
	const first = 20_412 * dayMs
	a := opened(t)
	b := open(t, New(Config{DSN: a.cfg.DSN}))
	b.patience, b.answer = time.Minute, time.Minute
	settle := func(s *Store, st *engine.Settlement, ks ...engine.Key) {
		t.Helper()
		for _, k := range ks {
			st.Tasks = append(st.Tasks, succeeded(k))
		}
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	sweep(t, a, first, 0)
	k := engine.Key{Timer: 1, Due: first + 3_600_000}
	settle(a, &engine.Settlement{Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: first + 5}, To: engine.Endless, Generation: 1, NotBefore: first + 5}}},
		engine.Key{Timer: 2, Due: first + 5}, engine.Key{Timer: 2, Due: first + dayMs + 5})
	sweep(t, a, first+3*dayMs, 0)
	sweep(t, b, first+3*dayMs, first+dayMs)
	settle(b, &engine.Settlement{}, k)
	for _, x := range []struct {
		s      *Store
		before int64
	}{{b, first + dayMs}, {a, first + 2*dayMs}} {
		sweep(t, x.s, first+3*dayMs, x.before)
		if _, err := a.Task(t.Context(), k); err != nil {
			t.Errorf("the record of a due that a range owes: %v", err)
		}
	}
}

// A settlement of a former life waits for nobody who changes partitions.
func TestReplayBesideASweep(t *testing.T) {
	const first = 20_412 * dayMs
	s := opened(t)
	sweep(t, s, first, 0)
	s.days.mu.Lock()
	time.AfterFunc(10*time.Second, s.days.mu.Unlock)
	began := time.Now()
	if err := s.Settle(t.Context(), &engine.Settlement{Replayed: true, Tasks: []engine.Record{succeeded(engine.Key{Timer: 7, Due: first + 9})}}); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the settlement took %v", took)
	}
}
