package tiertest

import "xtimer/engine"

// newest: an id that was ever used is told by every Take after it, whatever became
// of its timer, so that nobody issues it again.
func newest(s *cold) {
	used := engine.TimerID(0)
	check := func(what string) {
		s.Helper()
		for range 2 {
			_, newest, err := s.Take(s.ctx, "n")
			s.ok(err)
			s.same("newest id, "+what, newest, used)
			s.ok(s.Close())
			s.ok(s.Open(s.ctx))
		}
	}
	check("of none")
	s.create(shot(9, "b", t0+hour), shot(5, "a", t0+hour))
	used = 9
	check("created")
	s.delete(s.get(9))
	s.delete(s.get(5))
	check("deleted")
	s.sweep(t0+90*day, 0, t0+80*day)
	s.same("versions", s.lives(0, 10), "")
	check("forgotten")

	s.create(shot(20, "c", t0+1))
	_, err := s.Apply(s.ctx, &engine.Change{ID: 20, Was: 7})
	s.is(err, engine.ErrConflict)
	s.sweepMarked(t0 + 90*day)
	s.same("removed", s.counts(), engine.Counts{})
	used = 20
	check("finished and removed")

	for _, a := range s.ApplyAll(s.ctx, []*engine.Change{{Timer: shot(30, "d", t0+hour), ID: 30}, {ID: 30, Was: 1}}) {
		s.ok(a.Err)
	}
	used = 30
	check("created and deleted at once")

	// What an import brings of timers that were deleted where it comes from.
	s.settle(&engine.Settlement{Owner: "n", Replayed: true, Tasks: []engine.Record{record(task(41, t0, engine.Succeeded, 1)), record(task(40, t0, engine.Succeeded, 1))}})
	used = 41
	check("named by a record")
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(50, t0, t0)}})
	s.settle(&engine.Settlement{Owner: "n", Pay: []engine.Key{{Timer: 50, Due: t0}}})
	used = 50
	check("named by a row")
	s.sweep(t0+90*day, 0, t0+80*day)
	check("without history")

	// Under one that is greater, smaller ones are made and removed.
	s.create(shot(60, "e", t0+hour), shot(55, "f", t0+hour))
	s.delete(s.get(55))
	used = 60
	check("another stands")
	s.delete(s.get(60))
	check("deleted too")
}

// sweepMarked settles all shards up to an instant and removes what has ended.
func (s *cold) sweepMarked(now int64) {
	s.Helper()
	shards, err := s.Shards(s.ctx)
	s.ok(err)
	ms := marks(now)
	for i := range ms {
		ms[i].Fence = shards[i].Fence
	}
	s.settle(&engine.Settlement{Owner: "n", Marks: ms})
	s.sweep(now, now, 0)
}
