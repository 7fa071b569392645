package client

import (
	"context"
	"sync"
	"time"
)

// MemoryStore remembers the tasks that this process has handled, for a while. It
// forgets them when the process ends: a task that is repeated across a restart
// is handled twice, unless the handling itself knows the key.
type MemoryStore struct {
	age time.Duration

	mu sync.Mutex // guards all below
	// What was handled goes into young. After age young becomes old, and what was
	// old is gone: each key is kept for age at least, twice that at most.
	young, old map[string]struct{}
	turned     time.Time
	claimed    map[string]struct{}
}

// NewMemoryStore keeps what was handled for that long. A key takes some 90 bytes.
func NewMemoryStore(age time.Duration) *MemoryStore {
	return &MemoryStore{age: age, young: map[string]struct{}{}, claimed: map[string]struct{}{}, turned: time.Now()}
}

// Begin implements Store.
func (m *MemoryStore) Begin(_ context.Context, key string) (Standing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(time.Now())
	if _, ok := m.claimed[key]; ok {
		return Busy, nil
	}
	_, young := m.young[key]
	if _, old := m.old[key]; old || young {
		return Handled, nil
	}
	m.claimed[key] = struct{}{}
	return Fresh, nil
}

// End implements Store.
func (m *MemoryStore) End(_ context.Context, key string, handled bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(time.Now())
	delete(m.claimed, key)
	if handled {
		m.young[key] = struct{}{}
	}
	return nil
}

func (m *MemoryStore) turn(now time.Time) {
	switch since := now.Sub(m.turned); {
	case since < m.age:
		return
	case since < 2*m.age:
		m.old = m.young
	default:
		m.old = nil
	}
	m.young, m.turned = map[string]struct{}{}, now
}
