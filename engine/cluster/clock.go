package cluster

import (
	"cmp"
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
//
// A node uses the time for more than its calls: for the decision which dues are late or missed, for the
// earliest next attempt of a task that the node gives away, for the due of a new timer, and for the age of history. None
// of these uses a clock that was set and does not agree with the others, or is not compared yet: now corrects the wall clock.
type clock struct {
	wall func() time.Time // nil: it is not looked at
	boot func() time.Duration

	skew    atomic.Int64 // by how many ms it is ahead of the table's
	differs atomic.Bool
	found   atomic.Pointer[found] // nil before the first look

	beaten      time.Duration // a life that has not beaten for so long is buried
	agreesSince time.Duration // since when a clock that was set agrees with the others; 0: none does. Only look uses it
}

// found is what a look has found of the clock.
type found struct {
	boot  time.Duration // when
	drift time.Duration // wall − boot
	ahead time.Duration // of the time that the node goes by, if the clock differs from the others; else 0
	// agreed: the time that the node goes by has agreed with the others once. At a start, a wrong clock has not.
	agreed bool
	// The wall clock and the clock of the process, which stands still while the machine is suspended, at about that time.
	wall, process time.Time
}

// tolerance is by how much two clocks may differ; also how long a look may take that a clock
// is measured by.
const tolerance = 500 * time.Millisecond

// harmless is by how much the time of a node may jump at once: a due that is less than 10 s late is called, see
// policy.MisfireAfter.
const harmless = 5 * time.Second

// isNear reports whether two times differ by no more than two clocks may.
func isNear(a, b time.Duration) bool { return a-b <= tolerance && b-a <= tolerance }

// read returns wall − boot.
func (c *clock) read() time.Duration { return time.Duration(c.wall().UnixNano()) - c.boot() }

// look compares the clock with that of the table, which a look from an instant until now has read as at (Unix ms),
// and with those of the nodes, which it has read too. isSet and now go by this look only when that is decided: a clock
// that was set is never taken for right in between.
//
// A node follows a clock that was set only if that clock agrees with the others, and has agreed for so long that every living
// node has beaten. Until then the time goes on as before, and no vote changes the time: a vote may come from a node that
// has not looked since the clock of the table was set, or that is dead.
func (c *clock) look(from time.Duration, at int64, life uint64, nodes []engine.Node) {
	if c.wall == nil {
		return
	}
	was, f := c.found.Load(), found{boot: c.boot(), drift: c.read(), wall: c.wall().Round(0), process: time.Now()}
	before := c.skew.Load()
	c.measure(f.drift, from, at)
	gained := time.Duration(c.skew.Load()-before) * time.Millisecond // on the table's clock
	differs := c.vote(life, nodes)
	if was != nil {
		f.agreed, f.ahead = was.agreed, was.aheadNow(f.boot, f.drift)
		if set := c.moved(f.drift); set != 0 && isNear(set, gained) && f.boot-from <= tolerance {
			f.ahead = was.ahead + set // however long ago that look was
		}
	}
	switch {
	case differs:
		c.agreesSince = 0
	case !f.agreed, f.ahead <= harmless && -f.ahead <= harmless:
		f.ahead, c.agreesSince = 0, 0
	default:
		if c.agreesSince = cmp.Or(c.agreesSince, f.boot); f.boot-c.agreesSince >= c.beaten {
			f.ahead, c.agreesSince = 0, 0
		}
		differs = c.agreesSince != 0 // until the time jumps, the node calls nothing
	}
	f.agreed = f.agreed || !differs
	c.differs.Store(differs)
	c.found.Store(&f)
}

// measure takes by how much the clock is ahead of the table's.
func (c *clock) measure(drift, from time.Duration, at int64) {
	now := c.boot()
	least, most := (drift+from).Milliseconds()-at, (drift+now).Milliseconds()-at
	if now-from <= tolerance {
		c.skew.Store((least + most) / 2)
		return
	}
	// The table was read at some instant of the look: the former skew counts, as far as it lies within the bounds.
	c.skew.Store(min(max(c.skew.Load()+c.moved(drift).Milliseconds(), least), most))
}

// vote reports whether the clock of the life differs from those of the others.
func (c *clock) vote(life uint64, nodes []engine.Node) (differs bool) {
	own := c.skew.Load()
	votes := []int64{0, own}
	for i := range nodes {
		if n := &nodes[i]; n.Life != 0 && n.Life != life {
			votes = append(votes, n.Skew)
		}
	}
	slices.Sort(votes)
	off := own - votes[(len(votes)-1)/2]
	if len(votes) == 2 {
		off = own // of two clocks, the table's counts
	}
	return !isNear(time.Duration(off)*time.Millisecond, 0)
}

// moved is by how much the clock, with a drift now, was set since the last look, if that is more than tolerance; else 0.
func (c *clock) moved(drift time.Duration) time.Duration {
	f := c.found.Load()
	if f == nil {
		return 0
	}
	if !isNear(drift, f.drift) {
		return drift - f.drift
	}
	return 0
}

// isSet reports whether the clock was set since the last look, or there was none.
func (c *clock) isSet() bool {
	return c.wall != nil && (c.found.Load() == nil || c.moved(c.read()) != 0)
}

// now is the time that the node goes by: its wall clock, less by how much that is ahead. Before the first look it is the
// wall clock.
//
// A fire takes 22 µs and reads the time some ten times. The clock since the boot takes a system call of 250 ns. So it is
// read only if the clock of the process, of 45 ns, says that the wall clock was set, or that the machine was suspended.
func (c *clock) now() time.Time {
	wall := c.wall()
	return wall.Add(-c.ahead(wall))
}

// ahead is by how much the wall clock, which has just been read, is ahead of the time that the node goes by.
func (c *clock) ahead(wall time.Time) time.Duration {
	f := c.found.Load()
	if f == nil {
		return 0
	}
	if !isNear(wall.Sub(f.wall), time.Since(f.process)) {
		boot := c.boot()
		return f.aheadNow(boot, time.Duration(wall.UnixNano())-boot)
	}
	return f.ahead
}

// aheadNow is by how much the clock is ahead, with a drift now: as the look found, and by how much the clock was set since.
// A clock that runs up to 1.5 times as fast as another was not set: see TimesOf.
func (f *found) aheadNow(boot, drift time.Duration) time.Duration {
	set := drift - f.drift
	if most := tolerance + (boot-f.boot)/2; set > most || -set > most {
		return f.ahead + set
	}
	return f.ahead
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
