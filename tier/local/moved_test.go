package local

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/verify"
)

// Rows that were moved, or cut, are each told of by verify, which goes on to the end.
func TestVerifyNamesDamagedRows(t *testing.T) {
	const n = 20
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	from := benchNow - benchNow%1000
	settle := &engine.Settlement{Owner: "n"}
	for i := range engine.Shards {
		settle.Marks = append(settle.Marks, engine.Mark{Shard: i, W: from + 1000*n})
	}
	const a, b, c = engine.TimerID(1 << 20), engine.TimerID(2 << 20), engine.TimerID(3 << 20)
	for i, id := range []engine.TimerID{a, b, c} {
		x := &engine.Timer{ID: id, Version: 1, Generation: 1, CreatedAt: from, UpdatedAt: from}
		x.App, x.Name, x.Schedule = "app", string(rune('a'+i)), engine.Schedule{Every: time.Second}
		if err := plan.Resolve(x, nil, from); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: id, At: from}); err != nil {
			t.Fatal(err)
		}
		for k := range int64(n) {
			r := &engine.Task{Key: engine.Key{Timer: id, Due: from + 1000*(k+1)}, App: "app", Name: x.Name, Generation: 1, Status: engine.Succeeded}
			settle.Tasks = append(settle.Tasks, engine.Record{Key: r.Key, Status: r.Status, Encoded: engine.EncodeTask(r)})
		}
	}
	if err := s.Settle(t.Context(), settle); err != nil {
		t.Fatal(err)
	}
	due := func(k int64) int64 { return from + 1000*k }
	move := func(from, to engine.Key) {
		v, done, err := s.db.Get(recordKey(nil, from))
		if err != nil {
			t.Fatal(err)
		}
		v = slices.Clone(v)
		done.Close()
		if from != to {
			if err := s.db.Delete(recordKey(nil, from), pebble.Sync); err != nil {
				t.Fatal(err)
			}
		} else {
			v = v[:len(v)-3]
		}
		if err := s.db.Set(recordKey(nil, to), v, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	move(engine.Key{Timer: a, Due: due(5)}, engine.Key{Timer: a, Due: due(5) + 3}) // by some ms
	move(engine.Key{Timer: a, Due: due(20)}, engine.Key{Timer: b, Due: due(21)})   // to another timer
	move(engine.Key{Timer: b, Due: due(7)}, engine.Key{Timer: b, Due: due(7)})     // cut

	look := func(want ...string) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		v, err := verify.Offline(t.Context(), s, verify.Request{From: from, To: due(n) + 5000}, due(n)+5000, 1000*24*time.Hour, func(f *verify.Finding) error {
			got = append(got, fmt.Sprint(f.Kind, " ", f.Timer>>20, " ", f.Due-from))
			return nil
		})
		if err != nil || !v.Failed() {
			t.Errorf("%+v %v", v, err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	want := []string{"damaged 1 5003", "gap 1 5000", "damaged 2 21000", "gap 1 20000", "damaged 2 7000", "gap 2 7000"}
	look(want...)

	// A definition that is cut: the others are verified.
	key := timerKey(nil, c)
	v, done, err := s.db.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	v = slices.Clone(v)[:len(v)/2]
	done.Close()
	if err := s.db.Set(key, v, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	look(append(want, fmt.Sprint("damaged 3 ", -from))...)
}
