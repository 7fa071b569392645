package mysql

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// Rows that were moved, or cut, are each told of by who reads them, and all others are
// read: records by time and by timer, definitions one by one.
func TestDamagedRowsAreNamed(t *testing.T) {
	s := opened(t)
	const n = 20
	due := func(k int64) int64 { return benchNow + 1000*k }
	st := &engine.Settlement{Owner: "n"}
	a, b := benchTimer(1), benchTimer(2)
	for _, x := range []*engine.Timer{a, b} {
		if _, err := s.Apply(t.Context(), create(x)); err != nil {
			t.Fatal(err)
		}
		for k := range int64(n) {
			r := &engine.Task{Key: engine.Key{Timer: x.ID, Due: due(k)}, Status: engine.Succeeded}
			st.Tasks = append(st.Tasks, engine.Record{Key: r.Key, Status: r.Status, Encoded: engine.EncodeTask(r)})
		}
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	moved, other, cut := engine.Key{Timer: a.ID, Due: due(5) + 3}, engine.Key{Timer: b.ID, Due: due(n)}, engine.Key{Timer: b.ID, Due: due(7)}
	for _, q := range []string{
		fmt.Sprintf("UPDATE tasks SET due=%d WHERE timer=%d AND due=%d", moved.Due, a.ID, due(5)),
		fmt.Sprintf("UPDATE tasks SET timer=%d,due=%d WHERE timer=%d AND due=%d", b.ID, other.Due, a.ID, due(n-1)),
		fmt.Sprintf("UPDATE tasks SET record=LEFT(record,9) WHERE timer=%d AND due=%d", b.ID, cut.Due),
		fmt.Sprintf("UPDATE timers SET definition=LEFT(definition,9) WHERE id=%d", a.ID),
	} {
		if _, err := s.db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	walk := func(f engine.TaskFilter) (read int, damaged []engine.Key) {
		t.Helper()
		for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
			ts, next, err := s.Tasks(t.Context(), f, before, 6)
			var d *engine.Damage
			if errors.As(err, &d) {
				if damaged, next = append(damaged, d.Key), d.Key; len(damaged) > n {
					t.Fatal("it goes round")
				}
			} else if err != nil {
				t.Fatal(err)
			}
			read, before = read+len(ts), next
		}
		return read, damaged
	}
	if read, damaged := walk(engine.TaskFilter{}); read != 2*n-3 || !slices.Equal(damaged, []engine.Key{other, cut, moved}) {
		t.Errorf("%d records are read, damaged are %v", read, damaged)
	}
	if read, damaged := walk(engine.TaskFilter{Timer: b.ID}); read != n-1 || !slices.Equal(damaged, []engine.Key{other, cut}) {
		t.Errorf("%d records of a timer are read, damaged are %v", read, damaged)
	}
	again := &engine.Settlement{Owner: "n", Replayed: true, Tasks: []engine.Record{succeeded(cut)}}
	if err := s.Settle(t.Context(), again); err != nil {
		t.Errorf("a start finds a record in its journal that is damaged in the store: %v", err)
	}
	if _, err := s.Task(t.Context(), cut); err != nil {
		t.Errorf("the record that was replayed: %v", err)
	}
	var d *engine.Damage
	if _, err := s.Task(t.Context(), moved); !errors.As(err, &d) {
		t.Error(err)
	}
	if _, err := s.Lives(t.Context(), a.ID-1, 1); !errors.As(err, &d) || d.Key.Timer != a.ID {
		t.Errorf("a cut definition: %v", err)
	}
	for name, f := range map[string]engine.TimerFilter{"all": {}, "app": {App: b.App}, "enabled": {HasStatus: true}} {
		ts, next, err := s.Timers(t.Context(), f, "", 10)
		if err != nil || next != "" || len(ts) != 1 || ts[0].ID != b.ID {
			t.Errorf("listed by %s: %d timers, %q, %v", name, len(ts), next, err)
		}
	}
	if _, err := s.Timer(t.Context(), a.ID); !errors.As(err, &d) {
		t.Errorf("a cut definition: %v", err)
	}
	if ls, err := s.Lives(t.Context(), a.ID, 1); err != nil || len(ls) != 1 || ls[0].ID != b.ID {
		t.Errorf("the next definition: %v %v", ls, err)
	}
}

// TestDamagedOwed damages rows in two ways: one is cut, and one is that of another task.
func TestDamagedOwed(t *testing.T) {
	for name, value := range map[string][]byte{
		"cut": {2, 1}, "moved": engine.AppendOwed(nil, &engine.Owed{Key: engine.Key{Timer: 77, Due: benchNow}}),
	} {
		t.Run(name, func(t *testing.T) {
			tiertest.DamagedOwed(t, func(t *testing.T) (engine.Cold, func(engine.Key)) {
				s := unhurried(t)
				return s, func(k engine.Key) {
					if _, err := s.db.Exec("UPDATE owed SET row_bytes=? WHERE timer=? AND due=?", value, k.Timer, k.Due); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// TestSweepPastDamage: a finished timer whose definition is cut is not removed, and keeps
// neither history nor what ended after it from being removed.
func TestSweepPastDamage(t *testing.T) {
	s := opened(t)
	const cut, n = 1, sweepPiece + 100
	var cs []*engine.Change
	for i := range n {
		x := shot(engine.TimerID(i+cut), fmt.Sprint("n", i))
		x.Status, x.At = engine.Finished, benchNow-int64(n)+int64(i)
		x.Schedule.At, x.LastDue, x.UpdatedAt = x.At, x.At, x.At
		cs = append(cs, create(x))
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	old := &engine.Task{Key: engine.Key{Timer: cut, Due: benchNow - 10*dayMs}, Status: engine.Succeeded}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Tasks: []engine.Record{{Key: old.Key, Status: old.Status, Encoded: engine.AppendTask(nil, old)}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(fmt.Sprint("UPDATE timers SET definition=LEFT(definition,9) WHERE id=", cut)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := s.Sweep(t.Context(), benchNow+dayMs, benchNow+dayMs, benchNow-5*dayMs); err != nil && !errors.As(err, new(*engine.Damage)) {
			t.Fatal(err)
		}
	}
	if _, err := s.Task(t.Context(), old.Key); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("old history: %v", err)
	}
	for id := range engine.TimerID(n) {
		if _, err := s.Timer(t.Context(), id+1); id+1 != cut && !errors.Is(err, engine.ErrNotFound) {
			t.Fatalf("timer %d beside the one that cannot be read: %v", id+1, err)
		}
	}
}

// A damaged timer fails no change but those that need the timer.
func TestChangesBesideADamagedTimer(t *testing.T) {
	s := opened(t)
	if _, err := s.Apply(t.Context(), create(shot(1, "a"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("UPDATE timers SET definition=LEFT(definition,9) WHERE id=1"); err != nil {
		t.Fatal(err)
	}
	for what, cs := range map[string][]*engine.Change{
		"a delete of it":         {create(shot(2, "b")), {ID: 1, Was: 1}, create(shot(3, "c"))},
		"a create with its name": {create(shot(4, "d")), create(shot(5, "a")), create(shot(6, "e"))},
	} {
		for i, a := range s.ApplyAll(t.Context(), cs) {
			if (a.Err == nil) != (i != 1) {
				t.Errorf("beside %s, change %d: %v", what, i, a.Err)
			}
		}
		for _, i := range []int{0, 2} {
			if _, err := s.Timer(t.Context(), cs[i].ID); err != nil {
				t.Error(err)
			}
		}
	}
}
