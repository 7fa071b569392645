package local

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// Rows that were moved, or cut, are each told of by who reads them, and all others are
// read: records by time and by timer, definitions one by one.
func TestDamagedRowsAreNamed(t *testing.T) {
	const n = 20
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	due := func(k int64) int64 { return benchNow + 1000*k }
	settle := &engine.Settlement{Owner: "n"}
	const a, b = engine.TimerID(1 << 20), engine.TimerID(2 << 20)
	for _, id := range []engine.TimerID{a, b} {
		x := &engine.Timer{ID: id, Version: 1, Generation: 1}
		x.App, x.Name, x.Schedule.Every = "app", id.String(), 1e9
		if _, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: id}); err != nil {
			t.Fatal(err)
		}
		for k := range int64(n) {
			r := &engine.Task{Key: engine.Key{Timer: id, Due: due(k)}, Status: engine.Succeeded}
			settle.Tasks = append(settle.Tasks, engine.Record{Key: r.Key, Status: r.Status, Encoded: engine.EncodeTask(r)})
		}
	}
	if err := s.Settle(t.Context(), settle); err != nil {
		t.Fatal(err)
	}
	take := func(key []byte) []byte {
		v, done, err := s.db.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		defer done.Close()
		return slices.Clone(v)
	}
	put := func(key, v []byte) {
		if err := s.db.Set(key, v, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to engine.Key) {
		put(recordKey(nil, to), take(recordKey(nil, from)))
		if err := s.db.Delete(recordKey(nil, from), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	moved, other, cut := engine.Key{Timer: a, Due: due(5) + 3}, engine.Key{Timer: b, Due: due(n)}, engine.Key{Timer: b, Due: due(7)}
	move(engine.Key{Timer: a, Due: due(5)}, moved)
	move(engine.Key{Timer: a, Due: due(n - 1)}, other)
	put(recordKey(nil, cut), take(recordKey(nil, cut))[:9])
	definition := take(timerKey(nil, a))
	put(timerKey(nil, a), definition[:len(definition)/2])
	if err := s.Close(); err != nil { // it has views of what was there
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
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
	if read, damaged := walk(engine.TaskFilter{Timer: b}); read != n-1 || !slices.Contains(damaged, cut) {
		t.Errorf("%d records of a timer are read, damaged are %v", read, damaged)
	}
	if _, err := s.Task(t.Context(), moved); err == nil || err.Error() != fmt.Sprintf(
		"the record at task %s is damaged: it is the record of task %s", moved, engine.Key{Timer: a, Due: due(5)}) {
		t.Error(err)
	}
	var d *engine.Damage
	if _, err := s.Lives(t.Context(), 0, 1); !errors.As(err, &d) || d.Key.Timer != a {
		t.Errorf("a cut definition: %v", err)
	}
	if ls, err := s.Lives(t.Context(), a, 1); err != nil || len(ls) != 1 || ls[0].ID != b {
		t.Errorf("the next definition: %v %v", ls, err)
	}
}
