package scheduler

import (
	"fmt"
	"sync"

	"xtimer/engine"
)

// idEpoch is 2024-01-01T00:00:00Z in Unix ms: ids count from there.
const idEpoch = 1704067200000

// idMint makes timer ids:
//
//	 63            21           0
//	┌─┬────────────┬────────────┐
//	│0│ ms (42 b)  │ count (21) │     ms since 2024: until the year 2163
//	└─┴────────────┴────────────┘
//
// The upper 9 bits of count are the node's, when there are several. Ids never
// repeat within a process, also when the clock steps back; over a restart the
// cold tier refuses an id that is taken, and the create mints another.
type idMint struct {
	mu   sync.Mutex
	ms   int64
	next int64
}

const (
	idCountBits = 21
	idPerMs     = 1 << 12 // what one node may mint in one ms; then it borrows from the next
)

func (m *idMint) mint(now int64) engine.TimerID {
	m.mu.Lock()
	defer m.mu.Unlock()
	now -= idEpoch
	if now <= 0 {
		panic(fmt.Sprintf("FATAL: the clock says %d ms before 2024", -now))
	}
	if now > m.ms {
		m.ms, m.next = now, 0
	} else if m.next++; m.next == idPerMs {
		m.ms, m.next = m.ms+1, 0
	}
	return engine.TimerID(m.ms<<idCountBits | m.next)
}
