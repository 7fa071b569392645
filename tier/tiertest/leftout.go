package tiertest

import "xtimer/engine"

func leftOut(s *cold) {
	told := func(what string, from, to int64, want ...int64) {
		s.Helper()
		got, err := s.LeftOut(s.ctx, from, to)
		s.ok(err)
		s.same(what, got, want)
	}
	m := t0 / minute * minute
	told("none", 0, t0+day)
	s.settle(&engine.Settlement{Owner: "n", LeftOut: []int64{m + minute, m}})
	s.settle(&engine.Settlement{Owner: "n", LeftOut: []int64{m + minute, m + day}})
	told("all", 0, t0+2*day, m, m+minute, m+day)
	told("whose end is in it", m+minute-1, m+minute, m)
	told("from the next one on", m+minute, m+minute+1, m+minute)
	s.sweep(t0+day, 0, m+minute-1)
	told("kept while a due of it may be", 0, m+day, m, m+minute)
	s.sweep(t0+day, 0, m+minute)
	told("swept", 0, t0+2*day, m+minute, m+day)
	s.watermark(t0)
	s.ok(s.Close())
	s.ok(s.Open(s.ctx))
	told("after a restart", 0, t0+2*day, m+minute, m+day)
}
