package simulator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// healed is how long after the last fault each shard has an owner, and no node has more
// shards than its part.
const healed = 10 * time.Second

// fleet is several nodes over one cold tier, one warm tier and one mirror. The machine
// that it embeds is no machine here: it has what was asked, called and seen.
type fleet struct {
	*machine
	plan  *FleetScript
	cold  *memory.Cold
	table *memory.Members
	nodes []*node
	sent  sync.WaitGroup // calls to the table under way, also given up ones
	open  atomic.Int64   // requests under way, also those that nobody waits for any more

	// writing guards the cold tier and the table against each other: who writes looks there
	// first whether its life is over, and that is one transaction. machine.mu may be taken
	// while it is held.
	writing sync.Mutex
	settled map[int]int // how often each life has stored results; MySQL counts that, and goes back with it

	// Guarded by machine.mu.
	rng    *rand.Rand
	mirror *memory.Mirror
	all    link                  // of MySQL, to all nodes
	homes  map[int]int           // the node of each life
	disks  map[int]byte          // and the number of its disk
	joined map[int]time.Duration // when each life joined, since the run began
	taken  map[int]engine.Set    // the shards that each life took, without those of its former life
	graves map[int]time.Duration // when the table ended a life, by its number
	// tableOff: the clock of MySQL is set.
	tableOff bool
	gives    []give
	ills     []ill
	backs    []*back
}

// give is a shard that a life gave to another node.
type give struct {
	at    time.Duration
	shard int
	life  int
}

// back is a time of which MySQL has lost all commits, and what the shards were when it began.
type back struct {
	from, to time.Duration
	shards   [engine.Shards]engine.Holding
	moved    engine.Set // those that a life with another disk took in that time
}

// ill is a fault, as the judge sees it.
type ill struct {
	kind     nodeKind
	node     int // -1: all
	from, to time.Duration
	by       time.Duration // of NodeClock
}

// SimulateFleet runs a script of several nodes in a bubble of its own.
func SimulateFleet(t *testing.T, s *FleetScript) (out Outcome) {
	synctest.Test(t, func(*testing.T) {
		time.Sleep(time.Until(s.Epoch))
		f := &fleet{
			machine: &machine{script: &s.Script, clocks: true, begin: time.Now(), asked: map[string][]*request{}, last: map[string]chan struct{}{}},
			plan:    s, cold: memory.NewCold(), mirror: memory.NewMirror(), rng: rand.New(rand.NewPCG(s.Seed, 5)), graves: map[int]time.Duration{}, homes: map[int]int{}, disks: map[int]byte{}, joined: map[int]time.Duration{}, settled: map[int]int{}, taken: map[int]engine.Set{},
		}
		f.table = memory.NewMembers(f.cold)
		for i := range s.Nodes {
			f.nodes = append(f.nodes, newNode(f, i))
		}
		f.run()
		out = f.judge()
	})
	return out
}

// run does the steps, and heals all nodes.
func (f *fleet) run() {
	for _, n := range f.nodes {
		f.lives.Go(n.supervise)
	}
	steps, faults := f.script.Steps, f.plan.Faults
	for len(steps)+len(faults) > 0 {
		at, isFault := f.script.Calm, false
		if len(steps) > 0 {
			at = steps[0].At
		}
		if len(faults) > 0 && (len(steps) == 0 || faults[0].At < at) {
			at, isFault = faults[0].At, true
		}
		time.Sleep(at - f.since())
		synctest.Wait() // what came before it at this instant is over
		if isFault {
			f.happen(faults[0])
			faults = faults[1:]
			continue
		}
		if f.goesBack() {
			f.note("nobody asks, for what is answered now is lost: %s", steps[0])
			steps = steps[1:]
			continue
		}
		f.note("%s", steps[0])
		f.did = append(f.did, fmt.Sprint(f.since(), " ", steps[0]))
		f.ask(steps[0])
		steps = steps[1:]
	}
	time.Sleep(f.script.Calm - f.since())
	f.heal()
}

// heal ends all faults, looks whether the nodes get over them, and ends the run.
func (f *fleet) heal() {
	f.mu.Lock()
	f.calm, f.calmAt, f.all, f.tableOff = true, f.since(), link{}, false
	f.table.SetClock(0)
	var lives []*life
	for _, n := range f.nodes {
		n.well()
		if n.life != nil {
			lives = append(lives, n.life)
		}
	}
	f.tell("calm")
	f.mu.Unlock()
	for _, l := range lives {
		l.node.wish(l, engine.WishServe)
	}
	time.Sleep(healed)
	f.holdShares()
	time.Sleep(healing - healed)
	f.asking.Wait()
	f.note("last stops")
	for _, n := range f.nodes {
		n.leave()
	}
	f.lives.Wait()
	f.sent.Wait()
	f.left = f.readLeft(f.cold)
}

// holdShares: each shard has an owner, and each node its part of them.
func (f *fleet) holdShares() {
	seen, err := f.table.Look(context.Background(), 0)
	if err != nil {
		f.wrong("the table cannot be read: %v", err)
		return
	}
	owns := map[uint64]int{}
	for i := range seen.Shards {
		owns[seen.Shards[i].Holder]++
	}
	part := engine.Shards / len(f.nodes)
	for _, n := range f.nodes {
		f.mu.Lock()
		l := n.life
		f.mu.Unlock()
		if l == nil {
			f.wrong("%v after the last fault %s does not run", healed, n.name)
		} else if has := owns[uint64(l.n)]; has != part && has != part+1 {
			f.wrong("%v after the last fault %s has %d shards of %d: %v", healed, n.name, has, engine.Shards, owns)
		}
	}
}

// pick is the life of some node that runs; nil: none does.
func (f *fleet) pick(draw uint64) *life {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.nodes {
		n := f.nodes[(draw+uint64(i))%uint64(len(f.nodes))]
		if l := n.life; l != nil && l.up && !l.over {
			return l
		}
	}
	return nil
}

// mayBeSet is by how much a clock may be set that a script sets: most clocks, of the nodes and of MySQL, are to be right,
// or nearly.
func (f *fleet) mayBeSet(s NodeStep) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	isOff := func(n *node) bool { return n.offset != 0 }
	switch {
	case f.tableOff || s.Kind == AllClock && slices.ContainsFunc(f.nodes, isOff):
		return min(max(s.By, -200*time.Millisecond), 200*time.Millisecond)
	case slices.ContainsFunc(f.nodes, (*node).isFar):
		return min(max(s.By, -farthest), farthest)
	}
	return s.By
}

// happen makes a fault happen.
func (f *fleet) happen(s NodeStep) {
	if s.Kind == NodeClock || s.Kind == AllClock {
		s.By = f.mayBeSet(s)
	}
	f.note("%s", s)
	f.did = append(f.did, fmt.Sprint(f.since(), " ", s))
	if s.Kind == AllBack {
		f.goBack(s.For)
		return
	}
	f.mu.Lock()
	now := f.since()
	if s.Place == "" {
		f.ills = append(f.ills, ill{s.Kind, s.Node, now, now + s.For, s.By})
	}
	until := now + s.For
	switch s.Kind {
	case AllAway:
		f.all.cut, f.all.silent = until, s.Silent
	case AllSlow:
		f.all.slow, f.all.delay = until, s.By
	case MirrorLost:
		f.mirror = memory.NewMirror()
	case AllClock:
		f.tableOff = true
		f.table.SetClock(s.By)
		time.AfterFunc(s.For, func() {
			f.table.SetClock(0)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.tableOff = false
		})
	}
	f.mu.Unlock()
	if s.Node >= 0 {
		f.nodes[s.Node].happen(s)
	}
}

// goBack has MySQL go back after a time to what it has now. Nothing that somebody asked for is
// under way now, and nobody asks meanwhile: who was answered then would have been told of what
// is lost. So all that was acknowledged stands.
func (f *fleet) goBack(after time.Duration) {
	for f.open.Load() > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	b := &back{from: f.since(), to: f.since() + after}
	seen, err := f.table.Look(context.Background(), 0)
	if err != nil {
		f.wrong("the table cannot be read: %v", err)
		return
	}
	b.shards = *seen.Shards
	restore, settled := f.table.Snapshot(), maps.Clone(f.settled)
	f.mu.Lock()
	f.goneBack, f.backs, f.ills = true, append(f.backs, b), append(f.ills, ill{AllBack, -1, b.from, b.to, 0})
	f.mu.Unlock()
	f.sent.Go(func() {
		time.Sleep(after)
		f.writing.Lock()
		defer f.writing.Unlock()
		restore()
		f.settled = settled
		f.note("MySQL is as it was at %v", b.from)
	})
}

// goesBack reports whether what MySQL stores now is lost, or a life may not have seen yet that some is: a change
// by such a life does not know which dues have no row any more, and leaves them without a record.
func (f *fleet) goesBack() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.backs, func(b *back) bool { return f.since() <= b.to+unseen })
}

// died notes that the table has ended a life. writing is held.
func (f *fleet) died(life uint64, how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.graves[int(life)]; !is && life != 0 {
		f.graves[int(life)] = f.since()
		f.tell("life %d is over for the table: %s", life, how)
	}
}

// living reports whether the table has a life. writing is held.
func (f *fleet) living(life int) bool {
	seen, err := f.table.Look(context.Background(), 0)
	return err == nil && slices.ContainsFunc(seen.Nodes, func(r engine.Node) bool { return r.Life == uint64(life) })
}
