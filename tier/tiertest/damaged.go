package tiertest

import (
	"slices"
	"testing"

	"xtimer/engine"
)

// DamagedOwed runs the promise about a row of owed that cannot be read. damage makes the
// stored row of a key one, behind the back of the tier that make has made last.
func DamagedOwed(t *testing.T, make func(t *testing.T) (c engine.Cold, damage func(k engine.Key))) {
	for _, p := range []struct {
		name string
		run  func(s *damagedOwed)
	}{
		{"lists tell of it, and of all others", damagedIsListed},
		{"it is removed, and replaced, as any other", damagedIsSettled},
		{"a timer with one is not finished", damagedIsOwed},
	} {
		t.Run(p.name, func(t *testing.T) {
			c, damage := make(t)
			s := &damagedOwed{cold{T: t, Cold: c, ctx: t.Context()}, damage}
			s.ok(c.Open(s.ctx))
			t.Cleanup(func() { _ = c.Close() })
			p.run(s)
		})
	}
}

type damagedOwed struct {
	cold
	damage func(k engine.Key)
}

// owing stores rows of one lane, in the order of their places: two of each timer.
func (s *damagedOwed) owing(lane engine.Lane) (rows []engine.Owed) {
	for i := range int64(10) {
		k := engine.Key{Timer: engine.TimerID(11 + i%5), Due: t0 + i}
		rows = append(rows, engine.Owed{Key: k, Generation: 1, NotBefore: k.Due, Lane: lane})
	}
	s.ok(s.Settle(s.ctx, &engine.Settlement{Owe: rows}))
	return rows
}

// told checks a list: those of keys damaged cannot be read, and are named; all others are
// whole.
func (s *damagedOwed) told(what string, got, want []engine.Owed, damaged ...engine.Key) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i, o := range got {
		switch is := slices.Contains(damaged, o.Key); {
		case o.Key != want[i].Key:
			s.Errorf("%s: row %d is that of %s, want %s", what, i, o.Key, want[i].Key)
		case is != (o.Damaged != nil):
			s.Errorf("%s: the row of %s is damaged: %v, want %v", what, o.Key, o.Damaged, is)
		case is && o.Damaged.Key != o.Key:
			s.Errorf("%s: the damage of %s names %s", what, o.Key, o.Damaged.Key)
		case !is:
			s.same(what, o, want[i])
		}
	}
}

func byTimerAndDue(a, b engine.Owed) int { return a.Key.Compare(b.Key) }

// byTime are the rows that Owed tells of an interval.
func (s *damagedOwed) byTime(from, to int64) (rows []engine.Owed) {
	s.Helper()
	s.ok(s.Owed(s.ctx, engine.AllShards, from, to, func(page []engine.Owed) error {
		rows = append(rows, page...)
		return nil
	}))
	slices.SortFunc(rows, byTimerAndDue)
	return rows
}

// byLane are the rows of a lane, read in pages.
func (s *damagedOwed) byLane(lane engine.Lane, limit int) (rows []engine.Owed) {
	s.Helper()
	for after := (engine.Place{}); ; {
		page, err := s.OwedIn(s.ctx, engine.AllShards, lane, after, t0+hour, limit)
		s.ok(err)
		if len(page) == 0 {
			return rows
		}
		if rows, after = append(rows, page...), page[len(page)-1].Place(); len(rows) > 100 {
			s.Fatal("the pages stand still")
		}
	}
}

func damagedIsListed(s *damagedOwed) {
	const lane = 7
	rows := s.owing(lane)
	for _, at := range []int{0, 4, 9} {
		s.damage(rows[at].Key)
	}
	bad := []engine.Key{rows[0].Key, rows[4].Key, rows[9].Key}
	sorted := slices.SortedFunc(slices.Values(rows), byTimerAndDue)
	s.told("all", s.byTime(-1, engine.MaxDue), sorted, bad...)
	s.told("by time", s.byTime(t0-1, t0+hour), sorted, bad...)
	s.told("of a time", s.byTime(t0+3, t0+5), slices.SortedFunc(slices.Values(rows[4:6]), byTimerAndDue), bad...)
	for _, limit := range []int{1, 3, 100} {
		s.told("in a lane", s.byLane(lane, limit), rows, bad...)
	}
	page, err := s.OwedPage(s.ctx, rows[4].Key.Timer, -1, 10)
	s.ok(err)
	s.told("of a timer", page, []engine.Owed{rows[4], rows[9]}, bad...)
	lanes, err := s.Lanes(s.ctx, engine.AllShards, t0+hour)
	s.ok(err)
	s.same("lanes", lanes, []engine.Lane{lane})
}

func damagedIsSettled(s *damagedOwed) {
	const lane, other = 7, 8
	rows := s.owing(lane)
	for _, o := range rows[:4] {
		s.damage(o.Key)
	}
	s.settle(&engine.Settlement{Owner: "n", Pay: []engine.Key{rows[0].Key, rows[9].Key}})
	moved, replayed := rows[1], rows[2]
	moved.Lane, moved.NotBefore = other, t0+minute
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{moved}})
	s.settle(&engine.Settlement{Owner: "n", Replayed: true, Owe: []engine.Owed{replayed}})
	left := append([]engine.Owed{replayed}, rows[3:9]...)
	bad := rows[3].Key
	s.told("in the lane", s.byLane(lane, 4), left, bad)
	s.told("in the other lane", s.byLane(other, 4), []engine.Owed{moved})
	s.told("by time", s.byTime(t0-1, t0+hour), slices.SortedFunc(slices.Values(append(left, moved)), byTimerAndDue), bad)

	x := recurring(rows[3].Key.Timer, "deleted")
	s.create(x)
	_, err := s.Apply(s.ctx, &engine.Change{ID: x.ID, Was: x.Version, Pay: []engine.Key{bad, rows[8].Key}})
	s.ok(err)
	page, err := s.OwedPage(s.ctx, x.ID, -1, 10)
	s.ok(err)
	s.told("of a timer whose delete has ended them", page, nil)
	s.told("in the lane then", s.byLane(lane, 4), append([]engine.Owed{replayed}, rows[4:8]...))
	lanes, err := s.Lanes(s.ctx, engine.AllShards, t0+hour)
	s.ok(err)
	s.same("lanes", lanes, []engine.Lane{lane, other})
}

func damagedIsOwed(s *damagedOwed) {
	a, b := shot(1, "a", t0), shot(2, "b", t0)
	s.create(a, b)
	k := engine.Key{Timer: a.ID, Due: t0}
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: k, Generation: 1, NotBefore: t0}}, Marks: marks(t0)})
	s.damage(k)
	s.sweep(t0+hour, t0-hour, 0)
	if x, y := s.get(a.ID).Status, s.get(b.ID).Status; x != engine.Enabled || y != engine.Finished {
		s.Errorf("the timer of the row is %v, another one %v", x, y)
	}
}
