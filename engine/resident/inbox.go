package resident

import "sync"

// Inbox is what waits for a stage, in the order in which it was added. Adding never blocks.
type Inbox[T any] struct {
	mu   sync.Mutex // comes after that of a lane or a shard
	list []T
	More chan struct{} // wakes the stage
}

func newInbox[T any]() Inbox[T] { return Inbox[T]{More: make(chan struct{}, 1)} }

// Add appends to it.
func (b *Inbox[T]) Add(x T) {
	b.mu.Lock()
	b.list = append(b.list, x)
	b.mu.Unlock()
	b.poke()
}

// IsEmpty reports whether nothing waits.
func (b *Inbox[T]) IsEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.list) == 0
}

// Take gives all that waits.
func (b *Inbox[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	return list
}

// Return has what was taken wait again, before the rest.
func (b *Inbox[T]) Return(list []T) {
	b.mu.Lock()
	b.list = append(list, b.list...)
	b.mu.Unlock()
	b.poke()
}

func (b *Inbox[T]) poke() {
	select {
	case b.More <- struct{}{}:
	default:
	}
}
