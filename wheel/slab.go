package wheel

// chunkLen nodes are allocated at once: large enough that the allocator rounds
// little up, small enough that a burst's memory goes back piece by piece.
const chunkLen = 1024

// slab is where the values lie: nodes in chunks that never move, so that a slot
// number finds its node for as long as the node lives. Without pointers in V it
// holds none at all, and the garbage collector does not look inside.
//
// It is guarded by Wheel.mu.
type slab[V any] struct {
	chunks []chunk[V]
	room   []uint32 // chunks with a free node; may name chunks given back since
	gone   []uint32 // chunks given back, whose numbers are free
	seq    uint64   // of the last node handed out; never used twice
	empty  int      // chunks that are held and hold nothing
	held   int      // chunks with memory
}

type chunk[V any] struct {
	nodes []node[V] // nil when given back
	free  uint32    // first free node + 1, 0 for none; they are linked by next
	live  int
}

// node is one value, linked into the ring of its tick. 24 bytes besides the value.
type node[V any] struct {
	seq        uint64 // 0 when free
	due        int64
	next, prev uint32 // slots of the same tick, in a ring
	v          V
}

func (s *slab[V]) at(slot uint32) *node[V] {
	return &s.chunks[slot/chunkLen].nodes[slot%chunkLen]
}

// find returns the node a handle was given for, or nil when it is gone.
func (s *slab[V]) find(h Handle) *node[V] {
	c := h.slot / chunkLen
	if h.seq == 0 || int(c) >= len(s.chunks) || s.chunks[c].nodes == nil {
		return nil
	}
	n := s.at(h.slot)
	if n.seq != h.seq {
		return nil
	}
	return n
}

// take returns a fresh node. Its links are not set.
func (s *slab[V]) take(due int64, v V) (uint32, *node[V]) {
	id := s.roomy()
	c := &s.chunks[id]
	if c.live == 0 {
		s.empty--
	}
	c.live++
	i := c.free - 1
	n := &c.nodes[i]
	c.free = n.next
	if c.free == 0 {
		s.room = s.room[:len(s.room)-1]
	}
	s.seq++
	n.seq, n.due, n.v = s.seq, due, v
	return id*chunkLen + i, n
}

// roomy returns a chunk with a free node: the last one of s.room.
func (s *slab[V]) roomy() uint32 {
	for len(s.room) > 0 {
		id := s.room[len(s.room)-1]
		if s.chunks[id].nodes != nil {
			return id
		}
		s.room = s.room[:len(s.room)-1]
		s.gone = append(s.gone, id)
	}
	var id uint32
	if n := len(s.gone); n > 0 {
		id = s.gone[n-1]
		s.gone = s.gone[:n-1]
	} else {
		id = uint32(len(s.chunks))
		s.chunks = append(s.chunks, chunk[V]{})
	}
	c := &s.chunks[id]
	c.nodes = make([]node[V], chunkLen)
	for i := range c.nodes[:chunkLen-1] {
		c.nodes[i].next = uint32(i) + 2
	}
	c.free = 1
	s.room = append(s.room, id)
	s.held++
	s.empty++
	return id
}

// give takes a node back, and its chunk's memory when enough chunks are empty: a
// few are kept, so that a steady coming and going does not allocate.
func (s *slab[V]) give(slot uint32) {
	id := slot / chunkLen
	c := &s.chunks[id]
	if c.free == 0 {
		s.room = append(s.room, id)
	}
	c.nodes[slot%chunkLen] = node[V]{next: c.free}
	c.free = slot%chunkLen + 1
	c.live--
	if c.live > 0 {
		return
	}
	s.empty++
	if s.empty > 8+s.held/4 {
		s.shrink()
	}
}

// shrink frees all empty chunks but four.
func (s *slab[V]) shrink() {
	for i := range s.chunks {
		if s.empty <= 4 {
			return
		}
		if c := &s.chunks[i]; c.nodes != nil && c.live == 0 {
			c.nodes = nil
			s.empty--
			s.held--
		}
	}
}
