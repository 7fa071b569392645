package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	mrand "math/rand/v2"
	"slices"
	"time"

	"xtimer/engine"
)

var _ engine.Members = (*Members)(nil)

// Members is the table of the nodes that share a Cold: of many engines in one process. The
// fences are those of the Cold.
type Members struct {
	cold *Cold // its lock guards all below
	// nodes by name; also those without a life.
	nodes   map[string]engine.Node
	ended   map[string]time.Time          // when a node lost its last life
	holders [engine.Shards]engine.Holding // without the fences
	moves   uint64
	secret  [32]byte
	ahead   time.Duration // of its clock, see SetClock
}

// NewMembers builds the table of a tier without nodes.
func NewMembers(c *Cold) *Members {
	m := &Members{cold: c, nodes: map[string]engine.Node{}, ended: map[string]time.Time{}, moves: 1}
	rand.Read(m.secret[:])
	c.marked = func(shard int) { m.holders[shard].Former = 0 }
	return m
}

// SetClock sets the clock that a look tells of: how far it is ahead of the true time.
func (m *Members) SetClock(ahead time.Duration) {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	m.ahead = ahead
}

// Join begins the life of a node.
func (m *Members) Join(_ context.Context, n engine.Node, was engine.Pulse) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	before := m.nodes[n.Name]
	if before.Life == n.Life {
		return nil
	}
	if before.Pulse() != was {
		return engine.ErrConflict
	}
	n.Beat = before.Beat + 1
	m.nodes[n.Name] = n
	delete(m.ended, n.Name)
	for name, at := range m.ended {
		if time.Since(at) > engine.NodeKept {
			delete(m.nodes, name)
			delete(m.ended, name)
		}
	}
	if before.Life != 0 {
		for _, s := range m.held(before.Life) {
			m.hold(s, n.Name, engine.Holding{Holder: n.Life, Former: cmp.Or(m.holders[s].Former, before.Life)})
		}
	}
	return nil
}

// Beat changes the beat of a life.
func (m *Members) Beat(_ context.Context, n engine.Node) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	row, err := m.living(n.Life)
	if err != nil {
		return err
	}
	row.Beat++
	row.State, row.Weight, row.Skew = n.State, n.Weight, n.Skew
	m.nodes[row.Name] = row
	return nil
}

// Wish stores what is wished of a life.
func (m *Members) Wish(_ context.Context, life uint64, w engine.Wish) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	n, err := m.living(life)
	if err != nil {
		return engine.ErrConflict
	}
	n.Wish = w
	m.nodes[n.Name] = n
	return nil
}

// Look reads the table.
func (m *Members) Look(_ context.Context, moves uint64) (engine.Membership, error) {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	seen := engine.Membership{Moves: m.moves, Secret: m.secret, Now: time.Now().Add(m.ahead).UnixMilli()}
	seen.Nodes = slices.SortedFunc(maps.Values(m.nodes), func(a, b engine.Node) int { return cmp.Compare(a.Name, b.Name) })
	if moves != m.moves {
		shards := m.holders
		for s := range shards {
			shards[s].Fence = m.cold.shards[s].Fence
		}
		seen.Shards = &shards
	}
	return seen, nil
}

// Evict ends another life.
func (m *Members) Evict(_ context.Context, life uint64, dead engine.Pulse) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	if _, err := m.living(life); err != nil {
		return err
	}
	n, ok := m.nodes[dead.Node]
	if !ok || n.Life == 0 || n.Pulse() != dead {
		return engine.ErrConflict
	}
	m.end(n)
	return nil
}

// Take makes a life the holder of free shards.
func (m *Members) Take(_ context.Context, life uint64, shards engine.Set) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	n, err := m.living(life)
	if err != nil {
		return err
	}
	for s := range shards.All() {
		if h := m.holders[s]; h.Holder == 0 {
			m.hold(s, n.Name, engine.Holding{Holder: life, Clean: h.Clean, Former: h.Former})
		}
	}
	return nil
}

// Give frees shards of a life for their heirs.
func (m *Members) Give(_ context.Context, life uint64, shards []engine.Handover) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	if _, err := m.living(life); err != nil {
		return err
	}
	for _, g := range shards {
		if m.holders[g.Shard].Holder == life && m.cold.shards[g.Shard].Fence == g.Fence {
			h := engine.Holding{Heir: g.Heir, Clean: !g.Unclean}
			if g.Unclean {
				h.Former = life
			}
			m.holders[g.Shard] = h
			m.countMove()
		}
	}
	return nil
}

// Leave ends the life of a node.
func (m *Members) Leave(_ context.Context, life uint64) error {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	if n, err := m.living(life); err == nil {
		m.end(n)
	}
	return nil
}

// Newest is the greatest id that was ever stored.
func (m *Members) Newest(context.Context) (engine.TimerID, error) {
	m.cold.mu.Lock()
	defer m.cold.mu.Unlock()
	return m.cold.newest, nil
}

// living finds the node of a life.
func (m *Members) living(life uint64) (engine.Node, error) {
	for _, n := range m.nodes {
		if n.Life == life && life != 0 {
			return n, nil
		}
	}
	return engine.Node{}, engine.ErrFenced
}

// end ends a life.
func (m *Members) end(n engine.Node) {
	for _, s := range m.held(n.Life) {
		m.hold(s, "", engine.Holding{Former: cmp.Or(m.holders[s].Former, n.Life)})
	}
	n.Life = 0
	m.nodes[n.Name] = n
	m.ended[n.Name] = time.Now()
}

func (m *Members) held(life uint64) (shards []int) {
	for s := range m.holders {
		if m.holders[s].Holder == life {
			shards = append(shards, s)
		}
	}
	return shards
}

// hold changes the holder of a shard, and shuts out the former holder.
func (m *Members) hold(shard int, owner string, h engine.Holding) {
	m.holders[shard] = h
	m.countMove()
	m.cold.shards[shard].Fence++
	m.cold.shards[shard].Owner = owner
}

// countMove notes that a shard was taken or freed. The moves grow by a random number, so that
// one that a node knows does not come again when the table goes back (Snapshot).
func (m *Members) countMove() { m.moves += 1 + mrand.Uint64N(1<<20) }
