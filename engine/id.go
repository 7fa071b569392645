package engine

import (
	"fmt"
	"sync"
)

// idEpoch is 2024-01-01T00:00:00Z in Unix ms: ids count from there.
const idEpoch = 1704067200000

// IDs makes the ids of new timers, each greater than the one before:
//
//	 63            21           0
//	┌─┬────────────┬────────────┐
//	│0│ ms (42 b)  │ count (21) │     ms since 2024: until the year 2163
//	└─┴────────────┴────────────┘
//
// No id is made twice: not within a process, for the next one is greater also after the clock
// stepped back; and not after a restart, if Above was told the greatest id that
// the cold tier ever stored (see Cold.Take). Its methods may be called by many
// goroutines.
//
// Nodes that share a cold tier make no id twice either: each makes those that lie in its
// own shards.
type IDs struct {
	mu    sync.Mutex
	ms    int64
	count int64
}

const (
	idCountBits = 21
	idPerMs     = 1 << 12 // what one node makes in one ms; then it borrows from the next
)

// MaxStoredID is the greatest id that an import may bring, of the year 2093: the
// ids made after it still fit into 63 bits.
const MaxStoredID TimerID = 1<<62 - 1

// Above makes all later ids greater than newest.
func (m *IDs) Above(newest TimerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ms, count := int64(newest>>idCountBits), int64(newest&(1<<idCountBits-1))
	if ms > m.ms || ms == m.ms && count > m.count {
		m.ms, m.count = ms, count
	}
}

// Next makes an id that lies in one of the shards; now is the time of the clock in Unix
// ms. The shards must not be none.
func (m *IDs) Next(now int64, of Set) TimerID {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if id := m.next(now - idEpoch); of.Has(id.Shard()) {
			return id
		}
	}
}

// next makes an id. mu is held.
func (m *IDs) next(now int64) TimerID {
	if now <= 0 {
		panic(fmt.Sprintf("FATAL: the clock says %d ms before 2024", -now))
	}
	if now > m.ms {
		m.ms, m.count = now, 0
	} else if m.count++; m.count >= idPerMs {
		m.ms, m.count = m.ms+1, 0
	}
	return TimerID(m.ms<<idCountBits | m.count)
}
