package tiertest

import (
	"bytes"
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

// livesAreHeads: a page of lives, or the life of a timer that is often changed, fits into
// memory whatever the size of the bodies.
func livesAreHeads(s *cold) {
	large, small := shot(1, "large", t0+hour), recurring(2, "small")
	large.Callback.HasBody, large.Callback.Body = true, bytes.Repeat([]byte{'x'}, 100<<10)
	large.Callback.Timeout, large.StaleAfter = 1234e6, 5678e6
	s.create(large, small)
	for range 3 {
		next := edited(large, func(t *engine.Timer) { t.Callback.Method = "PUT" })
		s.change(large, next)
		large = next
	}
	ls, err := s.Lives(s.ctx, 0, 10)
	s.ok(err)
	s.same("lives", len(ls), 2)
	s.same("versions", len(ls[0].Versions), 4)
	for _, v := range ls[0].Versions {
		s.same("bytes of the body", len(v.Callback.Body), 0)
		s.same("payload", v.Payload(), large.Payload())
	}
	s.same("the head", fmt.Sprintf("%+v", ls[0].Versions[3]), fmt.Sprintf("%+v", engine.Head(large)))
	s.sameTimer(ls[1].Versions[0], small)
}
