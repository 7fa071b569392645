package tiertest

import (
	"fmt"

	"xtimer/engine"
)

func livesAreTold(s *cold) {
	a, b, c := shot(1, "a", t0+hour), recurring(2, "b"), recurring(5, "c")
	s.create(a, b, c)
	b2 := edited(b, func(t *engine.Timer) { t.Generation++ })
	s.change(b, b2)
	_, err := s.Apply(s.ctx, &engine.Change{ID: 2, Was: b2.Version, At: t0 + 7})
	s.ok(err)
	s.same("lives", s.lives(0, 10), "1: 1 deleted 0; 2: 1 2 deleted 1763640000007; 5: 1 deleted 0; ")
	s.same("a page", s.lives(0, 2), "1: 1 deleted 0; 2: 1 2 deleted 1763640000007; ")
	s.same("the next", s.lives(2, 2), "5: 1 deleted 0; ")
	s.sweep(t0+day, 0, t0+hour) // no version ended after this
	s.same("forgotten", s.lives(0, 10), "1: 1 deleted 0; 5: 1 deleted 0; ")
}

// lives is what Lives tells, as a line.
func (s *cold) lives(after engine.TimerID, limit int) (out string) {
	s.Helper()
	ls, err := s.Lives(s.ctx, after, limit)
	s.ok(err)
	for _, l := range ls {
		out += fmt.Sprint(l.ID, ":")
		for _, v := range l.Versions {
			out += fmt.Sprint(" ", v.Version)
		}
		out += fmt.Sprint(" deleted ", l.Deleted, "; ")
	}
	return out
}

func take(s *cold) {
	s.watermark(t0)
	shards, _, err := s.Take(s.ctx, "first")
	s.ok(err)
	if len(shards) != engine.Shards {
		s.Fatalf("%d shards", len(shards))
	}
	s.same("taken", shards[9], engine.Shard{Fence: 1, Owner: "first", Watermark: t0})
	mark := func(owner string, fence uint64) error {
		return s.Settle(s.ctx, &engine.Settlement{Owner: owner, Marks: []engine.Mark{{Shard: 9, Fence: fence, W: t0 + 1}}})
	}
	s.ok(mark("first", shards[9].Fence))
	again, _, err := s.Take(s.ctx, "second")
	s.ok(err)
	s.same("taken over", again[9], engine.Shard{Fence: 2, Owner: "second", Watermark: t0 + 1})
	s.is(mark("first", shards[9].Fence), engine.ErrFenced)
	s.ok(mark("second", again[9].Fence))
}
