package scheduler

import "xtimer/engine"

// index finds the tasks of a shard by key: a hash table whose chains go through the
// tasks. To put a task in, or to take it out, costs one line of memory that no cache
// holds, where Go's map costs three, and each fire does both: with a backlog of
// 200,000 that was a twentieth of it.
type index struct {
	heads []*task // a power of two of them; none before the first task
	len   int
}

const fewestHeads = 8

// head is where the chain of a key begins.
func (x *index) head(k engine.Key) **task {
	h := uint64(k.Timer)*0x9e3779b97f4a7c15 + uint64(k.Due)*0xc2b2ae3d27d4eb4f
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return &x.heads[(h^h>>32)&uint64(len(x.heads)-1)]
}

// find is nil when there is none.
func (x *index) find(k engine.Key) *task {
	if x.len == 0 {
		return nil
	}
	t := *x.head(k)
	for t != nil && t.Key != k {
		t = t.chained
	}
	return t
}

// put adds a task whose key no other has.
func (x *index) put(t *task) {
	if x.len == len(x.heads) {
		x.grow()
	}
	head := x.head(t.Key)
	t.chained, *head = *head, t
	x.len++
}

// remove takes a task out, if it is there.
func (x *index) remove(t *task) {
	if x.len == 0 {
		return
	}
	for at := x.head(t.Key); *at != nil; at = &(*at).chained {
		if *at == t {
			*at, t.chained = t.chained, nil
			x.len--
			return
		}
	}
}

// grow doubles the heads. They are not taken back: 8 bytes for each task of the
// largest backlog so far.
func (x *index) grow() {
	former := x.heads
	x.heads = make([]*task, max(2*len(former), fewestHeads))
	for _, t := range former {
		for t != nil {
			next, head := t.chained, x.head(t.Key)
			t.chained, *head = *head, t
			t = next
		}
	}
}

// all goes through them, in no order; they must not change meanwhile.
func (x *index) all(yield func(*task) bool) {
	for _, t := range x.heads {
		for ; t != nil; t = t.chained {
			if !yield(t) {
				return
			}
		}
	}
}
