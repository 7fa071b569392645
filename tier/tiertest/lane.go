package tiertest

import (
	"slices"

	"xtimer/engine"
)

// lanes: rows are read by lane, in order of their places, after a place, and a row that
// moved or went is read no more.
func lanes(s *cold) {
	a, b := engine.LaneOf("app", "http://a", ""), engine.LaneOf("app", "http://b", "")
	row := func(lane engine.Lane, id engine.TimerID, due, notBefore int64) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: id, Due: due}, Generation: 1, NotBefore: notBefore, Lane: lane}
	}
	var owe, inA []engine.Owed
	for i := range 30 {
		owe = append(owe, row(b, engine.TimerID(500+i), t0, t0+int64(i)))
		x := row(a, engine.TimerID(100+i*7%30), t0+int64(i), t0+int64(i/3))
		owe, inA = append(owe, x), append(inA, x)
	}
	owe = append(owe, row(7, 1, t0, t0+day), row(0, 2, t0, t0))
	s.ok(s.Settle(s.ctx, &engine.Settlement{Owe: owe}))
	slices.SortFunc(inA, func(x, y engine.Owed) int { return x.Place().Compare(y.Place()) })

	s.lanesAre("all that may be tried", t0+hour, 0, a, b)
	s.lanesAre("one is later", t0+day, 0, 7, a, b)
	s.lanesAre("none yet", t0-1)
	s.waits("the whole lane", inA, a, engine.Place{}, t0+hour, 100)
	s.waits("a page", inA[:4], a, engine.Place{}, t0+hour, 4)
	s.waits("the next page", inA[4:9], a, inA[3].Place(), t0+hour, 5)
	s.waits("up to an instant", inA[:15], a, engine.Place{}, t0+4, 100)
	s.waits("behind the last", nil, a, inA[29].Place(), t0+hour, 100)
	s.waits("no such lane", nil, a+1, engine.Place{}, t0+hour, 100)

	moved := inA[2]
	moved.NotBefore, moved.Lane = t0+minute, b
	s.ok(s.Settle(s.ctx, &engine.Settlement{Pay: []engine.Key{inA[0].Key}, Owe: []engine.Owed{moved}}))
	left := slices.Concat(inA[1:2], inA[3:])
	s.waits("one went and one moved", left, a, engine.Place{}, t0+hour, 100)
	s.waits("moved here", []engine.Owed{moved}, b, engine.Place{NotBefore: t0 + minute - 1}, t0+hour, 100)
	s.ok(s.Settle(s.ctx, &engine.Settlement{Pay: rowKeys(left)}))
	s.lanesAre("a lane is empty", t0+hour, 0, b)
}

func rowKeys(rows []engine.Owed) (ks []engine.Key) {
	for i := range rows {
		ks = append(ks, rows[i].Key)
	}
	return ks
}

func (s *cold) lanesAre(what string, to int64, want ...engine.Lane) {
	s.Helper()
	got, err := s.Lanes(s.ctx, engine.AllShards, to)
	s.ok(err)
	slices.Sort(got)
	slices.Sort(want)
	s.same(what, got, want)
}

func (s *cold) waits(what string, want []engine.Owed, lane engine.Lane, after engine.Place, to int64, limit int) {
	s.Helper()
	got, err := s.OwedIn(s.ctx, engine.AllShards, lane, after, to, limit)
	s.ok(err)
	s.same(what, got, want)
}
