package cluster

import (
	"slices"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// clock is whether the wall clock of a node may be called by. Nobody knows the true time, so
// the clocks are voted on: each look reads the clock of the table too, each node tells by how
// much its own is ahead of that one, and the median of these and of 0, the table's own, is
// right. A node that differs from it by more than tolerance
//
//	begins no call, unless no other node can have its timers
//	becomes Unfit, so that the plan gives its shards to the others, and Serving when it agrees again
//
// Between two looks the clock may be set. So a call also needs that the wall clock has moved
// by as much as the clock that nobody sets, since the last look.
type clock struct {
	wall func() time.Time // nil: it is not looked at
	boot func() time.Duration

	skew    atomic.Int64 // by how many ms it is ahead of the table's
	drift   atomic.Int64 // wall − boot at the last look, in ns
	differs atomic.Bool
}

// tolerance is by how much two clocks may differ; also how long a look may take that a clock
// is measured by.
const tolerance = 500 * time.Millisecond

// read returns wall − boot.
func (c *clock) read() time.Duration { return time.Duration(c.wall().UnixNano()) - c.boot() }

// look compares the clock with that of the table, which a look from an instant until now has read as at (Unix ms),
// and with those of the nodes, which it has read too. isSet goes by this look only when that is decided: a clock that
// was set is never taken for right in between.
func (c *clock) look(from time.Duration, at int64, life uint64, nodes []engine.Node) {
	if c.wall == nil {
		return
	}
	drift := c.read()
	c.measure(drift, from, at)
	c.vote(life, nodes)
	c.drift.Store(int64(drift))
}

// measure takes by how much the clock is ahead of the table's.
func (c *clock) measure(drift, from time.Duration, at int64) {
	now, was := c.boot(), time.Duration(c.drift.Load())
	set := drift - was
	switch {
	case now-from <= tolerance:
		mid := drift + from + (now-from)/2
		c.skew.Store(mid.Milliseconds() - at)
	case was != 0 && (set > tolerance || -set > tolerance):
		// Nobody knows when in that time the table was read. But the clock was set meanwhile.
		c.skew.Add(set.Milliseconds())
	}
}

// vote decides whether the clock of the life agrees with those of the others.
func (c *clock) vote(life uint64, nodes []engine.Node) {
	own := c.skew.Load()
	votes := []int64{0, own}
	for i := range nodes {
		if n := &nodes[i]; n.Life != 0 && n.Life != life {
			votes = append(votes, n.Skew)
		}
	}
	slices.Sort(votes)
	off := own - votes[(len(votes)-1)/2]
	c.differs.Store(off > tolerance.Milliseconds() || -off > tolerance.Milliseconds())
}

// isSet reports whether the clock was set since the last look.
func (c *clock) isSet() bool {
	if c.wall == nil {
		return false
	}
	moved := c.read() - time.Duration(c.drift.Load())
	return moved > tolerance || -moved > tolerance
}

// judgeClock makes a life with a wrong clock unfit, and fit again.
func (m *Member) judgeClock() {
	was, now := engine.Serving, engine.Unfit
	if !m.clock.differs.Load() {
		was, now = now, was
	}
	if !m.state.CompareAndSwap(int32(was), int32(now)) { // a life that drains goes on with that
		return
	}
	if now == engine.Unfit {
		m.cfg.Log.Warn("the clock of this node differs by more than 500ms from those of the other nodes and of the database: while another node serves, this node makes no calls and owns no timers. Synchronize the clock of this machine", "ahead_of_database", m.Skew())
	} else {
		m.cfg.Log.Info("the clock of this node agrees with those of the other nodes and of the database again", "ahead_of_database", m.Skew())
	}
}
