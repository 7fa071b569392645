package memory

import (
	"maps"
	"slices"

	"xtimer/engine"
)

// Snapshot copies what the tier and its table of nodes have, as of now. The function that it
// returns puts the copy back, once, as an operator does who restores a backup, or a failover that
// loses commits.
func (m *Members) Snapshot() (restore func()) {
	c := m.cold
	c.mu.Lock()
	defer c.mu.Unlock()
	versions := make(map[engine.TimerID][]former, len(c.former))
	for id, fs := range c.former {
		versions[id] = slices.Clone(fs)
	}
	timers, names, deleted, bounds := maps.Clone(c.timers), maps.Clone(c.names), maps.Clone(c.deleted), maps.Clone(c.bounds)
	once, owed, tasks, leftOut, objects := maps.Clone(c.once), maps.Clone(c.owed), maps.Clone(c.tasks), maps.Clone(c.leftOut), maps.Clone(c.objects)
	shards, newest, clock := c.shards, c.newest, c.clock
	nodes, ended, holders, moves := maps.Clone(m.nodes), maps.Clone(m.ended), m.holders, m.moves
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers, c.names, c.former, c.deleted, c.bounds = timers, names, versions, deleted, bounds
		c.once, c.owed, c.tasks, c.leftOut, c.objects = once, owed, tasks, leftOut, objects
		c.shards, c.newest, c.clock = shards, newest, clock
		m.nodes, m.ended, m.holders, m.moves = nodes, ended, holders, moves
	}
}
