package scheduler

import "sync"

// gaps are the minutes whose buckets cannot be trusted: an entry could not be
// added, or what was read was not what had been written. They are read from the
// cold tier until they are filled anew.
type gaps struct {
	mu      sync.Mutex
	minutes map[int64]uint64 // by due / minute: the number of the last loss
	losses  uint64
}

// add notes a loss in each minute that begins in [from, to).
func (g *gaps) add(from, to int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.losses++
	for m := from / minute; m*minute < to; m++ {
		g.minutes[m] = g.losses
	}
}

func (g *gaps) has(at int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.minutes[at/minute] != 0
}

// next is the first minute in [from, to) that has a gap, and the number of
// losses so far.
func (g *gaps) next(from, to int64) (at int64, losses uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m := from / minute; m*minute < to; m++ {
		if g.minutes[m] != 0 {
			return m * minute, g.losses, true
		}
	}
	return 0, g.losses, false
}

// mended forgets the losses up to a number, of what lies before to: those that came
// later stay, also those before from, which had none when the mending began.
func (g *gaps) mended(to int64, losses uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m, n := range g.minutes {
		if m*minute < to && n <= losses {
			delete(g.minutes, m)
		}
	}
}

// distrust notes that the warm tier does not have what is due at the instant, and
// wakes who mends it.
func (m *migrator) distrust(due int64) {
	m.gaps.add(due, due+1)
	m.wake()
}
