package tiertest

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// Members runs the promises of a table of nodes. make builds a new, empty cold tier and its
// table, and returns what a process opens over them: each life has a process of its own.
func Members(t *testing.T, make func(t *testing.T) (process func() (engine.Cold, engine.Members))) {
	for _, p := range []struct {
		name string
		run  func(s *members)
	}{
		{"a look shows what was done", looks},
		{"a node has one life, and the next one keeps its shards", joins},
		{"a repeated join is one join", joinsTwice},
		{"a join that is carried out late does not begin a life that is over", joinsLate},
		{"of many joins at once one begins", oneJoinWins},
		{"a beat changes the beat, the state and the weight", beats},
		{"a life that has beaten is not evicted", evictsByPulse},
		{"a life that is over writes nothing", overWritesNothing},
		{"of many evictions at once one is made", oneEvictWins},
		{"a life takes only what is free, under a new fence", takes},
		{"of many takes at once each shard has one holder", oneTakeWins},
		{"a settle beside an eviction is stored before it, or refused", settleBesideEviction},
		{"a shard is given under its fence only", gives},
		{"a settle under a former fence is refused", settlesOfFormer},
		{"the former life of a shard is the last one that has gained it", formerHasGained},
		{"a life that leaves frees its shards", leaves},
		{"a wish is of one life", wishes},
		{"the newest id is that of all nodes", newestOfAll},
		{"the table survives a restart", tableSurvives},
	} {
		t.Run(p.name, func(t *testing.T) {
			s := &members{open: make(t), processes: map[uint64]*process{}}
			s.process = &process{cold: cold{T: t, ctx: t.Context()}}
			s.process = s.of(0)
			p.run(s)
		})
	}
}

func node(name string, life uint64) engine.Node {
	return engine.Node{Name: name, Life: life, State: engine.Serving, Weight: 1, Journal: [16]byte{1, byte(life)}, Address: fmt.Sprint("10.0.0.", byte(life), ":8080")}
}

// join begins the first lives of nodes.
func (s *members) join(ns ...engine.Node) {
	s.Helper()
	for _, n := range ns {
		s.ok(s.Join(n, engine.Pulse{}))
	}
}

func (s *members) look() engine.Membership {
	s.Helper()
	seen, err := s.Look(s.ctx, 0)
	s.ok(err)
	if seen.Shards == nil || seen.Moves == 0 {
		s.Fatalf("a look for a reader that knows no moves has shards %v, %d moves", seen.Shards, seen.Moves)
	}
	return seen
}

// row is the row of a node.
func (s *members) row(name string) engine.Node {
	s.Helper()
	for _, n := range s.look().Nodes {
		if n.Name == name {
			return n
		}
	}
	s.Fatalf("node %s has no row", name)
	return engine.Node{}
}

func (s *members) pulse(name string) engine.Pulse {
	s.Helper()
	n := s.row(name)
	return n.Pulse()
}

// holder compares how a shard is held.
func (s *members) holder(shard int, want engine.Holding) {
	s.Helper()
	s.same(fmt.Sprint("shard ", shard), s.look().Shards[shard], want)
}

func (s *members) fence(shard int) uint64 {
	s.Helper()
	return s.look().Shards[shard].Fence
}

// mark is a settle of a shard under a fence, by a life.
func (s *members) mark(life uint64, shard int, fence uint64) error {
	return s.of(life).Settle(s.ctx, &engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: shard, Fence: fence, W: t0}}})
}

func looks(s *members) {
	empty := s.look()
	s.same("nodes", len(empty.Nodes), 0)
	s.same("a shard", empty.Shards[7].Holder, 0)
	b, a := node("b", 2), node("a", 1)
	a.State, a.Weight, a.Skew, a.Speaks = engine.Unfit, 7, -1234, 3
	s.join(b, a)
	joined := s.look()
	s.same("the clock", time.Since(time.UnixMilli(joined.Now)).Abs() < time.Minute, true)
	s.same("a secret", joined.Secret != [32]byte{}, true)
	ns := joined.Nodes
	s.same("the nodes", []string{ns[0].Name, ns[1].Name}, []string{"a", "b"})
	a.Beat = ns[0].Beat
	s.same("a row", ns[0], a)

	s.ok(s.Take(1, engine.SetOf(7, 255)))
	moved := s.look()
	s.same("moved", moved.Moves != empty.Moves, true)
	s.same("holders", [...]uint64{moved.Shards[7].Holder, moved.Shards[8].Holder, moved.Shards[255].Holder}, [...]uint64{1, 0, 1})
	same, err := s.Look(s.ctx, moved.Moves)
	s.ok(err)
	s.same("moves", same.Moves, moved.Moves)
	if same.Shards != nil || len(same.Nodes) != 2 {
		s.Fatalf("a look for a reader that knows the moves has %+v", same)
	}
	for _, moves := range []uint64{moved.Moves + 1, moved.Moves - 1, 1 << 60} { // a table may go back
		if other, err := s.Look(s.ctx, moves); moves != 0 && (err != nil || other.Shards == nil) {
			s.Fatalf("a look for a reader that knows other moves has no shards: %v", err)
		}
	}
}

func joins(s *members) {
	s.join(node("a", 1), node("b", 9))
	s.ok(s.Take(1, engine.SetOf(3, 4)))
	s.ok(s.Give(1, engine.Handover{Shard: 4, Fence: s.fence(4), Heir: "a"}))
	s.ok(s.Take(1, engine.SetOf(4)))
	was, fence := s.pulse("a"), s.fence(4)
	s.holder(4, engine.Holding{Holder: 1, Fence: fence, Clean: true})
	for _, wrong := range []engine.Pulse{{}, {Node: "a", Life: 7, Beat: was.Beat}, {Node: "a", Life: 1, Beat: was.Beat + 1}} {
		s.is(s.Join(node("a", 2), wrong), engine.ErrConflict)
	}
	s.ok(s.Beat(node("a", 1)))
	s.is(s.Join(node("a", 2), was), engine.ErrConflict)
	was = s.pulse("a")
	s.ok(s.Join(node("a", 2), was))
	s.is(s.Beat(node("a", 1)), engine.ErrFenced)
	s.ok(s.Beat(node("a", 2)))
	s.holder(4, engine.Holding{Holder: 2, Fence: fence + 1, Former: 1})
	s.is(s.mark(1, 4, fence), engine.ErrFenced)
	s.ok(s.mark(2, 4, fence+1))
	s.same("the journal", s.row("a").Journal, node("a", 2).Journal)
	s.same("the address", s.row("a").Address, node("a", 2).Address)
}

func joinsTwice(s *members) {
	s.join(node("a", 1))
	s.ok(s.Take(1, engine.SetOf(3)))
	was := s.pulse("a")
	s.ok(s.Join(node("a", 2), was))
	first := s.look()
	s.ok(s.Join(node("a", 2), was))
	s.same("nodes", s.look().Nodes, first.Nodes)
	s.same("shards", *s.look().Shards, *first.Shards)
}

func joinsLate(s *members) {
	s.join(node("b", 2))
	was := engine.Pulse{}
	for i, end := range []func(life uint64) error{
		func(life uint64) error { return s.Leave(life) },
		func(uint64) error { return s.Evict(2, s.pulse("a")) },
		func(uint64) error { return s.Join(node("a", 99), s.pulse("a")) },
	} {
		n := node("a", uint64(10+i))
		s.ok(s.Join(n, was))
		s.ok(end(n.Life))
		s.is(s.Join(n, was), engine.ErrConflict)
		s.is(s.Beat(n), engine.ErrFenced)
		was = s.pulse("a")
	}
}

func beats(s *members) {
	s.is(s.Beat(node("a", 1)), engine.ErrFenced)
	s.join(node("a", 1), node("b", 2))
	a, b := s.pulse("a"), s.pulse("b")
	n := node("a", 1)
	n.State, n.Weight = engine.Draining, 9
	s.ok(s.Beat(n))
	got := s.row("a")
	if n.Beat = got.Beat; got != n || got.Pulse() == a {
		s.Fatalf("the row is %+v after a beat, was %+v", got, a)
	}
	s.same("another node", s.pulse("b"), b)
}

func evictsByPulse(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Take(2, engine.SetOf(5)))
	was, fence := s.pulse("b"), s.fence(5)
	s.ok(s.Beat(node("b", 2)))
	s.is(s.Evict(1, was), engine.ErrConflict)
	s.is(s.Evict(1, engine.Pulse{Node: "c", Life: 3}), engine.ErrConflict)
	s.holder(5, engine.Holding{Holder: 2, Fence: fence})
	now := s.pulse("b")
	s.is(s.Evict(1, engine.Pulse{Node: "b", Life: 3, Beat: now.Beat}), engine.ErrConflict)
	s.is(s.Evict(7, now), engine.ErrFenced)
	s.ok(s.Evict(1, now))
	s.same("the life", s.row("b").Life, 0)
	h := s.look().Shards[5]
	s.same("a shard of it", [...]any{h.Holder, h.Heir, h.Clean, h.Former}, [...]any{0, "", false, 2})
	s.ok(s.Take(1, engine.SetOf(5)))
	s.same("its former life", s.look().Shards[5].Former, 2)
	s.is(s.Evict(1, now), engine.ErrConflict)
}

func formerHasGained(s *members) {
	s.join(node("a", 1), node("b", 2), node("c", 3))
	former := func(of string, want uint64) {
		s.Helper()
		s.same("the former life "+of, s.look().Shards[5].Former, want)
	}
	s.ok(s.Take(2, engine.SetOf(5)))
	s.ok(s.mark(2, 5, s.fence(5)))
	s.ok(s.Evict(1, s.pulse("b")))
	s.ok(s.Take(1, engine.SetOf(5)))
	s.ok(s.Evict(3, s.pulse("a")))
	former("of a shard that life 1 has taken and not gained", 2)
	s.ok(s.Take(3, engine.SetOf(5)))
	s.ok(s.Join(node("c", 4), s.pulse("c")))
	former("of one that a restarted node had not gained", 2)
	s.ok(s.mark(4, 5, s.fence(5)))
	former("of one that is gained", 0)
	s.ok(s.Join(node("c", 5), s.pulse("c")))
	former("of one that a restarted node had gained", 4)
}

func overWritesNothing(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Take(2, engine.SetOf(5, 6)))
	fence := s.fence(5)
	s.ok(s.mark(2, 5, fence))
	s.ok(s.Evict(1, s.pulse("b")))
	before := s.look()
	s.is(s.mark(2, 5, fence), engine.ErrFenced)
	s.is(s.Beat(node("b", 2)), engine.ErrFenced)
	s.is(s.Take(2, engine.SetOf(5)), engine.ErrFenced)
	s.is(s.Give(2, engine.Handover{Shard: 5, Fence: fence, Heir: "a"}), engine.ErrFenced)
	s.is(s.Evict(2, s.pulse("a")), engine.ErrFenced)
	s.ok(s.Leave(2))
	s.same("nodes", s.look().Nodes, before.Nodes)
	s.same("shards", *s.look().Shards, *before.Shards)
}

func takes(s *members) {
	s.join(node("a", 1), node("b", 2))
	fence := s.fence(5)
	s.ok(s.Take(1, engine.SetOf(5, 6)))
	s.holder(5, engine.Holding{Holder: 1, Fence: fence + 1})
	s.ok(s.Take(1, engine.SetOf(5)))
	s.ok(s.Take(2, engine.SetOf(5, 7)))
	s.holder(5, engine.Holding{Holder: 1, Fence: fence + 1})
	s.same("what was free", s.look().Shards[7].Holder, 2)
	s.is(s.Take(3, engine.SetOf(8)), engine.ErrFenced)
	s.ok(s.mark(1, 5, fence+1))
	s.ok(s.Take(1, engine.Set{}))
}

func gives(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Take(1, engine.SetOf(5, 6)))
	s.ok(s.Take(2, engine.SetOf(7)))
	fence := s.fence(5)
	give := func(shard int, fence uint64) {
		s.Helper()
		s.ok(s.Give(1, engine.Handover{Shard: shard, Fence: fence, Heir: "b"}))
	}
	give(5, fence+1)
	give(5, fence-1)
	give(7, s.fence(7))
	s.holder(5, engine.Holding{Holder: 1, Fence: fence})
	s.same("another's", s.look().Shards[7].Holder, 2)
	moves := s.look().Moves
	give(5, fence)
	s.holder(5, engine.Holding{Fence: fence, Heir: "b", Clean: true})
	s.same("moved", s.look().Moves != moves, true)
	give(5, fence)
	s.ok(s.Take(2, engine.SetOf(5)))
	s.holder(5, engine.Holding{Holder: 2, Fence: fence + 1, Clean: true})

	// The heir gives it back. A Give of the first time that is carried out late changes nothing.
	s.ok(s.Give(2, engine.Handover{Shard: 5, Fence: fence + 1, Heir: "a"}))
	s.ok(s.Take(1, engine.SetOf(5)))
	give(5, fence)
	s.holder(5, engine.Holding{Holder: 1, Fence: fence + 2, Clean: true})
	s.ok(s.Give(1, engine.Handover{Shard: 5, Fence: fence + 2, Heir: "b", Unclean: true}))
	s.ok(s.Take(2, engine.SetOf(5)))
	s.holder(5, engine.Holding{Holder: 2, Fence: fence + 3, Former: 1})
	s.ok(s.Give(2, engine.Handover{Shard: 5, Fence: fence + 3, Heir: "a"}))
	s.holder(5, engine.Holding{Fence: fence + 3, Heir: "a", Clean: true})
}

func settlesOfFormer(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Take(1, engine.SetOf(5)))
	fence := s.fence(5)
	s.ok(s.Give(1, engine.Handover{Shard: 5, Fence: fence, Heir: "b"}))
	s.ok(s.Take(2, engine.SetOf(5)))
	s.is(s.mark(1, 5, fence), engine.ErrFenced)
	s.ok(s.mark(2, 5, s.fence(5)))
}

func leaves(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Take(1, engine.SetOf(5)))
	s.ok(s.Leave(1))
	h := s.look().Shards[5]
	s.same("its shard", [...]any{h.Holder, h.Heir, h.Clean, h.Former}, [...]any{0, "", false, 1})
	s.is(s.Beat(node("a", 1)), engine.ErrFenced)
	s.ok(s.Leave(1))
	s.ok(s.Beat(node("b", 2)))
	s.ok(s.Join(node("a", 3), s.pulse("a")))
	s.ok(s.Leave(1))
	s.ok(s.Beat(node("a", 3)))
}

func newestOfAll(s *members) {
	s.join(node("a", 1), node("b", 2))
	check := func(what string, want engine.TimerID) {
		s.Helper()
		for life := range uint64(3) {
			id, err := s.of(life).Newest(s.ctx)
			s.ok(err)
			s.same(what, id, want)
		}
	}
	check("of none", 0)
	s.of(1).create(shot(9, "a", t0+hour))
	check("created", 9)
	s.of(1).delete(s.of(1).get(9))
	s.of(2).create(shot(7, "b", t0+hour))
	check("deleted, and a smaller one is created", 9)
	s.ok(s.of(2).Settle(s.ctx, &engine.Settlement{Owner: "b", Owe: []engine.Owed{owed(12, t0, t0)}}))
	check("named by a row", 12)
}

func tableSurvives(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Take(1, engine.SetOf(5)))
	s.ok(s.Give(1, engine.Handover{Shard: 5, Fence: s.fence(5), Heir: "b"}))
	s.ok(s.Take(2, engine.SetOf(6)))
	before := s.look()
	for _, p := range s.processes {
		s.ok(p.Close())
	}
	for _, p := range s.processes {
		s.ok(p.Open(s.ctx))
	}
	after := s.look()
	s.same("nodes", after.Nodes, before.Nodes)
	s.same("moves", after.Moves, before.Moves)
	s.same("the secret", after.Secret, before.Secret)
	s.same("shards", *after.Shards, *before.Shards)
}
