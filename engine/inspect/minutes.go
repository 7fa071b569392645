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

// minuteCount is the count of one minute.
type minuteCount struct {
	minute int64 // due / minute
	n      int64
	anew   int64 // since the fill under way began
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
		c := m.slot(es[i].Due / minute)
		c.n++
		c.anew++
	}
}

// Refill begins to count the minutes of [from, to) anew.
func (m *Minutes) Refill(from, to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := from / minute; n*minute < to; n++ {
		m.slot(n).anew = 0
	}
}

// Filled counts what is filled, from Refill on.
func (m *Minutes) Filled(es []engine.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range es {
		m.slot(es[i].Due/minute).anew++
	}
}

// Refilled ends what Refill began.
func (m *Minutes) Refilled(from, to int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := from / minute; n*minute < to; n++ {
		c := m.slot(n)
		c.n = c.anew
	}
}

// Look tells the counts of the coming hour.
func (m *Minutes) Look(now int64) (out [60]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range out {
		n := now/minute + int64(i)
		if c := &m.of[n%int64(len(m.of))]; c.minute == n {
			out[i] = c.n
		}
	}
	return out
}
