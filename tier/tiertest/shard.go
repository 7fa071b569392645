package tiertest

import (
	"cmp"
	"fmt"
	"slices"

	"xtimer/engine"
)

// shards: what is read of a set of shards is what those shards hold, all of it, and once.
func shards(s *cold) {
	lane := engine.LaneOf("app", "http://a", "")
	var ts []*engine.Timer
	var rows []engine.Owed
	for i := range 1500 {
		id := engine.TimerID(i*i + 1)
		ts = append(ts, shot(id, fmt.Sprint("shot ", i), t0+int64(i%700)), recurring(id<<20, fmt.Sprint("every ", i)))
		o := owed(id, t0, t0+int64(i%50))
		o.Lane = lane + engine.Lane(id.Shard()%2)
		rows = append(rows, o, owed(id<<20, t0, t0+int64(i%50)))
	}
	s.create(ts...)
	s.settle(&engine.Settlement{Owner: "n", Owe: rows})
	slices.SortFunc(rows, func(a, b engine.Owed) int { return cmp.Compare(a.Key.Timer, b.Key.Timer) })

	var even, odd, most []int
	for i := range engine.Shards {
		if i%2 == 0 {
			even = append(even, i)
		} else {
			odd = append(odd, i)
		}
		if i > 0 {
			most = append(most, i)
		}
	}
	for _, c := range []struct {
		what string
		of   engine.Set
	}{
		{"all", engine.AllShards},
		{"the even ones", engine.SetOf(even...)},
		{"the odd ones", engine.SetOf(odd...)},
		{"all but the first", engine.SetOf(most...)},
		{"the first", engine.SetOf(0)},
		{"two", engine.SetOf(3, 255)},
		{"none", engine.Set{}},
	} {
		s.holds(c.what, c.of, ts, rows, lane)
	}
}

// holds wants what a set has of all that there is.
func (s *cold) holds(what string, of engine.Set, ts []*engine.Timer, rows []engine.Owed, lane engine.Lane) {
	s.Helper()
	var ids []engine.TimerID
	for _, t := range ts {
		if of.Has(t.ID.Shard()) && (!t.Schedule.OneShot() || t.At > t0+99) {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	var due []engine.TimerID
	s.ok(s.Due(s.ctx, of, t0+99, t0+hour, func(page []engine.Candidate) error {
		for _, c := range page {
			due = append(due, c.ID)
		}
		return nil
	}))
	slices.Sort(due)
	s.same("due of "+what, due, ids)

	for _, from := range []int64{-1, t0 + 9} {
		var want, got []engine.Key
		for _, o := range rows {
			if of.Has(o.Key.Timer.Shard()) && o.NotBefore > from {
				want = append(want, o.Key)
			}
		}
		s.ok(s.Owed(s.ctx, of, from, t0+hour, func(page []engine.Owed) error {
			got = append(got, rowKeys(page)...)
			return nil
		}))
		slices.SortFunc(got, func(a, b engine.Key) int { return cmp.Compare(a.Timer, b.Timer) })
		s.same(fmt.Sprintf("owed of %s after %d", what, from), got, want)
	}

	var lanes []engine.Lane
	for _, in := range []engine.Lane{0, lane, lane + 1} {
		want := slices.DeleteFunc(slices.Clone(rows), func(o engine.Owed) bool { return o.Lane != in || !of.Has(o.Key.Timer.Shard()) })
		slices.SortFunc(want, func(a, b engine.Owed) int { return a.Place().Compare(b.Place()) })
		if len(want) > 0 {
			lanes = append(lanes, in)
		}
		const limit = 100
		var got []engine.Owed
		for after := (engine.Place{}); ; after = got[len(got)-1].Place() {
			page, err := s.OwedIn(s.ctx, of, in, after, t0+hour, limit)
			s.ok(err)
			if got = append(got, page...); len(page) < limit {
				break
			}
		}
		s.same(fmt.Sprintf("a lane of %s", what), rowKeys(got), rowKeys(want))
	}
	got, err := s.Lanes(s.ctx, of, t0+hour)
	s.ok(err)
	slices.Sort(got)
	slices.Sort(lanes)
	s.same("lanes of "+what, got, lanes)
}
