package wheel

import (
	"container/heap"
	"math/bits"
)

// drawerLen neighbouring ticks share a drawer, because one machine word can say
// which of them are occupied.
const drawerLen = 64

// drawer holds the cohorts of 64 neighbouring ticks: what is due in one
// millisecond is a ring of nodes in the slab, and only the ring's first slot is here.
//
// Guarded by Wheel.mu.
type drawer struct {
	key   int64  // due / 64, rounded down
	used  uint64 // bit i is set when tick i is occupied
	armed int64  // the tick the clockwork is to call for, or never
	place int    // in order, -1 when not there (then it is empty and only waits for its call)
	first [drawerLen]uint32
}

func keyOf(due int64) int64 { return due >> 6 } // also right below zero

func tickOf(due int64) int { return int(due & (drawerLen - 1)) }

// earliest returns the first occupied tick. The drawer must not be empty.
func (d *drawer) earliest() int64 {
	return d.key*drawerLen + int64(bits.TrailingZeros64(d.used))
}

// order keeps the drawers that are not empty, the earliest on top. It is what
// Low and Earliest read, and what lets the hand do without the clockwork.
type order []*drawer

func (o order) Len() int           { return len(o) }
func (o order) Less(i, j int) bool { return o[i].key < o[j].key }

func (o order) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

func (o *order) Push(x any) {
	d := x.(*drawer)
	d.place = len(*o)
	*o = append(*o, d)
}

func (o *order) Pop() any {
	last := len(*o) - 1
	d := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	d.place = -1
	return d
}

func (o *order) enter(d *drawer) { heap.Push(o, d) }
func (o *order) leave(d *drawer) { heap.Remove(o, d.place) }

// link puts a node at the end of its tick's ring.
func (s *slab[V]) link(d *drawer, slot uint32, n *node[V]) {
	i := tickOf(n.due)
	if d.used&(1<<i) == 0 {
		d.used |= 1 << i
		d.first[i] = slot
		n.next, n.prev = slot, slot
		return
	}
	head := s.at(d.first[i])
	n.next, n.prev = d.first[i], head.prev
	s.at(head.prev).next = slot
	head.prev = slot
}

// unlink takes a node out of its tick's ring, and clears the tick's bit behind the last.
func (s *slab[V]) unlink(d *drawer, slot uint32, n *node[V]) {
	i := tickOf(n.due)
	if n.next == slot {
		d.used &^= 1 << i
		return
	}
	s.at(n.prev).next = n.next
	s.at(n.next).prev = n.prev
	if d.first[i] == slot {
		d.first[i] = n.next
	}
}
