package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/engine/cluster"
	"xtimer/engine/scheduler"
	"xtimer/tier/memory"
	"xtimer/tier/tiertest"
	"xtimer/wal"
)

// node is one place of a fleet: its disk, its clocks, its links, and one life after another.
type node struct {
	*fleet
	i    int
	name string
	rate float64       // of its monotonic clock
	boot time.Duration // of that clock, when the run began

	// Guarded by machine.mu.
	disk    *vfs.MemFS // of the next life
	journal byte       // which one that disk has
	life    *life      // nil: none runs
	up      time.Duration
	down    bool          // none is started before up
	last    bool          // none is started any more
	frozen  time.Duration // until then
	trap    NodeStep      // a freeze at a place, when a life comes there; the zero one: none is set
	offset  time.Duration // of its wall clock
	mysql   link
	redis   link
}

func newNode(f *fleet, i int) *node {
	d := draw{rand.New(rand.NewPCG(f.script.Seed, 100+uint64(i)))}
	return &node{
		fleet: f, i: i, name: fmt.Sprint("node-", i), rate: oneOf(d, 1, 1, 1.1, 1.4), boot: d.upTo(time.Hour),
		disk: vfs.NewCrashableMem(), journal: byte(i + 1), up: f.plan.Starts[i], down: true,
	}
}

// now is the wall clock of the node.
func (n *node) now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wall()
}

// wall is now; mu is held.
func (n *node) wall() time.Time { return time.Now().Add(n.offset) }

// isFar reports whether the clock of the node is so far off that the nodes agree on that: no two are at a time. mu is held.
func (n *node) isFar() bool { return n.offset > farthest || -n.offset > farthest }

// sinceBoot is the clock of the node that nobody sets.
func (n *node) sinceBoot() time.Duration {
	return n.boot + time.Duration(n.rate*float64(n.since()))
}

// gate is where a life stays while its node is frozen.
func (n *node) gate(l *life) {
	for {
		n.mu.Lock()
		wait, over := n.frozen-n.since(), l.over
		n.mu.Unlock()
		if wait <= 0 || over || !l.wait(context.Background(), wait) {
			return
		}
	}
}

// reach is where a life stays that comes to a place where its node is to freeze.
func (l *life) reach(place string) {
	n := l.node
	if n == nil {
		return
	}
	n.mu.Lock()
	if now := n.since(); n.trap.Place == place && !l.over && now < n.script.Calm {
		until := min(now+n.trap.For, n.script.Calm)
		n.tell("%s: life %d freezes %s", n.name, l.n, place)
		n.ills = append(n.ills, ill{NodeFreeze, n.i, now, until, 0})
		n.frozen, n.trap = until, NodeStep{}
	}
	n.mu.Unlock()
	n.gate(l)
}

// well ends what ails the node. mu is held.
func (n *node) well() {
	n.trap = NodeStep{}
	n.frozen, n.offset, n.mysql, n.redis, n.up = 0, 0, link{}, link{}, n.since()
}

// happen makes a fault happen here.
func (n *node) happen(s NodeStep) {
	n.mu.Lock()
	l, until := n.life, n.since()+s.For
	switch s.Kind {
	case NodeFreeze:
		if n.trap = s; s.Place == "" {
			n.frozen = until
		}
	case NodeCut:
		n.mysql.cut, n.mysql.silent = until, s.Silent
	case NodeSlow:
		n.mysql.slow, n.mysql.delay = until, s.By
	case NodeWarm:
		n.redis.cut, n.redis.silent = until, s.Silent
	case NodeClock:
		n.offset = s.By
		n.fleet.wasSet = true
		time.AfterFunc(s.For, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.offset = 0
		})
	case NodeKill, NodeStop:
		n.up = until
	}
	n.mu.Unlock()
	if l == nil {
		return
	}
	switch s.Kind {
	case NodeKill:
		n.die(l, s.Kept, s.Draw)
	case NodeStop:
		l.stop()
	case NodeDrain:
		n.wish(l, engine.WishDrain)
		time.AfterFunc(s.For, func() { n.wish(l, engine.WishServe) })
	}
}

// wish is what an administrator asks for.
func (n *node) wish(l *life, w engine.Wish) {
	if err := n.table.Wish(context.Background(), uint64(l.n), w); err != nil {
		n.note("life %d: nobody heeds the wish: %v", l.n, err)
	}
}

// supervise runs one life after another until the last one has ended.
func (n *node) supervise() {
	for {
		n.mu.Lock()
		wait, last := n.up-n.since(), n.last
		n.mu.Unlock()
		if last {
			return
		}
		if wait > 0 {
			time.Sleep(min(wait, 100*time.Millisecond)) // it may be well before
			continue
		}
		n.live()
		n.mu.Lock()
		n.life = nil
		n.up = max(n.up, n.since()+100*time.Millisecond)
		n.mu.Unlock()
	}
}

// leave ends the last life in good order.
func (n *node) leave() {
	n.mu.Lock()
	n.last = true
	l := n.life
	n.mu.Unlock()
	if l == nil {
		return
	}
	l.stop()
	<-l.gone
}

// live runs one life, from its start to its end.
func (n *node) live() {
	n.mu.Lock()
	n.born++
	l := &life{n: n.born, disk: n.disk, node: n, gone: make(chan struct{}), ended: make(chan error, 1)}
	journal := n.journal
	n.homes[l.n], n.disks[l.n] = n.i, journal
	n.tell("%s: start of life %d", n.name, l.n)
	n.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	cache := pebble.NewCache(4 << 20)
	quiet := slog.New(slog.DiscardHandler)
	set := n.script.Settings
	l.wal = wal.New(wal.Config{
		Dir: "/data/journal", FS: n.diskOf(l), Cache: cache, MemTable: set.MemTable, Spacing: set.Spacing, Keep: time.Minute, Logger: quiet,
		Exit: func(int) { n.wrong("life %d has ended itself", l.n) },
	})
	l.e = scheduler.New(scheduler.Config{
		Cold: &sharedCold{n.fleet.cold, l}, Warm: &sharedWarm{memory.NewWarm(), l, map[engine.TimerID][]byte{}, map[engine.TimerID]uint32{}}, Journal: l.wal, Caller: &receiver{n.machine, l},
		Node: n.name, Now: n.now, Window: set.Window, MaxCalls: set.Workers, MaxWaiting: set.Waiting, Log: quiet, Metrics: metrics.NewSet(),
		Cluster: &cluster.Config{
			Node:    engine.Node{Name: n.name, Address: n.name, Life: uint64(l.n), Weight: 1, Journal: [16]byte{journal}, State: engine.Serving, Speaks: engine.Speaks},
			Members: &sharedTable{n.table, l}, Mirror: &sharedMirror{l}, Times: cluster.TimesOf(1800 * time.Millisecond),
			Boot: n.sinceBoot, After: l.after, Wall: n.now, Log: quiet,
		},
	})
	l.e.TellBy(l.tell)
	n.mu.Lock()
	n.life = l
	n.mu.Unlock()
	n.lives.Go(func() { // what is left of a process that was killed ends beside the next one
		defer cache.Unref()
		n.serve(ctx, l)
	})
	<-l.gone
	stop()
}

// serve is the process.
func (n *node) serve(ctx context.Context, l *life) {
	for { // as a server does that waits for its tiers
		err := l.e.Open(ctx)
		if err == nil {
			break
		}
		n.mu.Lock()
		over := l.over
		n.mu.Unlock()
		if over || ctx.Err() != nil || !errors.Is(err, engine.ErrUnavailable) {
			n.finish(l, err)
			return
		}
		l.wait(ctx, time.Second)
	}
	n.lives.Go(func() { n.ready(l) })
	err := l.e.Run(ctx)
	n.finish(l, err)
}

// ready notes when a life serves.
func (n *node) ready(l *life) {
	for l.e.Ready() != nil {
		if !l.wait(context.Background(), time.Millisecond) {
			return
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l.up = true
	n.tell("%s: life %d is up", n.name, l.n)
}

// after is the timer of the clock that nobody sets, and of a life that may be frozen.
func (l *life) after(d time.Duration) <-chan time.Time {
	n := l.node
	rings := make(chan time.Time, 1)
	n.sent.Go(func() {
		time.Sleep(time.Duration(float64(d) / n.rate))
		n.gate(l)
		rings <- time.Now()
	})
	return rings
}

// die ends a life as kill -9 and a loss of power do: of what is not synced, kept percent
// stay; of kept < 0 the disk is lost as well.
func (n *node) die(l *life, kept int, seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.over {
		return
	}
	l.over, n.frozen = true, 0
	n.tell("%s: life %d dies, %d %% of what is not synced is kept", n.name, l.n, kept)
	if kept < 0 {
		n.disk = vfs.NewCrashableMem()
		n.journal += 10
	} else {
		n.disk = l.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(seed, 2))})
	}
	n.ended = append(n.ended, end{at: n.since(), wall: n.wallOf(l).UnixMilli(), crashed: true, life: l.n, node: n.i})
	close(l.gone)
	l.stop()
}

// finish notes that a life has ended by itself.
func (n *node) finish(l *life, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	n.tell("%s: life %d has ended: %v", n.name, l.n, err)
	close(l.gone)
	n.ended = append(n.ended, end{at: n.since(), wall: n.wallOf(l).UnixMilli(), failed: err != nil, life: l.n, node: n.i})
	_, over := n.graves[l.n]
	switch {
	case err == nil, (over || n.wentBack()) && errors.Is(err, engine.ErrFenced), errors.Is(err, engine.ErrUnavailable) && n.troubled(30*time.Second):
	case strings.Contains(err.Error(), "has another process that beats") && n.troubled(10*time.Second): // a beat of its former life came late
	case errors.Is(err, context.Canceled) && n.troubled(30*time.Second): // it was told to end before it had joined
	default:
		n.broken = append(n.broken, fmt.Sprintf("life %d of %s ended with an error: %v", l.n, n.name, err))
	}
}

// wentBack reports whether MySQL has gone back. A life that stores nothing finds that out late.
// mu is held.
func (n *node) wentBack() bool {
	return slices.ContainsFunc(n.backs, func(b *back) bool { return b.to <= n.since() })
}

// troubled reports whether there was a fault within a time. mu is held.
func (n *node) troubled(within time.Duration) bool {
	for _, x := range n.ills {
		if x.from <= n.since() && n.since() <= x.to+within {
			return true
		}
	}
	return false
}

// diskOf is the node's disk as a life sees it.
func (n *node) diskOf(l *life) vfs.FS {
	return tiertest.Watch(l.disk, func(op errorfs.Op) error {
		if sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData; sync && strings.HasSuffix(op.Path, ".log") && n.script.Pace > 0 && !locked() {
			l.wait(context.Background(), n.script.Pace)
		}
		return nil
	})
}
