package tiertest

import (
	"sync"

	"xtimer/engine"
)

// members is a table under test. Each call of a life is made by the process of that life.
type members struct {
	*process // of no life; it looks
	open     func() (engine.Cold, engine.Members)

	mu        sync.Mutex // guards processes
	processes map[uint64]*process
}

// process is what one process has open.
type process struct {
	cold
	engine.Members
}

// of is the process of a life.
func (s *members) of(life uint64) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.processes[life]
	if p == nil {
		c, m := s.open()
		p = &process{cold{s.T, c, s.ctx}, m}
		s.processes[life] = p
		if err := c.Open(s.ctx); err != nil {
			s.Error(err) // it may be one of many at once
		}
		s.Cleanup(func() { _ = c.Close() })
	}
	return p
}

func (s *members) Join(n engine.Node, was engine.Pulse) error {
	return s.of(n.Life).Join(s.ctx, n, was)
}

func (s *members) Beat(n engine.Node) error { return s.of(n.Life).Beat(s.ctx, n) }

func (s *members) Evict(life uint64, dead engine.Pulse) error {
	return s.of(life).Evict(s.ctx, life, dead)
}

func (s *members) Take(life uint64, shards engine.Set) error {
	return s.of(life).Members.Take(s.ctx, life, shards)
}

func (s *members) Give(life uint64, shards ...engine.Handover) error {
	return s.of(life).Give(s.ctx, life, shards)
}

func (s *members) Wish(life uint64, w engine.Wish) error { return s.of(9).Members.Wish(s.ctx, life, w) }

func (s *members) Leave(life uint64) error { return s.of(life).Leave(s.ctx, life) }

func wishes(s *members) {
	s.join(node("a", 1), node("b", 2))
	s.ok(s.Wish(2, engine.WishDrain))
	s.ok(s.Wish(2, engine.WishDrain))
	s.ok(s.Beat(node("b", 2)))
	s.same("the wishes", []engine.Wish{s.row("a").Wish, s.row("b").Wish}, []engine.Wish{engine.WishServe, engine.WishDrain})
	s.ok(s.Join(node("b", 3), s.pulse("b")))
	s.same("the wish of the next life", s.row("b").Wish, engine.WishServe)
	s.is(s.Wish(2, engine.WishEnd), engine.ErrConflict)
	s.is(s.Wish(0, engine.WishEnd), engine.ErrConflict)
	s.ok(s.Wish(3, engine.WishEnd))
	s.same("the wish", s.row("b").Wish, engine.WishEnd)
	s.ok(s.Leave(3))
	s.is(s.Wish(3, engine.WishServe), engine.ErrConflict)
}
