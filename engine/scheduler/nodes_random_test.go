package scheduler_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// storm is nodes to which anything happens.
type storm struct {
	*world     // the first of them: the cold tier, and what is proven of it
	rng        *rand.Rand
	nodes      []*world
	calm       atomic.Bool // all targets answer at once
	away       atomic.Bool // the cold tier is away
	background sync.WaitGroup
	timers     map[string]engine.TimerID
	did        []string
}

// seeds is how many worlds a random test tries: so many, or as XTIMER_SEEDS says.
func seeds(n int) int {
	if set, err := strconv.Atoi(os.Getenv("XTIMER_SEEDS")); err == nil {
		return set
	}
	return n
}

// Nodes are killed, started again, cut off and stopped while timers are made, changed and
// called, so that shards are taken over and given back. Every due is called; none early; none
// again without a mark; and only by the node that has the shard.
func TestNodesAtRandom(t *testing.T) {
	for seed := range seeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				s := &storm{world: w, rng: rand.New(rand.NewPCG(uint64(seed), 1)), nodes: w.nodes(2 + seed%2), timers: map[string]engine.TimerID{}}
				defer endNodes(s.nodes)
				s.run(seed%3 == 0)
				if t.Failed() {
					for _, line := range s.did {
						t.Log(line)
					}
				}
			})
		})
	}
}

func (s *storm) run(crowded bool) {
	for _, n := range s.nodes {
		n.before.set(func(op string, _ any) error {
			switch {
			case s.away.Load():
				return engine.ErrUnavailable
			case op == "Apply": // a hand-over comes in between
				time.Sleep(70 * time.Millisecond)
			}
			return nil
		})
		if crowded {
			n.config.MaxWaiting, n.config.MaxCalls, n.config.MaxCallsPerTarget, n.config.MaxCallsPerApp = 40, 6, 6, 6
		}
		n.start()
	}
	time.Sleep(1300 * time.Millisecond)
	for range 18 {
		for range s.rng.IntN(6) {
			s.create()
		}
		s.change()
		most := 15 * time.Second
		if s.rng.IntN(2) == 0 { // in the middle of what the last one has begun
			most = 2 * time.Second
		}
		time.Sleep(time.Duration(s.rng.Int64N(int64(most))))
		s.happen(s.nodes[s.rng.IntN(len(s.nodes))])
	}
	s.background.Wait()
	s.away.Store(false)
	s.calm.Store(true)
	time.Sleep(5 * time.Second) // a life that is over drains
	for _, n := range s.nodes {
		if s.reap(n); n.life == nil {
			n.start()
		}
	}
	time.Sleep(3 * time.Minute)
	for name, id := range s.timers {
		s.onOwner(func(n *world) error {
			_, err := n.Disable(s.t.Context(), id, 0, "", 0)
			if errors.Is(err, engine.ErrNotFound) {
				err = nil
			}
			return err
		})
		s.judge(name)
	}
	time.Sleep(10 * time.Second)
}

// note tells what was done.
func (s *storm) note(n *world, what string) {
	s.did = append(s.did, stamp(s.now())+" "+n.config.Node+": "+what)
}

// reap notes that the process of a node has ended by itself.
func (s *storm) reap(n *world) {
	if n.life == nil {
		return
	}
	select {
	case err := <-n.life.end:
		n.life.end <- err
		_ = n.ended()
		s.note(n, fmt.Sprint("ended: ", err))
	default:
	}
}

// happen does something to a node.
func (s *storm) happen(n *world) {
	s.reap(n)
	if n.life == nil {
		s.note(n, "start")
		n.start()
		return
	}
	switch s.rng.IntN(8) {
	case 5:
		d := time.Duration(s.rng.Int64N(int64(8 * time.Second)))
		s.note(n, fmt.Sprint("the cold tier is away for ", d))
		s.away.Store(true)
		s.background.Go(func() {
			time.Sleep(d)
			s.away.Store(false)
		})
	case 6:
		s.note(n, "restart")
		_ = n.stop()
		n.start()
	case 7:
		d := time.Duration(s.rng.Int64N(int64(200 * time.Millisecond)))
		s.note(n, fmt.Sprint("the clock is set forward by ", d))
		n.step(d)
	case 0:
		s.note(n, "kill")
		n.kill()
	case 1:
		down := time.Duration(s.rng.Int64N(int64(4 * time.Second)))
		s.note(n, fmt.Sprint("crash, down for ", down))
		n.crash(down)
	case 2:
		d := time.Duration(s.rng.Int64N(int64(5 * time.Second)))
		s.note(n, fmt.Sprint("cut off for ", d))
		n.node.cut.Store(true)
		time.Sleep(d)
		n.node.cut.Store(false)
		time.Sleep(time.Second)
		s.reap(n)
	case 3:
		s.note(n, "power failure")
		n.power(time.Duration(s.rng.Int64N(int64(4 * time.Second))))
	case 4:
		s.note(n, "stop")
		_ = n.stop()
	}
}

// create makes a timer of some kind on some node.
func (s *storm) create() {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	if n.life == nil {
		return
	}
	kind := []string{"fast", "slow", "fails", "alone", "queue", "shot", "mute", "once", "often"}[s.rng.IntN(9)]
	name := fmt.Sprint(kind, "-", len(s.timers))
	d := timer(name, every(time.Duration(1+s.rng.IntN(70))*time.Second), misfire(engine.MisfireAll, time.Hour))
	r := ok
	switch kind {
	case "once":
		r, d.Delivery = slow(time.Duration(s.rng.Int64N(int64(6*time.Second)))), engine.AtMostOnce
	case "often":
		d.Schedule = every(400 * time.Millisecond)
	case "slow":
		r = slow(time.Duration(s.rng.Int64N(int64(6 * time.Second))))
	case "fails":
		r = fail
		d.Retry = engine.Retry{MaxAttempts: 4, Backoff: 3 * time.Second, Multiplier: 3, MaxBackoff: time.Hour, MaxAge: 24 * time.Hour}
	case "alone":
		r, d.Overlap = slow(3*time.Second), engine.OverlapSkip
	case "queue":
		r, d.Overlap = slow(3*time.Second), engine.OverlapQueue
	case "shot":
		d.Schedule = delay(time.Duration(s.rng.IntN(150)) * time.Second)
	case "mute":
		r, d.Schedule = slow(15*time.Second), every(2*time.Second)
	}
	for _, x := range s.nodes {
		x.behave(name, func(*call) reply {
			if s.calm.Load() {
				return ok
			}
			return r
		})
	}
	if c := n.Create(s.t.Context(), d, nil); c.Err == nil {
		s.timers[name] = c.View.ID
	}
}

// change has some node change some timer, which only its owner does.
func (s *storm) change() {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	if n.life == nil {
		return
	}
	for name, id := range s.timers {
		var err error
		switch s.rng.IntN(3) {
		case 0:
			_, err = n.Replace(s.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
				d.Schedule = every(time.Duration(2+s.rng.IntN(20)) * time.Second)
				return d, nil
			})
		case 1:
			_, err = n.RunNow(s.t.Context(), id, 0)
		case 2:
			_, err = n.Delete(s.t.Context(), id, 0)
		}
		s.note(n, fmt.Sprint("change of ", name, ": ", err))
		return
	}
}

// onOwner does something on the node that owns what it is about.
func (s *storm) onOwner(f func(n *world) error) {
	s.t.Helper()
	for _, n := range s.nodes {
		if err := f(n); err == nil {
			return
		} else if !errors.Is(err, engine.ErrElsewhere) {
			s.t.Errorf("%s: %v", n.config.Node, err)
			return
		}
	}
	s.t.Error("no node owns a shard")
}

// judge holds the calls of a timer against what was promised; that none is missing is for
// the ledger to prove.
func (s *storm) judge(name string) {
	type attempt struct {
		due int64
		n   int
	}
	seen := map[attempt]bool{}
	for _, c := range ofAll(s.nodes, name) {
		if c.at < c.key.Due {
			s.t.Errorf("%s, due %s, was called early, at %s", name, stamp(c.key.Due), stamp(c.at))
		}
		a := attempt{c.key.Due, c.attempt}
		if seen[a] && strings.HasPrefix(name, "once") {
			s.t.Errorf("%s, due %s, attempt %d, was called twice", name, stamp(c.key.Due), c.attempt)
		}
		if seen[a] && !c.redelivered {
			s.t.Errorf("%s, due %s, attempt %d, was called again at %s without a mark", name, stamp(c.key.Due), c.attempt, stamp(c.at))
		}
		seen[a] = true
	}
}
