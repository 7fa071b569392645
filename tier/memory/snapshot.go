package memory

import (
	"maps"
	"slices"

	"xtimer/engine"
)

// Snapshot copies what the tier holds, as of now. The function that it returns puts the copy back,
// once, as an operator does who restores a backup, or a failover that loses commits.
func (c *Cold) Snapshot() (restore func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locked(c.copy())
}

// Snapshot is that of the tier with the table of nodes.
func (m *Members) Snapshot() (restore func()) {
	c := m.cold
	c.mu.Lock()
	defer c.mu.Unlock()
	cold, nodes, ended, holders, moves := c.copy(), maps.Clone(m.nodes), maps.Clone(m.ended), m.holders, m.moves
	return c.locked(func() {
		cold()
		m.nodes, m.ended, m.holders, m.moves = nodes, ended, holders, moves
	})
}

// locked is a function with mu held.
func (c *Cold) locked(f func()) func() {
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
}

// copy copies all but the buckets; restore puts it back. mu is held, now and then.
func (c *Cold) copy() (restore func()) {
	versions := make(map[engine.TimerID][]former, len(c.former))
	for id, fs := range c.former {
		versions[id] = slices.Clone(fs)
	}
	timers, names, deleted, bounds := c.timers.Clone(), maps.Clone(c.names), maps.Clone(c.deleted), maps.Clone(c.bounds)
	once, owed, tasks, leftOut, objects := maps.Clone(c.once), c.owed.clone(), c.tasks.Clone(), maps.Clone(c.leftOut), maps.Clone(c.objects)
	shards, newest, clock := c.shards, c.newest, c.clock
	return func() {
		c.timers, c.names, c.former, c.deleted, c.bounds = timers, names, versions, deleted, bounds
		c.once, c.owed, c.tasks, c.leftOut, c.objects = once, owed, tasks, leftOut, objects
		c.shards, c.newest, c.clock = shards, newest, clock
		c.revised++ // as no number comes again for other objects
	}
}
