package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// Config of a Member.
type Config struct {
	Node    engine.Node // its name, journal and weight, and a new random life
	Members engine.Members
	Times   Times
	// Boot reads a clock that does not stand still while the machine is suspended, and that
	// nobody sets. After is that clock's timer.
	Boot  func() time.Duration
	After func(d time.Duration) <-chan time.Time
	// Wall is the clock that the life calls by; nil: it is not compared with those of others.
	Wall func() time.Time

	// Acknowledged is told of each beat that was acknowledged, if anyone waits for it: the
	// lease is fresh again. It must not block.
	Acknowledged func()
	// Gain is told of the shards that the life owns now. It must not block.
	Gain func([]Gained)
	// Cede ends the work on shards that the life does not own any more: when it returns no
	// error, nothing is written of them any more, and what was begun is settled or owed.
	// unclean are those that the heir is not to take for clean. After an error Cede is called
	// again. Without it the life gives nothing away.
	Cede func(ctx context.Context, shards []int) (unclean engine.Set, err error)
	// Given is told for how long no node could call for shards that the life gave away, if
	// anyone waits for it: until their heirs may take them.
	Given func(took time.Duration)
	// Mirror has what other lives have finished, and gets what this one finishes, see
	// Mirrored; nil: there is none.
	Mirror engine.Mirror
	// Log is told of what changes among the nodes; nil: nobody is.
	Log *slog.Logger
}

const (
	// handed is how many shards are handed over at a time.
	handed = 16
	// shuns is for how many times Spare a node is given nothing after it left a shard free.
	shuns = 5
)

// Member is one life of a node. It beats; beside that it looks, and after each look it
// buries the silent, takes what the plan has for it, and gives what the plan has for
// others.
type Member struct {
	cfg    Config
	lease  *Lease
	clock  clock
	shards shards
	state  atomic.Int32               // engine.NodeState
	looked atomic.Int64               // when the last round of looks ended
	giving atomic.Pointer[engine.Set] // what a hand-over is under way of; nil: none is
	leaves atomic.Bool                // the process ends: Draining is for good
	// abandoned is closed when the life ends without leaving, see Abandon.
	abandoned   chan struct{}
	abandonOnce sync.Once
	others      atomic.Bool // another node serves, as the last look read it

	last    atomic.Pointer[Seen] // see Seen
	moves   moves
	quiet   quiet
	answers answers

	drained chan struct{} // closed when a draining life has nothing left to give
	ended   chan struct{} // closed at the end of Run

	// Of the looks.
	watch  *Watch
	seen   engine.Membership
	from   time.Duration // when the look began that has read seen
	free   free
	kept   engine.Set // what the former life of the node held until the join
	former uint64     // the former life of the node
	// shunned is when a node was last seen to leave a shard free that the plan had for it.
	shunned map[string]time.Duration
}

// New returns a life that has not joined yet.
func New(cfg Config) *Member {
	m := &Member{
		cfg: cfg, lease: NewLease(cfg.Times.Hold), watch: NewWatch(cfg.Node.Name, cfg.Times),
		clock: clock{wall: cfg.Wall, boot: cfg.Boot, beaten: cfg.Times.Silence}, shunned: map[string]time.Duration{},
		drained: make(chan struct{}), ended: make(chan struct{}), abandoned: make(chan struct{}),
	}
	if m.cfg.Log == nil {
		m.cfg.Log = slog.New(slog.DiscardHandler)
	}
	m.state.Store(int32(engine.Serving))
	return m
}

// Run joins, and lives until ctx ends; then the life leaves, and Run returns nil. Run
// returns an error when another process runs under the name, when ctx ends before the life
// has joined, or when the life was ended.
func (m *Member) Run(ctx context.Context) error {
	defer close(m.ended)
	if err := m.join(ctx); err != nil {
		return err
	}
	m.cfg.Log.Info("joined the cluster", "node", m.cfg.Node.Name, "address", m.cfg.Node.Address)
	m.looked.Store(int64(m.cfg.Boot()))
	m.quiet.joined(m.cfg.Boot())
	within, end := context.WithCancelCause(ctx)
	defer end(nil)
	var parts sync.WaitGroup
	run := func(part func(ctx context.Context) error) {
		parts.Go(func() {
			if err := part(within); err != nil {
				m.lease.End() // its shards may be another's already: no call waits for the other parts to end
				end(err)
			}
		})
	}
	run(m.beats)
	run(func(ctx context.Context) error { return m.looks(ctx, run) })
	parts.Wait()
	m.lease.End()
	var over error
	if ctx.Err() == nil {
		over = fmt.Errorf("this life of node %s is over: %w", m.cfg.Node.Name, context.Cause(within))
	}
	if (over == nil || errors.Is(over, errWishedEnd)) && !m.isAbandoned() {
		// If the table is away, the other nodes will see that the life is silent.
		_ = m.ask(context.WithoutCancel(ctx), func(ctx context.Context) error { return m.cfg.Members.Leave(ctx, m.cfg.Node.Life) })
	}
	return over
}

// ask bounds a call to the table.
func (m *Member) ask(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Times.answer())
	defer cancel()
	return call(ctx)
}

// rest waits until an instant. It reports false when ctx has ended.
func (m *Member) rest(ctx context.Context, until time.Duration) bool {
	if d := until - m.cfg.Boot(); d > 0 {
		select {
		case <-ctx.Done():
		case <-m.cfg.After(d):
		}
	}
	return ctx.Err() == nil
}

// beats beats until ctx ends or the life is over. While no round of looks ends, it does not
// beat: a life that hangs must not look alive.
func (m *Member) beats(ctx context.Context) error {
	for {
		began := m.cfg.Boot()
		if began-time.Duration(m.looked.Load()) <= m.cfg.Times.Silence {
			n := m.cfg.Node
			n.State, n.Skew = engine.NodeState(m.state.Load()), m.clock.skew.Load()
			err := m.ask(ctx, func(ctx context.Context) error { return m.cfg.Members.Beat(ctx, n) })
			if errors.Is(err, engine.ErrFenced) {
				return err
			}
			m.noteBeat(m.cfg.Boot() - began)
			if err == nil {
				m.Quiet() // what it counts up to now is known before the lease is fresh again
				m.lease.Acknowledge(began)
				if m.cfg.Acknowledged != nil {
					m.cfg.Acknowledged()
				}
			}
		}
		if !m.rest(ctx, began+m.cfg.Times.Beat) {
			return nil
		}
	}
}

// running runs a part of a life beside the others. An error of it ends the life.
type running func(part func(ctx context.Context) error)

// looks looks until ctx ends or the life is over.
func (m *Member) looks(ctx context.Context, run running) error {
	for {
		began := m.cfg.Boot()
		moved, err := m.look(ctx, run)
		if errors.Is(err, engine.ErrFenced) {
			return err
		}
		now := m.cfg.Boot()
		m.looked.Store(int64(now))
		if err == nil && moved { // look at once at the result
			began = now - m.cfg.Times.Look
		}
		if !m.rest(ctx, began+m.cfg.Times.Look) {
			return nil
		}
	}
}

// look looks once and acts on that. It reports whether it moved shards. Only ErrFenced
// matters of its errors: the next look shows whatever a call in doubt did.
func (m *Member) look(ctx context.Context, run running) (moved bool, err error) {
	now, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	me := slices.IndexFunc(m.seen.Nodes, func(n engine.Node) bool { return n.Life == m.cfg.Node.Life })
	if me < 0 {
		return false, fmt.Errorf("another life was begun, or this one was silent: %w", engine.ErrFenced)
	}
	if err := m.heed(m.seen.Nodes[me].Wish); err != nil {
		return false, err
	}
	gained, err := m.shards.see(m.cfg.Node.Life, m.seen.Shards)
	if err != nil {
		return false, err
	}
	if len(gained) > 0 {
		for i := range gained { // those of a join are seen at once
			g := &gained[i]
			if g.Kept = m.kept.Has(g.Shard); g.Kept && g.Former == m.former {
				g.Former = 0 // the journal has more than the mirror
			}
		}
		m.kept = engine.Set{}
		m.cfg.Gain(gained)
	}
	m.free.see(now, m.seen.Shards)
	m.judgeClock()
	fresh := m.lease.Fresh(now)
	silent := m.watch.See(now, fresh, m.seen.Nodes)
	m.last.Store(&Seen{m.seen, m.watch.seen, m.cfg.Boot, m.from})
	if !fresh { // only the living bury, and take
		return false, nil
	}
	for _, p := range silent {
		err := m.ask(ctx, func(ctx context.Context) error { return m.cfg.Members.Evict(ctx, m.cfg.Node.Life, p) })
		if errors.Is(err, engine.ErrFenced) {
			return false, err
		}
		if err == nil {
			m.cfg.Log.Warn("ended the life of a silent node; its shards are free", "node", p.Node)
		}
		moved = moved || err == nil
	}
	plan := MakePlan(m.seen.Nodes, m.seen.Shards)
	if free := m.takes(now, &plan, me); len(free) > 0 {
		err = m.ask(ctx, func(ctx context.Context) error {
			return m.cfg.Members.Take(ctx, m.cfg.Node.Life, engine.SetOf(free...))
		})
		moved = moved || err == nil
	}
	if !errors.Is(err, engine.ErrFenced) {
		m.give(run, now, &plan, me)
	}
	return moved, err
}

// read reads the table into m.seen. It returns an instant after the answer.
func (m *Member) read(ctx context.Context) (now time.Duration, err error) {
	var seen engine.Membership
	from := m.cfg.Boot()
	err = m.ask(ctx, func(ctx context.Context) (err error) {
		seen, err = m.cfg.Members.Look(ctx, m.seen.Moves)
		return err
	})
	if err != nil {
		return 0, err
	}
	if seen.Shards == nil {
		seen.Shards = m.seen.Shards
	}
	m.seen, m.from = seen, from
	m.others.Store(slices.ContainsFunc(m.seen.Nodes, func(n engine.Node) bool {
		return n.Life != 0 && n.Life != m.cfg.Node.Life && n.State == engine.Serving
	}))
	m.clock.look(from, seen.Now, m.cfg.Node.Life, m.seen.Nodes)
	now = m.cfg.Boot()
	m.moves.see(now, m.cfg.Node.Name, &m.seen)
	return now, nil
}

// takes lists the free shards to take: those that the plan has for this node, and those
// that another node of the plan has left free for too long. That other node may beat and
// yet be unable to take, so it is shunned: this node gives it no shards for a while.
func (m *Member) takes(now time.Duration, p *Plan, me int) []int {
	free := m.free.planned(p, me)
	if of := m.giving.Load(); of != nil { // they are taken back when their hand-over has ended
		free = slices.DeleteFunc(free, of.Has)
	}
	if m.seen.Nodes[me].State != engine.Serving {
		return free
	}
	left := m.free.spared(now, m.cfg.Times.Spare, p, me)
	for _, s := range left {
		if p[s] != Nobody {
			m.shunned[m.seen.Nodes[p[s]].Name] = now
		}
	}
	if of := m.giving.Load(); of != nil {
		left = slices.DeleteFunc(left, of.Has)
	}
	return append(free, left...)
}

// give begins to hand over what a plan has for others, if no hand-over is under way.
func (m *Member) give(run running, now time.Duration, p *Plan, me int) {
	if m.giving.Load() != nil {
		return
	}
	leaves := m.seen.Nodes[me].State == engine.Draining && m.leaves.Load()
	var given []engine.Handover
	if m.cfg.Cede != nil {
		given = m.shards.cede(m.seen.Nodes, p, me, handed, func(name string) bool {
			last, is := m.shunned[name]
			return !is || leaves || now-last > shuns*m.cfg.Times.Spare
		})
	}
	if len(given) > 0 {
		of := engine.Set{}
		for i := range given {
			of = of.Union(engine.SetOf(given[i].Shard))
		}
		m.giving.Store(&of)
		run(func(ctx context.Context) error {
			defer m.giving.Store(nil)
			return m.handOver(ctx, given)
		})
		return
	}
	if leaves {
		select {
		case <-m.drained:
		default:
			close(m.drained)
		}
	}
}

// handOver ends the work on shards and frees them, until that is known to be done.
func (m *Member) handOver(ctx context.Context, given []engine.Handover) error {
	ceded := make([]int, len(given))
	for i := range given {
		ceded[i] = given[i].Shard
	}
	for began := m.cfg.Boot(); ; {
		unclean, err := m.cfg.Cede(ctx, ceded)
		if err == nil {
			given = slices.Clone(given) // a call that was given up may read the former ones still
			for i := range given {
				given[i].Unclean = unclean.Has(given[i].Shard)
			}
			err = m.ask(ctx, func(ctx context.Context) error { return m.cfg.Members.Give(ctx, m.cfg.Node.Life, given) })
		}
		if err == nil {
			m.shards.gave(given)
		}
		if err == nil && m.cfg.Given != nil {
			m.cfg.Given(m.cfg.Boot() - began)
		}
		if err == nil || errors.Is(err, engine.ErrFenced) {
			return err
		}
		if !m.rest(ctx, m.cfg.Boot()+m.cfg.Times.Look) {
			return nil
		}
	}
}
