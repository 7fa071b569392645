package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"xtimer/engine"
)

// Warm runs the promises of a warm tier. make builds a new, empty tier that is
// not open yet.
func Warm(t *testing.T, make func(t *testing.T) engine.Warm) {
	for _, p := range []struct {
		name string
		run  func(w *warm)
	}{
		{"what is added and sealed is loaded", warmLoads},
		{"a minute that is not sealed is a gap", warmGap},
		{"adding twice is adding once, and the earlier due stays", warmTwice},
		{"a minute takes more after it was sealed", warmAfterSeal},
		{"a minute is whole for the shards that it was sealed for", warmShards},
		{"dropped minutes are gone", warmDrops},
		{"a large minute is told in pages, each entry once", warmPages},
		{"a dense minute of one shard is whole", warmDense},
		{"adding goes on while minutes are loaded", warmConcurrent},
		{"a definition is told as it was added, or not at all", warmDefinitions},
		{"of two definitions the later version stays", warmVersions},
		{"a definition that was replaced is not told any more", warmUpdates},
		{"adding a former definition does not bring it back", warmStale},
		{"the definition of a timer that is gone is not told", warmGone},
	} {
		t.Run(p.name, func(t *testing.T) {
			w := &warm{T: t, Warm: make(t)}
			w.ok(w.Open(t.Context()))
			t.Cleanup(func() { _ = w.Close() })
			p.run(w)
		})
	}
}

type warm struct {
	*testing.T
	engine.Warm
}

// m0 is the minute that all tests begin with.
const m0 = t0 / minute * minute

func (w *warm) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *warm) add(es ...engine.Entry) {
	w.Helper()
	w.ok(w.Add(w.Context(), es))
}

func (w *warm) seal(from, to int64) {
	w.Helper()
	w.ok(w.Seal(w.Context(), engine.AllShards, from, to))
}

// entries is what the minute holds, by timer.
func (w *warm) entries(m int64) map[engine.TimerID]engine.Entry {
	w.Helper()
	got := map[engine.TimerID]engine.Entry{}
	w.ok(w.Load(w.Context(), engine.AllShards, m, func(es []engine.Entry) error {
		for _, e := range es {
			if _, ok := got[e.ID]; ok {
				w.Fatalf("timer %d was told twice", e.ID)
			}
			got[e.ID] = e
		}
		return nil
	}))
	return got
}

// load is the first dues of the minute, by timer.
func (w *warm) load(m int64) map[engine.TimerID]int64 {
	w.Helper()
	got := map[engine.TimerID]int64{}
	for id, e := range w.entries(m) {
		got[id] = e.Due
	}
	return got
}

// definition is a version of a timer.
func definition(id engine.TimerID, version uint32) []byte {
	t := &engine.Timer{Definition: engine.NewDefinition(), ID: id, Version: version}
	t.App, t.Name, t.Schedule.Cron = "app", fmt.Sprint("timer ", id), "* * * * *"
	t.Callback.URL = fmt.Sprint("https://example.com/", version)
	return engine.AppendTimer(nil, t)
}

// tells makes sure that the minute has the timer, with this version of its
// definition or none: a tier need not keep definitions.
func (w *warm) tells(m int64, id engine.TimerID, version uint32) {
	w.Helper()
	e, ok := w.entries(m)[id]
	if !ok {
		w.Fatalf("timer %d is not there", id)
	}
	if e.Definition != nil && !bytes.Equal(e.Definition, definition(id, version)) {
		w.Fatalf("timer %d was told with another definition than version %d", id, version)
	}
}

func (w *warm) gap(m int64) {
	w.Helper()
	if err := w.Load(w.Context(), engine.AllShards, m, func([]engine.Entry) error { return nil }); !errors.Is(err, engine.ErrGap) {
		w.Fatalf("the minute %d: %v", m, err)
	}
}

func (w *warm) want(m int64, want map[engine.TimerID]int64) {
	w.Helper()
	got := w.load(m)
	if len(got) != len(want) {
		w.Fatalf("got %v, want %v", got, want)
	}
	for id, due := range want {
		if got[id] != due {
			w.Fatalf("got %v, want %v", got, want)
		}
	}
}

func warmLoads(w *warm) {
	w.add(engine.Entry{ID: 2, Due: m0}, engine.Entry{ID: 1, Due: m0 + minute - 1}, engine.Entry{ID: 1, Due: m0 + minute})
	w.seal(m0, m0+2*minute)
	w.want(m0, map[engine.TimerID]int64{2: m0, 1: m0 + minute - 1})
	w.want(m0+minute, map[engine.TimerID]int64{1: m0 + minute})
	w.want(m0, map[engine.TimerID]int64{2: m0, 1: m0 + minute - 1}) // it stays
	if w.Len() != 3 {
		w.Fatalf("%d entries", w.Len())
	}
}

func warmGap(w *warm) {
	w.gap(m0)
	w.add(engine.Entry{ID: 1, Due: m0})
	w.gap(m0)
	w.seal(m0+minute, m0+3*minute)
	w.gap(m0)
	w.want(m0+minute, nil) // whole, and empty
	w.want(m0+2*minute, nil)
	w.gap(m0 + 3*minute)
	w.seal(m0-1, m0+1)
	w.want(m0, map[engine.TimerID]int64{1: m0})
	w.gap(m0 - minute) // it begins before the first that was sealed
}

func warmTwice(w *warm) {
	e := engine.Entry{ID: 1, Due: m0 + 500}
	w.add(e, e)
	w.add(e)
	w.add(engine.Entry{ID: 2, Due: m0 + 7}, engine.Entry{ID: 2, Due: m0 + 3})
	w.add(engine.Entry{ID: 2, Due: m0 + 9})
	w.seal(m0, m0+minute)
	w.want(m0, map[engine.TimerID]int64{1: m0 + 500, 2: m0 + 3})
	if w.Len() != 2 {
		w.Fatalf("%d entries", w.Len())
	}
}

func warmAfterSeal(w *warm) {
	w.seal(m0, m0+minute)
	w.want(m0, nil)
	w.add(engine.Entry{ID: 1, Due: m0 + 5})
	w.want(m0, map[engine.TimerID]int64{1: m0 + 5})
	w.add(engine.Entry{ID: 1, Due: m0 + 4}, engine.Entry{ID: 3, Due: m0 + 4})
	w.want(m0, map[engine.TimerID]int64{1: m0 + 4, 3: m0 + 4})
}

func warmShards(w *warm) {
	one := engine.TimerID(1)
	other := one + 1
	for other.Shard() == one.Shard() {
		other++
	}
	w.add(engine.Entry{ID: one, Due: m0}, engine.Entry{ID: other, Due: m0})
	seal := func(ids ...engine.TimerID) {
		w.Helper()
		for _, id := range ids {
			w.ok(w.Seal(w.Context(), engine.SetOf(id.Shard()), m0, m0+minute))
		}
	}
	want := func(of engine.Set, want error, ids ...engine.TimerID) {
		w.Helper()
		var got []engine.TimerID
		err := w.Load(w.Context(), of, m0, func(es []engine.Entry) error {
			for _, e := range es {
				got = append(got, e.ID)
			}
			return nil
		})
		if slices.Sort(got); !errors.Is(err, want) || want == nil && !slices.Equal(got, ids) {
			w.Fatalf("of %d shards: %v, %v, want %v, %v", of.Len(), got, err, ids, want)
		}
	}
	seal(one)
	want(engine.SetOf(one.Shard()), nil, one)
	want(engine.SetOf(other.Shard()), engine.ErrGap)
	want(engine.AllShards, engine.ErrGap)
	seal(other)
	want(engine.SetOf(one.Shard(), other.Shard()), nil, one, other)
	want(engine.SetOf(one.Shard()), nil, one)
	want(engine.AllShards, engine.ErrGap)
	w.seal(m0, m0+minute)
	want(engine.AllShards, nil, one, other)
	want(engine.Set{}, nil)
}

func warmDrops(w *warm) {
	for i := range int64(5) {
		w.add(engine.Entry{ID: 1, Due: m0 + i*minute})
	}
	w.seal(m0, m0+5*minute)
	w.ok(w.Drop(w.Context(), m0+2*minute+1))
	w.gap(m0)
	w.gap(m0 + 2*minute)
	w.want(m0+3*minute, map[engine.TimerID]int64{1: m0 + 3*minute})
	if w.Len() != 2 {
		w.Fatalf("%d entries", w.Len())
	}
}

func warmPages(w *warm) {
	want := map[engine.TimerID]int64{}
	var es []engine.Entry
	for i := range 5000 {
		id := engine.TimerID(i*7919%5000 + 1)
		want[id] = m0 + int64(i*13%minute)
		es = append(es, engine.Entry{ID: id, Due: want[id]})
	}
	for part := range slices.Chunk(es, 700) {
		w.add(part...)
	}
	w.add(es[:3000]...)
	w.seal(m0, m0+minute)
	w.want(m0, want)
	stop := errors.New("stop")
	pages := 0
	err := w.Load(w.Context(), engine.AllShards, m0, func([]engine.Entry) error { pages++; return stop })
	if !errors.Is(err, stop) || pages != 1 {
		w.Fatalf("%v after %d pages", err, pages)
	}
}

func warmConcurrent(w *warm) {
	w.seal(m0, m0+minute)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				w.add(engine.Entry{ID: engine.TimerID(i + 1), Due: m0 + int64(g)})
			}
		})
	}
	for range 20 {
		w.load(m0)
	}
	wg.Wait()
	got := w.load(m0)
	if len(got) != 500 || got[250] != m0 {
		w.Fatalf("%d timers, one due %d", len(got), got[250])
	}
}

func warmDense(w *warm) {
	want := map[engine.TimerID]int64{}
	var es []engine.Entry
	for id := engine.TimerID(1); len(es) < 5000; id++ {
		if id.Shard() == 7 {
			want[id] = m0 + int64(id*31%minute)
			es = append(es, engine.Entry{ID: id, Due: want[id] + 1}, engine.Entry{ID: id, Due: want[id]})
		}
	}
	w.add(es[:4000]...)
	w.seal(m0, m0+minute)
	w.add(es[4000:]...)
	w.add(es...)
	w.want(m0, want)
	if w.Len() != len(want) {
		w.Fatalf("%d entries", w.Len())
	}
}

func warmDefinitions(w *warm) {
	var es []engine.Entry
	for id := engine.TimerID(1); id <= 1500; id++ {
		for m := range int64(3) {
			es = append(es, engine.Entry{ID: id, Due: m0 + m*40*minute, Definition: definition(id, uint32(id))})
		}
	}
	es[0].Definition = nil // of its first minute only
	w.add(es...)
	w.seal(m0, m0+81*minute)
	for m := range int64(3) {
		got := w.entries(m0 + m*40*minute)
		for id := engine.TimerID(1); id <= 1500; id++ {
			e, ok := got[id]
			if !ok || e.Definition != nil && !bytes.Equal(e.Definition, definition(id, uint32(id))) {
				w.Fatalf("timer %d in the minute %d: %+v", id, m, e)
			}
		}
	}
}

func warmVersions(w *warm) {
	for _, v := range []uint32{2, 300, 255, 1} {
		w.add(engine.Entry{ID: 1, Due: m0, Definition: definition(1, v)})
	}
	w.add(engine.Entry{ID: 2, Due: m0, Definition: definition(2, 7)}, engine.Entry{ID: 2, Due: m0, Definition: definition(2, 8)})
	w.add(engine.Entry{ID: 1, Due: m0}, engine.Entry{ID: 2, Due: m0})
	w.seal(m0, m0+minute)
	w.tells(m0, 1, 300)
	w.tells(m0, 2, 8)
}

func warmUpdates(w *warm) {
	for m := range int64(3) {
		w.add(engine.Entry{ID: 1, Due: m0 + m*40*minute, Definition: definition(1, 1)},
			engine.Entry{ID: 2, Due: m0 + m*40*minute, Definition: definition(2, 1)})
	}
	w.seal(m0, m0+81*minute)
	w.Update(w.Context(), 1, definition(1, 2))
	w.Update(w.Context(), 3, definition(3, 2)) // nobody knows it
	for m := range int64(3) {
		w.tells(m0+m*40*minute, 1, 2)
		w.tells(m0+m*40*minute, 2, 1)
	}
	if got := w.load(m0); len(got) != 2 {
		w.Fatalf("%v", got)
	}
}

func warmStale(w *warm) {
	w.Update(w.Context(), 1, definition(1, 2))
	w.add(engine.Entry{ID: 1, Due: m0, Definition: definition(1, 1)})
	w.seal(m0, m0+minute)
	w.tells(m0, 1, 2)
	w.add(engine.Entry{ID: 1, Due: m0, Definition: definition(1, 2)})
	w.tells(m0, 1, 2)
}

func warmGone(w *warm) {
	w.add(engine.Entry{ID: 1, Due: m0, Definition: definition(1, 1)}, engine.Entry{ID: 2, Due: m0, Definition: definition(2, 1)})
	w.seal(m0, m0+minute)
	gone := func() {
		w.Helper()
		if e := w.entries(m0)[1]; e.Definition != nil {
			w.Fatalf("it is told: %+v", e)
		}
		w.tells(m0, 2, 1)
	}
	w.Update(w.Context(), 1, nil)
	gone()
	w.Update(w.Context(), 1, nil)
	w.add(engine.Entry{ID: 1, Due: m0 + 5, Definition: definition(1, 1)}) // read before it went
	gone()
}
