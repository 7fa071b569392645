package resident

import "sync"

// Signal wakes all who wait for the next of something.
type Signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait is closed by the next broadcast.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// Raise lifts an instant, never lowers it.
func Raise(p interface {
	Load() int64
	CompareAndSwap(old, new int64) bool
}, to int64,
) {
	for {
		was := p.Load()
		if was >= to || p.CompareAndSwap(was, to) {
			return
		}
	}
}
