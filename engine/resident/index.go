package resident

import "xtimer/engine"

// Index finds the tasks of a shard by key: a hash table whose chains go through the
// tasks. To put a task in, or to take it out, costs one line of memory that no cache
// holds, where Go's map costs three, and each fire does both: with a backlog of
// 200,000 that was a twentieth of it.
type Index struct {
	heads []*Task // a power of two of them; none before the first task
	Len   int
}

const fewestHeads = 8

// head is where the chain of a key begins.
func (x *Index) head(k engine.Key) **Task {
	h := uint64(k.Timer)*0x9e3779b97f4a7c15 + uint64(k.Due)*0xc2b2ae3d27d4eb4f
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return &x.heads[(h^h>>32)&uint64(len(x.heads)-1)]
}

// Find is nil when there is none.
func (x *Index) Find(k engine.Key) *Task {
	if x.Len == 0 {
		return nil
	}
	t := *x.head(k)
	for t != nil && t.Key != k {
		t = t.chained
	}
	return t
}

// Put adds a task whose key no other has.
func (x *Index) Put(t *Task) {
	if x.Len == len(x.heads) {
		x.grow()
	}
	head := x.head(t.Key)
	t.chained, *head = *head, t
	x.Len++
}

// Remove takes a task out, if it is there.
func (x *Index) Remove(t *Task) {
	if x.Len == 0 {
		return
	}
	for at := x.head(t.Key); *at != nil; at = &(*at).chained {
		if *at == t {
			*at, t.chained = t.chained, nil
			x.Len--
			return
		}
	}
}

// grow doubles the heads. They are not taken back: 8 bytes for each task of the
// largest backlog so far.
func (x *Index) grow() {
	former := x.heads
	x.heads = make([]*Task, max(2*len(former), fewestHeads))
	for _, t := range former {
		for t != nil {
			next, head := t.chained, x.head(t.Key)
			t.chained, *head = *head, t
			t = next
		}
	}
}

// All goes through them, in no order; they must not change meanwhile.
func (x *Index) All(yield func(*Task) bool) {
	for _, t := range x.heads {
		for ; t != nil; t = t.chained {
			if !yield(t) {
				return
			}
		}
	}
}
