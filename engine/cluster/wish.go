package cluster

import (
	"context"
	"fmt"

	"xtimer/engine"
)

// errWishedEnd is the end of a life of which that was wished.
var errWishedEnd = fmt.Errorf("an administrator has ended this life of the node: %w", engine.ErrFenced)

// Wish stores what is wished of a life. ErrConflict: the life is over.
func (m *Member) Wish(ctx context.Context, life uint64, w engine.Wish) error {
	return m.ask(ctx, func(ctx context.Context) error { return m.cfg.Members.Wish(ctx, life, w) })
}

// heed does what is wished of this life. A life that is to drain serves again when no other
// node serves that may keep its shards: timers without a node that calls them help nobody.
func (m *Member) heed(w engine.Wish) error {
	if w == engine.WishEnd {
		return errWishedEnd
	}
	if m.leaves.Load() {
		m.state.Store(int32(engine.Draining)) // an earlier look may have changed it meanwhile
		return nil
	}
	from, to := engine.Draining, engine.Serving
	if w == engine.WishDrain && MaySpare(m.seen.Nodes, m.cfg.Node.Life) {
		from, to = engine.NodeState(m.state.Load()), engine.Draining
	}
	if from != to && m.state.CompareAndSwap(int32(from), int32(to)) {
		m.cfg.Log.Warn("an administrator asks for the shards of this node, or asks no more", "node", m.cfg.Node.Name, "serves", to == engine.Serving)
	}
	return nil
}

// MaySpare reports whether another node serves than that of a life, and is not to drain.
func MaySpare(nodes []engine.Node, life uint64) bool {
	for i := range nodes {
		if n := &nodes[i]; n.Life != 0 && n.Life != life && n.State == engine.Serving && n.Wish == engine.WishServe {
			return true
		}
	}
	return false
}
