package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

// join begins the life. If the node has a life, it listens first: a beat means that another
// process runs under the name. A life with a wrong clock is given nothing.
func (m *Member) join(ctx context.Context) error {
	var heard engine.Pulse
	var since, last time.Duration
	n := m.cfg.Node
	others, told := NewWatch(n.Name, m.cfg.Times), false
	for {
		began := m.cfg.Boot()
		if now, err := m.read(ctx); err == nil {
			before := m.before()
			p := before.Pulse()
			switch {
			case before.Life == n.Life: // a Join in doubt was carried out
				return nil
			case heard.Life != 0 && p.Life != 0 && p != heard:
				return fmt.Errorf("node %s has another process that beats, at %s: give this process another name with --node, or end the other process", n.Name, before.Address)
			case p != heard || now-last > m.cfg.Times.Gap:
				heard, since = p, now
			}
			last = now
			if err := m.understands(); err != nil {
				return err
			}
			m.judgeClock()
			held := m.heldBy(p.Life)
			// By a wrong clock the life would decide what was due in the shards of the former life.
			waits := m.clock.differs.Load() && held != (engine.Set{}) && m.hasHeir(others, now)
			if waits && !told {
				told = true
				m.cfg.Log.Warn("this node waits until another node has taken the shards of its former process")
			}
			if !waits && (p.Life == 0 || now-since >= m.listen(&before)) {
				if before.Journal == n.Journal {
					m.kept, m.former = held, p.Life
				}
				n.State = engine.NodeState(m.state.Load()) // unfit, if its clock is wrong
				err := m.ask(ctx, func(ctx context.Context) error { return m.cfg.Members.Join(ctx, n, p) })
				if err == nil {
					return nil
				}
			}
		}
		if !m.rest(ctx, began+m.cfg.Times.Look) {
			return fmt.Errorf("join the cluster: %w", ctx.Err())
		}
	}
}

// understands refuses to join lives of programs that are more than one version apart.
func (m *Member) understands() error {
	own := &m.cfg.Node
	for i := range m.seen.Nodes {
		n := &m.seen.Nodes[i]
		if n.Life == 0 || n.Name == own.Name || max(n.Speaks-own.Speaks, own.Speaks-n.Speaks) <= 1 {
			continue
		}
		older := "this program"
		if n.Speaks < own.Speaks {
			older = "that node"
		}
		return fmt.Errorf("node %s at %s speaks version %d of the protocol of the nodes, and this program version %d: they may be one apart; upgrade %s first", n.Name, n.Address, n.Speaks, own.Speaks, older)
	}
	return nil
}

// hasHeir reports whether another node serves and beats, as others have seen.
func (m *Member) hasHeir(others *Watch, now time.Duration) bool {
	silent := others.See(now, true, m.seen.Nodes)
	return slices.ContainsFunc(m.seen.Nodes, func(o engine.Node) bool {
		return o.Life != 0 && o.Name != m.cfg.Node.Name && o.State == engine.Serving && !slices.Contains(silent, o.Pulse())
	})
}

// before is the row of the node, as a look read it.
func (m *Member) before() engine.Node {
	i := slices.IndexFunc(m.seen.Nodes, func(n engine.Node) bool { return n.Name == m.cfg.Node.Name })
	if i < 0 {
		return engine.Node{}
	}
	return m.seen.Nodes[i]
}

// heldBy is what a life holds, as a look read it.
func (m *Member) heldBy(life uint64) (held engine.Set) {
	for s := range m.seen.Shards {
		if life != 0 && m.seen.Shards[s].Holder == life {
			held = held.Union(engine.SetOf(s))
		}
	}
	return held
}

// listen returns for how long a former life must not have beaten.
func (m *Member) listen(before *engine.Node) time.Duration {
	if before.Journal == m.cfg.Node.Journal {
		return m.cfg.Times.Listen
	}
	return m.cfg.Times.Silence
}
