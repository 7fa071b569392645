package tiertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"xtimer/engine"
)

// A race is run in rounds: an implementation that lets two win does so in a few of them only.
const (
	rounds = 30
	racers = 16

	lives      = 8 // that race; each has a process of its own
	lifeRounds = 8
)

// race makes calls beside each other, and returns what each of them returned.
func race(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	return errs
}

// oneWins fails unless one call succeeded, and the others returned one of these. It returns
// the number of the one.
func (s *cold) oneWins(errs []error, lost ...error) (won int) {
	s.Helper()
	n := 0
	for i, err := range errs {
		if err == nil {
			n, won = n+1, i
		} else if !slices.ContainsFunc(lost, func(want error) bool { return errors.Is(err, want) }) {
			s.Fatal(err)
		}
	}
	s.same("winners", n, 1)
	return won
}

// oneChangeWins: one of the changes is a delete.
func oneChangeWins(s *cold) {
	for round := range rounds {
		id := engine.TimerID(round + 1)
		v1 := shot(id, fmt.Sprint("n", id), t0+hour)
		s.create(v1)
		url := func(i int) string { return fmt.Sprint("http://h/", i) }
		won := s.oneWins(race(racers, func(i int) error {
			next := edited(v1, func(t *engine.Timer) { t.Callback.URL = url(i) })
			if i == racers-1 {
				next = nil
			}
			_, err := s.Apply(s.ctx, &engine.Change{Timer: next, ID: id, Was: 1})
			return err
		}), engine.ErrConflict, engine.ErrNotFound)
		got, err := s.Timer(s.ctx, id)
		if won == racers-1 {
			s.is(err, engine.ErrNotFound)
			continue
		}
		s.ok(err)
		s.same("version", got.Version, 2)
		s.same("url", got.Callback.URL, url(won))
	}
}

func oneCreateWins(s *cold) {
	const rounds = rounds / 3 // one that loses is made again, by itself
	for round := range rounds {
		name := fmt.Sprint("n", round)
		id := func(i int) engine.TimerID { return engine.TimerID(round*racers + i + 1) }
		told := make([]engine.TimerID, racers) // as the timer that stands
		won := s.oneWins(race(racers, func(i int) error {
			a, err := s.Apply(s.ctx, &engine.Change{Timer: shot(id(i), name, t0+hour), ID: id(i)})
			if told[i] = id(i); err != nil && a.Existing != nil {
				told[i] = a.Existing.ID
			}
			return err
		}), engine.ErrConflict)
		got, err := s.TimerByName(s.ctx, "app", name)
		s.ok(err)
		s.same("winner", got.ID, id(won))
		s.same("what all were told", told, slices.Repeat([]engine.TimerID{id(won)}, racers))
	}
	s.same("all", len(s.list(engine.TimerFilter{}, 100)), rounds)
}

func oneOfAKeyWins(s *cold) {
	for round := range rounds {
		once := &engine.Once{App: "app", Key: fmt.Sprint("k", round), Body: [32]byte{1}, Expires: t0 + day}
		var mu sync.Mutex
		var made, told []engine.TimerID
		for _, err := range race(racers, func(i int) error {
			id := engine.TimerID(round*racers + i + 1)
			a, err := s.Apply(s.ctx, &engine.Change{Timer: shot(id, "", t0+hour), ID: id, Once: once})
			mu.Lock()
			defer mu.Unlock()
			if a.Replayed {
				told = append(told, a.Existing.ID)
			} else {
				made = append(made, id)
			}
			return err
		}) {
			s.ok(err)
		}
		s.same("winners", len(made), 1)
		s.same("what the others were told", told, slices.Repeat(made, racers-1))
	}
	s.same("all", len(s.list(engine.TimerFilter{}, 100)), rounds)
}

// oneObjectWins: of the puts of a new object, and of those of the next version beside a delete.
func oneObjectWins(s *cold) {
	for round := range rounds {
		put := func(version uint32) func(i int) error {
			return func(i int) error {
				o := object("flow", "app", fmt.Sprint(round), version, fmt.Sprint(i))
				if version == 2 && i == racers-1 {
					return s.deleteObject(&o, 1)
				}
				return s.putObject(&o, version-1)
			}
		}
		s.oneWins(race(racers, put(1)), engine.ErrConflict)
		s.oneWins(race(racers, put(2)), engine.ErrConflict)
	}
}

func oneJoinWins(s *members) {
	was := engine.Pulse{}
	for round := range lifeRounds / 2 {
		n := func(i int) engine.Node { return node("a", uint64(10*(round+1)+i)) }
		won := s.oneWins(race(lives, func(i int) error { return s.Join(n(i), was) }), engine.ErrConflict)
		s.same("the life", s.row("a").Life, n(won).Life)
		was = s.pulse("a")
	}
}

func oneEvictWins(s *members) {
	for i := range lives {
		s.join(node(fmt.Sprint("n", i), uint64(i+1)))
	}
	for round := range lifeRounds {
		n := node(fmt.Sprint("dead", round), 99)
		n.Life += uint64(round) << 8
		s.join(n)
		dead := s.pulse(n.Name)
		s.oneWins(race(lives, func(i int) error { return s.Evict(uint64(i+1), dead) }), engine.ErrConflict)
	}
}

func oneTakeWins(s *members) {
	for i := range lives {
		s.join(node(fmt.Sprint("n", i), uint64(i+1)))
	}
	for first := 0; first < engine.Shards; first += 16 {
		var of engine.Set
		for shard := first; shard < first+16; shard++ {
			of = of.Union(engine.SetOf(shard))
		}
		before := s.look()
		for _, err := range race(lives, func(i int) error { return s.Take(uint64(i+1), of) }) {
			s.ok(err)
		}
		for i, h := range s.look().Shards[:first+16] {
			if was := before.Shards[i]; i < first && h != was || i >= first && (h.Holder == 0 || h.Fence != was.Fence+1) {
				s.Fatalf("shard %d: %+v, before %+v", i, h, was)
			}
		}
	}
}

// settleBesideEviction: what is read after an eviction stays, for nothing of the life that is
// over is stored any more.
func settleBesideEviction(s *members) {
	s.join(node("a", 1))
	for round := range lifeRounds {
		life := uint64(2 + round)
		n := node(fmt.Sprint("b", round), life)
		s.join(n)
		s.ok(s.Take(life, engine.SetOf(round)))
		dead, fence := s.pulse(n.Name), s.fence(round)
		watermark := func() int64 {
			shards, err := s.of(1).Shards(s.ctx)
			if err != nil {
				s.Error(err)
				return 0
			}
			return shards[round].Watermark
		}
		var after int64
		errs := race(2, func(i int) error {
			if i == 0 {
				return s.mark(life, round, fence)
			}
			err := s.Evict(1, dead)
			after = watermark()
			return err
		})
		s.ok(errs[1])
		want := t0
		if errs[0] != nil {
			s.is(errs[0], engine.ErrFenced)
			want = 0
		}
		s.same("after the eviction", after, want)
		s.same("after both", watermark(), want)
	}
}
