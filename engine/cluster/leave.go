package cluster

import (
	"context"

	"xtimer/engine"
)

// Drain gives all shards away. It returns when no node takes more of them, when the life
// has ended or is abandoned, or with ctx.
func (m *Member) Drain(ctx context.Context) error {
	m.leaves.Store(true)
	m.state.Store(int32(engine.Draining))
	select {
	case <-m.drained:
	case <-m.ended:
	case <-m.abandoned:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Abandon ends the life: it calls no more, and does not leave when Run's context ends. So the
// next life of the node begins with the shards of this one, as after a crash.
func (m *Member) Abandon() {
	m.abandonOnce.Do(func() { close(m.abandoned) })
	m.lease.End()
}

func (m *Member) isAbandoned() bool {
	select {
	case <-m.abandoned:
		return true
	default:
		return false
	}
}
