package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// world is many nodes over one table, in a bubble. An invariant is checked all
// the time: no shard has two owners whose leases are fresh.
type world struct {
	t     *testing.T
	table *memory.Members
	nodes []*station
	began time.Time

	mu       sync.Mutex
	rng      *rand.Rand
	stalled  time.Time // calls that reach the table are carried out then
	readOnly time.Time // until then the table is read and not written
	calm     bool      // no faults any more

	sent sync.WaitGroup // calls under way

	lives, evictions, gives, lateCalls, ends atomic.Int64
}

// station is one node: its clock, its link to the table, and its process.
type station struct {
	*world
	name string
	rate float64       // of its clock
	boot time.Duration // of its clock, when the world began

	mu      sync.Mutex // guards all below
	rng     *rand.Rand
	journal byte
	frozen  time.Time    // until then
	cut     [2]time.Time // until then requests, or answers, are lost
	slow    time.Time    // until then each way takes up to delay
	delay   time.Duration
	late    time.Duration // each answer takes so much longer
	stop    func()        // ends the process
	process *process      // nil: none runs
	down    bool          // none is started
	deaf    bool          // it takes nothing
	hung    time.Time     // until then Gain does not return
}

// process is one life of a station, and its way to the table.
type process struct {
	*station
	*Member
	killed atomic.Bool
}

var errLost = errors.New("no answer")

func newWorld(t *testing.T, seed uint64, nodes int) *world {
	w := &world{t: t, began: time.Now(), rng: rand.New(rand.NewPCG(seed, 1))}
	w.table = memory.NewMembers(memory.NewCold())
	for i := range nodes {
		w.nodes = append(w.nodes, w.station(fmt.Sprint("node-", i), seed*100+uint64(i)))
	}
	return w
}

func (w *world) station(name string, seed uint64) *station {
	s := &station{world: w, name: name, rng: rand.New(rand.NewPCG(seed, 2)), journal: 1}
	s.rate = 1 + s.rng.Float64()/2
	s.boot = time.Duration(s.rng.Int64N(int64(time.Hour)))
	return s
}

// run supervises the processes of a station until ctx ends.
func (s *station) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		down, pause := s.down, time.Duration(50+s.rng.IntN(500))*ms
		s.mu.Unlock()
		if !down {
			s.live(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// live runs one process.
func (s *station) live(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &process{station: s}
	s.mu.Lock()
	n := engine.Node{Name: s.name, Life: s.rng.Uint64(), Weight: 1, Journal: [16]byte{s.journal}}
	p.Member = New(Config{
		Node: n, Members: p, Times: usual,
		Boot:  p.clock,
		After: func(d time.Duration) <-chan time.Time { return time.After(time.Duration(float64(d) / s.rate)) },
		Gain: func([]Gained) {
			p.mu.Lock()
			hung := time.Until(p.hung)
			p.mu.Unlock()
			time.Sleep(hung)
			p.gate()
		},
		Cede: func(ctx context.Context, shards []int) (unclean engine.Set, err error) {
			for _, shard := range shards {
				if _, ok := p.shards.owns(shard); ok {
					s.t.Errorf("%s: shard %d is owned while it is ceded", s.name, shard)
				}
			}
			return unclean, p.pause(ctx, s.draw(300*ms))
		},
	})
	s.process, s.stop = p, cancel
	s.mu.Unlock()
	s.lives.Add(1)
	if err := p.Run(ctx); err != nil && ctx.Err() == nil {
		s.ends.Add(1)
	}
	s.mu.Lock()
	s.process = nil
	s.mu.Unlock()
}

// kill ends the process at once: it sends nothing any more. What it has sent may arrive.
func (s *station) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.killed.Store(true)
		s.frozen = time.Time{}
		s.stop()
	}
}

// draw is up to d.
func (s *station) draw(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rng.Int64N(int64(d)))
}

// now reads the station's clock.
func (s *station) now() time.Duration {
	return s.boot + time.Duration(s.rate*float64(time.Since(s.began)))
}

// clock is the clock of a process, which may be stopped before and after it reads.
func (p *process) clock() time.Duration {
	p.gate()
	now := p.now()
	p.stumble()
	return now
}

// gate is where a process that is frozen stays.
func (p *process) gate() {
	for !p.killed.Load() {
		p.mu.Lock()
		d := time.Until(p.frozen)
		p.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(min(d, 50*ms))
	}
}

// stumble stops the process right here, now and then.
func (p *process) stumble() {
	p.world.mu.Lock()
	calm := p.calm
	p.world.mu.Unlock()
	p.mu.Lock()
	if !calm && p.rng.IntN(1500) == 0 {
		p.frozen = time.Now().Add(time.Duration(p.rng.Int64N(int64(4 * time.Second))))
	}
	p.mu.Unlock()
	p.gate()
}

func (p *process) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	p.gate()
	return ctx.Err()
}

// way is how long one way of a call takes, and whether it is lost.
func (s *station) way(direction int) (takes time.Duration, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	takes = time.Duration(s.rng.Int64N(int64(2 * ms)))
	if time.Now().Before(s.slow) {
		takes += time.Duration(s.rng.Int64N(int64(s.delay)))
	}
	if direction == 1 {
		takes += s.late
	}
	return takes, time.Now().Before(s.cut[direction])
}

// call sends a call to the table. It may be carried out after the process gave it up.
func (p *process) call(ctx context.Context, carryOut func() error) error {
	p.gate()
	p.stumble()
	if p.killed.Load() {
		return errLost
	}
	answer := make(chan error, 1)
	p.sent.Go(func() {
		takes, lost := p.way(0)
		time.Sleep(takes)
		p.world.mu.Lock()
		stall := time.Until(p.stalled)
		p.world.mu.Unlock()
		time.Sleep(stall)
		if lost {
			return
		}
		if ctx.Err() != nil {
			p.lateCalls.Add(1)
		}
		err := carryOut()
		takes, lost = p.way(1)
		time.Sleep(takes)
		if !lost {
			answer <- err
		}
	})
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = errLost
	}
	p.stumble()
	return err
}

// write sends a call that writes.
func (p *process) write(ctx context.Context, carryOut func() error) error {
	p.world.mu.Lock()
	refused := time.Until(p.readOnly) > 0
	p.world.mu.Unlock()
	if refused {
		return errLost
	}
	return p.call(ctx, carryOut)
}

func (p *process) Join(ctx context.Context, n engine.Node, was engine.Pulse) error {
	return p.write(ctx, func() error { return p.table.Join(ctx, n, was) })
}

func (p *process) Beat(ctx context.Context, n engine.Node) error {
	return p.write(ctx, func() error { return p.table.Beat(ctx, n) })
}

func (p *process) Look(ctx context.Context, moves uint64) (engine.Membership, error) {
	var seen atomic.Pointer[engine.Membership]
	err := p.call(ctx, func() error {
		read, err := p.table.Look(ctx, moves)
		seen.Store(&read)
		return err
	})
	if err != nil {
		return engine.Membership{}, err
	}
	return *seen.Load(), nil
}

func (p *process) Evict(ctx context.Context, life uint64, dead engine.Pulse) error {
	return p.write(ctx, func() error {
		err := p.table.Evict(ctx, life, dead)
		if err == nil {
			p.evictions.Add(1)
		}
		return err
	})
}

func (p *process) Take(ctx context.Context, life uint64, shards engine.Set) error {
	p.mu.Lock()
	deaf := p.deaf
	p.mu.Unlock()
	if deaf {
		return errLost
	}
	return p.write(ctx, func() error { return p.table.Take(ctx, life, shards) })
}

func (p *process) Give(ctx context.Context, life uint64, shards []engine.Handover) error {
	p.gives.Add(1)
	return p.write(ctx, func() error { return p.table.Give(ctx, life, shards) })
}

func (p *process) Wish(ctx context.Context, life uint64, what engine.Wish) error {
	return p.write(ctx, func() error { return p.table.Wish(ctx, life, what) })
}

func (p *process) Leave(ctx context.Context, life uint64) error {
	return p.write(ctx, func() error { return p.table.Leave(ctx, life) })
}

func (p *process) Newest(ctx context.Context) (engine.TimerID, error) { return p.table.Newest(ctx) }

// eachOwned gives the shards that a node may call for now, and its name.
func (w *world) eachOwned(give func(shard int, by string)) {
	for _, s := range w.nodes {
		s.mu.Lock()
		p := s.process
		s.mu.Unlock()
		if p == nil || p.killed.Load() || !p.lease.Fresh(s.now()) {
			continue
		}
		p.shards.mu.Lock()
		for i := range p.shards.held {
			if p.shards.held[i].state == owned {
				give(i, s.name)
			}
		}
		p.shards.mu.Unlock()
	}
}

// owners lists for each shard the nodes that may call for it now.
func (w *world) owners() (by [engine.Shards][]string) {
	w.eachOwned(func(shard int, name string) { by[shard] = append(by[shard], name) })
	return by
}

// check looks for a shard with two owners.
func (w *world) check() (ok bool) {
	var owners [engine.Shards]int8
	ok = true
	w.eachOwned(func(shard int, _ string) {
		owners[shard]++
		ok = ok && owners[shard] == 1
	})
	if !ok {
		for shard, by := range w.owners() {
			if len(by) > 1 {
				w.t.Errorf("%v: shard %d is owned by %v", time.Since(w.began), shard, by)
				break
			}
		}
	}
	return ok
}

// healed reports why not each shard has an owner, or a node is not at its quota.
func (w *world) healed() error {
	up := map[string]int{}
	for _, s := range w.nodes {
		s.mu.Lock()
		if !s.down {
			up[s.name] = 0
		}
		s.mu.Unlock()
	}
	for shard, by := range w.owners() {
		if len(by) != 1 {
			return fmt.Errorf("shard %d is owned by %v", shard, by)
		}
		if _, ok := up[by[0]]; !ok {
			return fmt.Errorf("shard %d is owned by %s still", shard, by[0])
		}
		up[by[0]]++
	}
	for name, n := range up {
		if quota := engine.Shards / len(up); n != quota && n != quota+1 {
			return fmt.Errorf("%s owns %d shards of a quota of %d: %v", name, n, quota, up)
		}
	}
	return nil
}
