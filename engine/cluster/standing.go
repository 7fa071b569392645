package cluster

import (
	"sync"
	"time"

	"xtimer/engine"
)

// Owns reports whether the life may call now for a shard, and under which fence.
func (m *Member) Owns(shard int) (fence uint64, ok bool) {
	fence, ok = m.shards.owns(shard)
	return fence, ok && m.Fresh()
}

// Fresh reports whether the life may call now.
func (m *Member) Fresh() bool { return m.lease.Fresh(m.cfg.Boot()) && !m.ClockDiffers() }

// ClockDiffers reports whether the life may not call because its clock is not that of the
// other nodes, or was set a moment ago.
func (m *Member) ClockDiffers() bool {
	return m.clock.differs.Load() && m.HasOthers() || m.clock.isSet()
}

// Now is the time that the node goes by: its wall clock, corrected where that was set and does not agree with the others.
func (m *Member) Now() time.Time { return m.clock.now() }

// Right is the time, as Now is, of an instant that somebody has read from the wall clock a moment ago.
func (m *Member) Right(wall time.Time) time.Time {
	if m.clock.wall == nil {
		return wall
	}
	return wall.Add(-m.clock.ahead(m.clock.wall()))
}

// Skew is by how much the clock of the node is ahead of the table's.
func (m *Member) Skew() time.Duration { return time.Duration(m.clock.skew.Load()) * time.Millisecond }

// LeaseAge is how long ago the last request began that the table acknowledged. It is the
// time since the boot before the first one.
func (m *Member) LeaseAge() time.Duration { return m.cfg.Boot() - m.lease.acknowledged() }

// Seen is what the last look has read: nil before the first one. Nobody changes it.
func (m *Member) Seen() *Seen { return m.last.Load() }

// Node is the name of the node, its address, and the number of this life.
func (m *Member) Node() *engine.Node { return &m.cfg.Node }

// HasOthers reports whether another node serves, to which the life could give its shards.
func (m *Member) HasOthers() bool { return m.others.Load() }

// Why says why a node makes no calls, or gives its shards away.
type Why string

// The reasons.
const (
	WhyNoBeat  Why = "no_beat" // its beats are not acknowledged
	WhyClock   Why = "clock"   // its clock is not that of the others, or was set a moment ago
	WhyDrain   Why = "drain"   // an administrator asks for its shards
	WhyLeaves  Why = "leaves"  // its process ends
	WhyNothing Why = ""        // it does neither
)

// Why says why a node that the last look has read makes no calls or gives its shards away, as
// far as this life knows.
func (m *Member) Why(n *engine.Node) Why {
	age := m.Unbeaten(n)
	switch own := n.Life == m.cfg.Node.Life; {
	case age >= m.cfg.Times.Hold:
		return WhyNoBeat
	case n.State == engine.Unfit, own && m.ClockDiffers():
		return WhyClock
	case n.State == engine.Draining && n.Wish == engine.WishDrain:
		return WhyDrain
	case n.State == engine.Draining:
		return WhyLeaves
	}
	return WhyNothing
}

// Unbeaten is how long ago the last beat of this life began that was acknowledged, and for how
// long this life has seen no new beat of another node.
func (m *Member) Unbeaten(n *engine.Node) time.Duration {
	if n.Life == m.cfg.Node.Life {
		return m.LeaseAge()
	}
	if seen := m.Seen(); seen != nil {
		return seen.unbeaten(n.Name)
	}
	return 0
}

// quiet is for how long a life could not call since it joined.
type quiet struct {
	mu    sync.Mutex
	total time.Duration
	upTo  time.Duration // the instant up to which it was counted; 0: the life has not joined
}

// Quiet is for how long the life could not call since it joined, because no beat was
// acknowledged in time or because of its clock.
func (m *Member) Quiet() time.Duration {
	q := &m.quiet
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.upTo == 0 {
		return 0
	}
	now := m.cfg.Boot()
	from := q.upTo // nobody noted when the clock began to differ; Quiet is asked at each beat, so the error is a beat
	if !m.ClockDiffers() {
		from = max(from, m.lease.acknowledged()+m.cfg.Times.Hold)
	}
	q.total += max(0, now-from)
	q.upTo = now
	return q.total
}

// joined begins to count.
func (q *quiet) joined(now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.upTo = now
}
