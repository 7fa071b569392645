package fair

// key orders a heap: the least cost first, then the least order.
type key struct {
	cost  int
	order int64
}

func (k key) before(o key) bool {
	return k.cost < o.cost || k.cost == o.cost && k.order < o.order
}

// heap is a binary heap of members that know where in it they are, so that each
// can move when its key changes. The keys lie beside each other: a comparison
// does not go to the members, which no cache may hold.
type heap[M any] struct{ entries []entry[M] }

type entry[M any] struct {
	key
	member M
	place  *int // where the member keeps its index; -1: not in the heap
}

func (h *heap[M]) empty() bool { return len(h.entries) == 0 }

// put adds a member, or moves it to where its key belongs now.
func (h *heap[M]) put(m M, place *int, k key) {
	if *place < 0 {
		*place = len(h.entries)
		h.entries = append(h.entries, entry[M]{k, m, place})
		h.up(*place)
		return
	}
	if i := *place; h.entries[i].key != k {
		h.entries[i].key = k
		if !h.up(i) {
			h.down(i)
		}
	}
}

// drop takes a member out, if it is in the heap.
func (h *heap[M]) drop(place *int) {
	i := *place
	if i < 0 {
		return
	}
	last := len(h.entries) - 1
	h.swap(i, last)
	h.entries[last] = entry[M]{}
	h.entries = h.entries[:last]
	*place = -1
	if i < last && !h.up(i) {
		h.down(i)
	}
}

func (h *heap[M]) swap(i, j int) {
	e := h.entries
	e[i], e[j] = e[j], e[i]
	*e[i].place, *e[j].place = i, j
}

// up moves an entry towards the top and reports whether it moved.
func (h *heap[M]) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.entries[i].before(h.entries[parent].key) {
			break
		}
		h.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (h *heap[M]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.entries) {
			return
		}
		if right := child + 1; right < len(h.entries) && h.entries[right].before(h.entries[child].key) {
			child = right
		}
		if !h.entries[child].before(h.entries[i].key) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
