package inspect

import (
	"sync"

	"xtimer/engine"
)

// Minutes counts what is due in each of the coming minutes, as it was admitted
// to the hour: what is deleted meanwhile is not taken off. Minutes that are filled
// are counted anew, and the former count is told until that is done; what is made
// meanwhile adds to both.
type Minutes struct {
	mu sync.Mutex
	of [128]minuteCount // by minute modulo 128
}

// minuteCount is the count of one minute, by shard.
type minuteCount struct {
	minute int64 // due / minute
	n      [engine.Shards]int32
	anew   [engine.Shards]int32 // since the fill under way began
}

// slot is the count of a minute; that of another which was there is over. mu is held.
func (m *Minutes) slot(n int64) *minuteCount {
	c := &m.of[n%int64(len(m.of))]
	if c.minute != n {
		*c = minuteCount{minute: n}
	}
	return c
}

// Add counts what was made.
func (m *Minutes) Add(es []engine.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range es {
		c, shard := m.slot(es[i].Due/minute), es[i].ID.Shard()
		c.n[shard]++
		c.anew[shard]++
	}
}

// Refill begins to count what is due of shards in the minutes of [from, to) anew.
func (m *Minutes) Refill(of engine.Set, from, to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := from / minute; n*minute < to; n++ {
		c := m.slot(n)
		for shard := range of.All() {
			c.anew[shard] = 0
		}
	}
}

// Filled counts what is filled, from Refill on.
func (m *Minutes) Filled(es []engine.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range es {
		m.slot(es[i].Due / minute).anew[es[i].ID.Shard()]++
	}
}

// Refilled ends what Refill began.
func (m *Minutes) Refilled(of engine.Set, from, to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := from / minute; n*minute < to; n++ {
		c := m.slot(n)
		for shard := range of.All() {
			c.n[shard] = c.anew[shard]
		}
	}
}

// Look tells what is due of shards in each minute of the coming hour.
func (m *Minutes) Look(of engine.Set, now int64) (out [60]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range out {
		n := now/minute + int64(i)
		if c := &m.of[n%int64(len(m.of))]; c.minute == n {
			for shard := range of.All() {
				out[i] += int64(c.n[shard])
			}
		}
	}
	return out
}
