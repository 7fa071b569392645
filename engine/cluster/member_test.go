package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// live runs the nodes of a world in a bubble, checks the invariant all the time, and
// ends all of it after the script.
func live(t *testing.T, seed uint64, nodes int, script func(w *world), rates ...float64) *world {
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, nodes)
		for i, rate := range rates {
			w.nodes[i].rate = rate
		}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for _, s := range w.nodes {
			wg.Go(func() { s.run(ctx) })
		}
		wg.Go(func() {
			time.Sleep(500 * time.Microsecond)
			for ctx.Err() == nil && w.check() {
				time.Sleep(2 * ms)
			}
		})
		script(w)
		cancel()
		wg.Wait()
		w.sent.Wait()
	})
	return w
}

// settles waits until the world has healed.
func (w *world) settles(within time.Duration) (after time.Duration) {
	w.t.Helper()
	from := time.Now()
	for ; w.healed() != nil; time.Sleep(10 * ms) {
		if time.Since(from) > within {
			w.t.Errorf("%v: after %v %v", time.Since(w.began), within, w.healed())
			break
		}
	}
	return time.Since(from)
}

// at runs a function under a station's lock.
func (s *station) at(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// still lets nothing happen by chance.
func (w *world) still() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = true
}

func TestMembersShareTheShards(t *testing.T) {
	w := live(t, 1, 3, func(w *world) {
		w.still()
		t.Logf("settled after %v", w.settles(10*time.Second))
		owners := w.owners()
		for _, s := range w.nodes {
			for shard, by := range owners {
				if fence, ok := s.process.Owns(shard); ok != (by[0] == s.name) || ok && fence == 0 {
					t.Errorf("%s owns shard %d of %v: %v, fence %d", s.name, shard, by, ok, fence)
				}
			}
		}
		time.Sleep(time.Minute)
		for shard, by := range w.owners() {
			if by[0] != owners[shard][0] {
				t.Errorf("shard %d moved in peace", shard)
			}
		}
	})
	if w.lives.Load() != 3 || w.evictions.Load() > 0 {
		t.Errorf("%d lives, %d evictions", w.lives.Load(), w.evictions.Load())
	}
}

// After a kill the shards of the dead have owners within 3 s, and nobody else's move.
func TestTakeover(t *testing.T) {
	live(t, 2, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		before := w.owners()
		dead := w.nodes[1]
		dead.at(func() { dead.down = true })
		dead.kill()
		if took := w.settles(3 * time.Second); took > 2300*ms {
			t.Errorf("taken over after %v", took)
		}
		for shard, by := range w.owners() {
			if was := before[shard][0]; was != dead.name && by[0] != was {
				t.Errorf("shard %d moved from %s to %s", shard, was, by[0])
			}
		}
	})
}

// A process that is started again before its node is silent keeps its shards.
func TestRestartKeepsShards(t *testing.T) {
	w := live(t, 3, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		before := w.owners()
		w.nodes[1].kill()
		time.Sleep(ms)
		w.settles(3 * time.Second)
		for shard, by := range w.owners() {
			if by[0] != before[shard][0] {
				t.Errorf("shard %d moved", shard)
			}
		}
	})
	if w.evictions.Load() > 0 {
		t.Errorf("%d evictions", w.evictions.Load())
	}
}

// While the table is away nobody calls for longer than a hold. Nobody is buried by that,
// and all go on when it is back.
func TestTableAway(t *testing.T) {
	w := live(t, 4, 4, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		before := w.owners()
		w.mu.Lock()
		w.stalled = time.Now().Add(20 * time.Second)
		w.mu.Unlock()
		time.Sleep(1210 * ms)
		for shard, by := range w.owners() {
			if len(by) > 0 {
				t.Errorf("shard %d has the owner %v without the table", shard, by)
				break
			}
		}
		time.Sleep(time.Until(w.stalled))
		if took := w.settles(10 * time.Second); took > 900*ms {
			t.Errorf("all owned again after %v", took)
		}
		time.Sleep(5 * time.Second)
		for shard, by := range w.owners() {
			if len(by) != 1 || by[0] != before[shard][0] {
				t.Errorf("shard %d: %v", shard, by)
			}
		}
	})
	if w.lives.Load() != 4 || w.evictions.Load() > 0 {
		t.Errorf("%d lives, %d evictions", w.lives.Load(), w.evictions.Load())
	}
}

// While the table is read and not written, all lives look silent. None is buried by that.
func TestTableReadOnly(t *testing.T) {
	w := live(t, 10, 4, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		before := w.owners()
		w.mu.Lock()
		w.readOnly = time.Now().Add(20 * time.Second)
		w.mu.Unlock()
		time.Sleep(time.Until(w.readOnly))
		w.settles(900 * ms)
		time.Sleep(5 * time.Second)
		for shard, by := range w.owners() {
			if len(by) != 1 || by[0] != before[shard][0] {
				t.Errorf("shard %d: %v", shard, by)
			}
		}
	})
	if w.lives.Load() != 4 || w.evictions.Load() > 0 {
		t.Errorf("%d lives, %d evictions", w.lives.Load(), w.evictions.Load())
	}
}

// A life whose looks hang does not beat either, so the others bury it.
func TestLifeThatHangs(t *testing.T) {
	w := live(t, 11, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		hangs, dead := w.nodes[0], w.nodes[1]
		hangs.at(func() { hangs.hung = time.Now().Add(20 * time.Second) })
		dead.at(func() { dead.down = true })
		dead.kill()
		time.Sleep(10 * time.Second)
		for shard, by := range w.owners() {
			if len(by) != 1 || by[0] != w.nodes[2].name {
				t.Errorf("shard %d is owned by %v", shard, by)
				break
			}
		}
		time.Sleep(time.Until(hangs.hung))
		w.settles(10 * time.Second)
	})
	if w.evictions.Load() != 2 {
		t.Errorf("%d evictions", w.evictions.Load())
	}
}

// A life that learns that it is over owns nothing from then on, also while a hand-over has
// not ended yet.
func TestLifeThatIsOverOwnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, began := memory.NewMembers(memory.NewCold()), time.Now()
		m := New(Config{
			Node: engine.Node{Name: "a", Life: 1}, Members: table, Times: usual,
			Boot: func() time.Duration { return time.Since(began) }, After: time.After,
			Gain: func([]Gained) {},
			Cede: func(context.Context, []int) (unclean engine.Set, err error) {
				time.Sleep(10 * time.Second)
				return unclean, nil
			},
		})
		owned := func() (n int) {
			for shard := range engine.Shards {
				if _, ok := m.Owns(shard); ok {
					n++
				}
			}
			return n
		}
		ended := make(chan error, 1)
		go func() { ended <- m.Run(t.Context()) }()
		time.Sleep(time.Second)
		if err := table.Join(t.Context(), engine.Node{Name: "b", Life: 2, State: engine.Serving}, engine.Pulse{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(usual.Beat)
		if n := owned(); n != engine.Shards-handed {
			t.Errorf("%d shards are owned during a hand-over", n)
		}
		seen, err := table.Look(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Join(t.Context(), engine.Node{Name: "a", Life: 3, State: engine.Serving}, seen.Nodes[0].Pulse()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(usual.Beat)
		if n := owned(); n > 0 {
			t.Errorf("a life that is over owns %d shards", n)
		}
		if err := <-ended; !errors.Is(err, engine.ErrFenced) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// A node that beats and does not take leaves no shard free for long, and is given few.
func TestNodeThatTakesNothing(t *testing.T) {
	w := live(t, 8, 4, func(w *world) {
		w.still()
		deaf := w.nodes[2]
		deaf.at(func() { deaf.deaf, deaf.down = true, true })
		deaf.kill()
		time.Sleep(5 * time.Second)
		deaf.at(func() { deaf.down = false })
		var unowned time.Duration
		for range 400 {
			time.Sleep(50 * ms)
			n := engine.Shards
			w.eachOwned(func(int, string) { n-- })
			unowned += time.Duration(n) * 50 * ms
		}
		if unowned > 6*time.Minute || unowned == 0 {
			t.Errorf("shards were free for %v in 20 s", unowned)
		}
		t.Logf("shards were free for %v in 20 s", unowned)
		deaf.at(func() { deaf.deaf = false })
		w.settles(20 * time.Second)
	})
	if w.evictions.Load() > 0 {
		t.Errorf("%d evictions", w.evictions.Load())
	}
}

// A lease runs from the start of a beat, also where each answer is late and the clock of the
// node that buries runs faster.
func TestLeaseOfLateAnswers(t *testing.T) {
	w := live(t, 9, 2, func(w *world) {
		w.still()
		slow := w.nodes[0]
		w.settles(10 * time.Second)
		slow.at(func() { slow.late = 700 * ms })
		time.Sleep(5 * time.Second)
		slow.at(func() { slow.cut[0], slow.down = time.Now().Add(time.Hour), true })
		w.settles(4 * time.Second)
	}, 1, 1.5)
	if w.evictions.Load() != 1 {
		t.Errorf("%d evictions", w.evictions.Load())
	}
}

// A node that drains gives all its shards, without an eviction.
func TestDrain(t *testing.T) {
	w := live(t, 5, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		s := w.nodes[2]
		var p *process
		s.at(func() { s.down, p = true, s.process })
		if err := p.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		s.at(s.stop)
		w.settles(time.Second)
	})
	if w.evictions.Load() > 0 {
		t.Errorf("%d evictions", w.evictions.Load())
	}
}

// wish stores a wish of the life of a station, if it has one.
func (w *world) wish(s *station, what engine.Wish) {
	seen, err := w.table.Look(context.Background(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range seen.Nodes {
		if n.Name == s.name && n.Life != 0 {
			_ = w.table.Wish(context.Background(), n.Life, what)
		}
	}
}

// owned is how many shards a station may call for.
func (w *world) owned(s *station) (n int) {
	for _, by := range w.owners() {
		if slices.Contains(by, s.name) {
			n++
		}
	}
	return n
}

// A node that is to drain gives all its shards and lives on, until that is taken back, or no
// other node is left that serves; two that are to drain serve on if there are no others.
// Then it can be stopped as any node can.
func TestWishToDrain(t *testing.T) {
	w := live(t, 5, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
		is := func(want ...int) {
			t.Helper()
			time.Sleep(10 * time.Second)
			if got := []int{w.owned(a), w.owned(b), w.owned(c)}; !slices.Equal(got, want) {
				t.Errorf("the nodes own %v shards, want %v", got, want)
			}
		}
		w.wish(c, engine.WishDrain)
		is(128, 128, 0)
		w.wish(c, engine.WishServe)
		is(86, 85, 85)
		w.wish(c, engine.WishDrain)
		is(128, 128, 0)
		for _, s := range []*station{a, b} {
			s.at(func() { s.down = true })
			s.at(s.stop)
		}
		is(0, 0, 256)
		b.at(func() { b.down = false })
		is(0, 256, 0)
		w.wish(b, engine.WishDrain)
		is(0, 128, 128) // neither can give to the other
		w.wish(c, engine.WishServe)
		is(0, 0, 256)
		var p *process
		c.at(func() { c.down, p = true, c.process })
		w.wish(b, engine.WishServe)
		time.Sleep(time.Second)
		if err := p.Drain(context.Background()); err != nil || w.owned(c) > 0 {
			t.Error(err, w.owned(c))
		}
		c.at(c.stop)
		is(0, 256, 0)
	})
	if w.evictions.Load() > 0 || w.ends.Load() > 0 {
		t.Errorf("%d evictions, %d lives that were ended", w.evictions.Load(), w.ends.Load())
	}
}

// A node that is to end does so at once, and frees its shards; its next life is as any.
func TestWishToEnd(t *testing.T) {
	w := live(t, 5, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		s := w.nodes[2]
		s.at(func() { s.down = true })
		w.wish(s, engine.WishEnd)
		w.settles(time.Second)
		s.at(func() { s.down = false })
		w.settles(5 * time.Second)
	})
	if w.evictions.Load() > 0 || w.ends.Load() != 1 {
		t.Errorf("%d evictions, %d lives that were ended", w.evictions.Load(), w.ends.Load())
	}
}

// A life that ends by itself frees its shards at once: no other node waits for a silence.
func TestLeave(t *testing.T) {
	w := live(t, 12, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		s := w.nodes[2]
		s.at(func() { s.down = true })
		s.at(s.stop)
		w.settles(time.Second)
	})
	if w.evictions.Load() > 0 || w.ends.Load() > 0 {
		t.Errorf("%d evictions, %d lives that were ended", w.evictions.Load(), w.ends.Load())
	}
}

// The last node that drains gives nothing, and does not wait.
func TestDrainAlone(t *testing.T) {
	live(t, 6, 1, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		if err := w.nodes[0].process.Drain(context.Background()); err != nil || w.healed() != nil {
			t.Error(err, w.healed())
		}
	})
}

// A second process under one name does not start while the first one beats. With another
// journal it listens for a whole silence, so that it also hears a process that lost a beat.
func TestTwoProcessesOfOneName(t *testing.T) {
	for _, journal := range []byte{1, 2} {
		w := live(t, 7, 2, func(w *world) {
			w.still()
			w.settles(10 * time.Second)
			p := &process{station: w.station("twin", 99)}
			p.rate = 1
			p.Member = New(Config{
				Node:    engine.Node{Name: "node-1", Life: 77, Journal: [16]byte{journal}},
				Members: p, Times: usual, Boot: p.clock, After: time.After,
				Gain: func([]Gained) {}, Cede: func(context.Context, []int) (unclean engine.Set, err error) { return unclean, nil },
			})
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if journal == 2 {
				w.nodes[1].at(func() { w.nodes[1].cut[0] = time.Now().Add(500 * ms) })
			}
			if err := p.Run(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "give this process another name with --node") {
				t.Errorf("the second process ended with %v", err)
			}
			w.settles(100 * ms)
		}, 1, 1)
		if w.lives.Load() != 2 || w.evictions.Load() > 0 {
			t.Errorf("%d lives, %d evictions", w.lives.Load(), w.evictions.Load())
		}
	}
}

// seeds is how many worlds are tried.
func seeds() int {
	if n, err := strconv.Atoi(os.Getenv("XTIMER_SEEDS")); err == nil {
		return n
	}
	return 8
}

// TestMembersUnderFaults lets nodes be killed, frozen anywhere, cut off, slow, and drained, and
// the table stall, for a minute or so. No shard ever has two owners that may call. 10 s
// after the last fault each has one, and each node is at its quota.
func TestMembersUnderFaults(t *testing.T) {
	var evictions, gives, late, ends int64
	for seed := range uint64(seeds()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := live(t, seed, 3+int(seed%3), func(w *world) {
				for range 15 + w.rng.IntN(20) {
					w.fault()
					time.Sleep(time.Duration(w.rng.Int64N(int64(4 * time.Second))))
				}
				w.calms()
				w.settles(10 * time.Second)
			})
			evictions += w.evictions.Load()
			gives += w.gives.Load()
			late += w.lateCalls.Load()
			ends += w.ends.Load()
		})
	}
	t.Logf("%d evictions, %d lives that were ended, %d hand-overs, %d calls that were carried out late", evictions, ends, gives, late)
	if evictions == 0 || gives == 0 || late == 0 || ends == 0 {
		t.Error("the faults are too mild")
	}
}

// fault makes one.
func (w *world) fault() {
	s := w.nodes[w.rng.IntN(len(w.nodes))]
	until := time.Now().Add(time.Duration(w.rng.Int64N(int64(5 * time.Second))))
	switch w.rng.IntN(10) {
	case 9:
		w.wish(s, engine.Wish(w.rng.IntN(3)))
	case 0:
		s.kill()
	case 1:
		s.at(func() { s.down = !s.down })
		s.kill()
	case 2:
		s.at(func() { s.frozen = until })
	case 3:
		s.at(func() { s.cut[0] = until })
	case 4:
		s.at(func() { s.cut[1] = until })
	case 5:
		s.at(func() { s.cut = [2]time.Time{until, until} })
	case 6:
		s.at(func() { s.slow, s.delay = until.Add(5*time.Second), 3*time.Second })
	case 7:
		w.mu.Lock()
		w.stalled = until
		w.mu.Unlock()
	case 8:
		var p *process
		s.at(func() { s.journal, p = s.journal+1, s.process })
		if p != nil {
			w.sent.Go(func() { _ = p.Drain(context.Background()) })
			time.Sleep(time.Second)
			s.at(func() { s.stop() })
		}
	}
}

// calms ends all faults.
func (w *world) calms() {
	w.still()
	w.mu.Lock()
	w.stalled = time.Time{}
	w.mu.Unlock()
	for _, s := range w.nodes {
		w.wish(s, engine.WishServe)
		s.at(func() { s.frozen, s.cut, s.slow, s.down = time.Time{}, [2]time.Time{}, time.Time{}, false })
	}
}
