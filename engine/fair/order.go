package fair

import (
	"cmp"
	"math"
	"slices"
	"time"

	"xtimer/engine/flow"
)

// A gate keeps order when it has one place, which a task keeps until its end: its items are handed
// out one after the other in the order of Item.Due, whatever their lanes; of several with one due, the one with
// the highest priority goes first. Retries go before all: they have the place. What the gate is not
// open for on account of the order:
//
//	an item that is due after a mark   Mark: a row of a lane, which is not in the queue, may be due before it
//	an item that is due after Known    what is due until then is in the queue, or has a mark
//	another lane than the first        of those that stand for a place and those that are held, the one whose item
//	                                   goes first; while its target has no room for it, it has a mark
//
// A mark counts while no other gate holds its lane, so what a pause holds keeps nobody else waiting.

// inOrder is the row of the items of a lane with such a gate: as they came, and by due in Lane.line.
const inOrder = keepers + 1

// None is the instant of a mark that holds nothing.
const None = math.MaxInt64

// usual is the priority that lanes with an order have beside others.
const usual = 5

// line is the order of a lane; nil: no gate of the lane keeps one, and the lane pays nothing for it.
type line[T any] struct {
	items heap[*Item[T]]
	head  Mark[T] // at the item that goes next, while the lane waits for its target
}

// due is the place of an item in the order.
func (it *Item[T]) due() int64 {
	if it.Due != 0 {
		return it.Due
	}
	return it.Ready
}

// turn orders items by due, and those of one due by priority.
func (it *Item[T]) turn() int64 { return it.due()*16 + int64(9-min(it.Priority, 9)) }

// push adds an item.
func (x *line[T]) push(it *Item[T]) {
	if it.gated == nil {
		it.gated = newGated[T]()
	}
	x.items.put(it, &it.gated.place, key{int(it.turn()), int64(it.came)})
}

// keepsOrder reports whether the gate hands its items out in the order of their dues.
func (g *gate[T]) keepsOrder() bool {
	l := g.rule.Limit
	return l != nil && l.HoldTask && l.Concurrency == 1 && (g.name.Kind == flow.OfFlow || g.name.Kind == flow.OfTarget)
}

// reorder has the items of a lane wait by due, or by priority, as its gates demand now. mu is held.
func (q *Queue[T]) reorder(l *Lane[T]) {
	ordered := false
	if l.held != nil {
		for _, g := range l.held.gates {
			ordered = ordered || g.keepsOrder() && l.counts(g)
		}
	}
	if ordered == (l.line != nil) {
		return
	}
	var items []*Item[T]
	for p := range l.rows {
		if p == keepers {
			continue
		}
		for it := l.rows[p].first; it != nil; it = it.latter {
			items = append(items, it)
		}
		l.rows[p] = fifo[T]{}
	}
	slices.SortFunc(items, func(a, b *Item[T]) int { return cmp.Compare(a.came, b.came) }) // in a row they lie as they came
	if l.line != nil {
		q.move(&l.line.head, None)
		for _, it := range items {
			it.gated.place = -1
		}
	}
	l.filled &= 1 << keepers
	if l.line = nil; ordered {
		l.line = &line[T]{head: Mark[T]{lane: l, from: None, place: -1}}
	}
	for _, it := range items {
		it.former, it.latter = nil, nil
		l.put(it)
	}
	l.ordered.Store(ordered)
	l.look()
}

// IsOrdered reports whether a gate of the lane keeps order. It may be asked without a lock.
func (l *Lane[T]) IsOrdered() bool { return l.ordered.Load() }

// Mark stands for what is due in a lane and not in its queue, such as rows that are to be read.
type Mark[T any] struct {
	lane  *Lane[T]
	from  int64
	place int // in lane.outside; -1: it holds nothing
}

// Mark makes a mark of a lane: what is due there from an instant (Unix ms) on may not be in the
// queue.
func (q *Queue[T]) Mark(l *Lane[T], from int64) *Mark[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := &Mark[T]{lane: q.living(l), place: -1}
	q.move(m, from)
	return m
}

// Move moves a mark to another instant; None removes it. nil is no mark.
func (q *Queue[T]) Move(m *Mark[T], from int64) {
	if m == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	m.lane = q.living(m.lane) // while the mark holds something, that is m.lane
	q.move(m, from)
}

func (q *Queue[T]) move(m *Mark[T], from int64) {
	l := m.lane
	was := l.marked()
	if m.from = from; from == None {
		l.outside.drop(&m.place)
	} else {
		l.outside.put(m, &m.place, key{0, from})
	}
	if l.marked() != was {
		q.mark(l, q.now())
	}
}

// lead has the others of a gate that keeps order wait for a lane that waits for its target. mu is held.
func (q *Queue[T]) lead(l *Lane[T], now time.Duration) {
	if l.line == nil {
		return
	}
	at := int64(None)
	if l.waiting > 0 && l.place < 0 && l.held.at == nil {
		if _, by := q.refused(l, now); by != flow.ByPause {
			at = l.next().due()
		}
	}
	if at != l.line.head.from {
		q.move(&l.line.head, at)
	}
}

// marked is the first mark of a lane.
func (l *Lane[T]) marked() int64 {
	if l.outside.empty() {
		return None
	}
	return l.outside.entries[0].order
}

// mark puts the first mark of a lane where its gates find it: all of them, or the one that holds
// the lane. mu is held.
func (q *Queue[T]) mark(l *Lane[T], now time.Duration) {
	h := l.held
	if h == nil || l.outside.empty() && !h.marked {
		return
	}
	h.marked = false
	for i, g := range h.gates {
		was := g.marked()
		if at := l.marked(); at != None && l.counts(g) && (h.at == nil || h.at == g) {
			g.marks.put(l, &h.marks[i], key{0, at})
			h.marked = true
		} else {
			g.marks.drop(&h.marks[i])
		}
		if g.marked() > was && g.keepsOrder() && !g.lanes.empty() {
			q.lookAt(g, now, now)
		}
	}
}

// marked is the first mark of all lanes of a gate.
func (g *gate[T]) marked() int64 {
	if g.marks.empty() {
		return None
	}
	return g.marks.entries[0].order
}

// unmark takes the marks of a lane from its gates. mu is held.
func (q *Queue[T]) unmark(l *Lane[T], now time.Duration) {
	if h := l.held; h != nil && h.marked {
		marks := l.outside
		l.outside = heap[*Mark[T]]{}
		q.mark(l, now)
		l.outside = marks
	}
}

// SetKnown notes that what is due before an instant (Unix ms) is in the queue, or has a mark.
func (q *Queue[T]) SetKnown(until int64) {
	q.mu.Lock()
	now := q.now()
	more := until > q.known
	if q.known = until; more && q.unknown {
		q.unknown = false
		for _, g := range q.gates {
			if g.keepsOrder() {
				q.admit(g, now)
			}
		}
	}
	q.handOut(now)
}

// turn is the place of a lane among those that a gate which keeps order holds.
func (l *Lane[T]) turn(g *gate[T]) int64 {
	if it := l.next(); !it.keeps(g) {
		return it.turn()
	}
	return math.MinInt64
}

// ask is Ask for the next item of a lane, and minds the order. mu is held.
func (q *Queue[T]) ask(g *gate[T], l *Lane[T], now time.Duration) (by flow.By, at time.Duration) {
	it := l.next()
	keeps := it.keeps(g)
	if by, at = g.Ask(now, keeps); by == flow.ByNone && !keeps && l.counts(g) && g.keepsOrder() && !q.isFirst(g, l, it) {
		return flow.ByFlow, flow.Never
	}
	return by, at
}

// front puts a lane that stands for a place where the gates that keep order find it. mu is held.
func (q *Queue[T]) front(l *Lane[T], stands bool) {
	for i, g := range l.held.gates {
		if stands && g.keepsOrder() && l.counts(g) {
			g.front.put(l, &l.held.front[i], key{0, l.turn(g)})
		} else {
			g.front.drop(&l.held.front[i])
		}
	}
}

// isFirst reports whether no item of a gate goes before the next one of a lane. mu is held.
func (q *Queue[T]) isFirst(g *gate[T], l *Lane[T], it *Item[T]) bool {
	if it.due() >= q.known {
		q.unknown = true
		return false
	}
	if it.due() > g.marked() {
		return false
	}
	if !g.front.empty() && g.front.entries[0].member != l && g.front.entries[0].order < it.turn() {
		return false
	}
	if g.lanes.empty() {
		return true
	}
	top := &g.lanes.entries[0]
	return top.member == l || top.cost != 0 || top.order >= it.turn()
}

// Lacks reports whether a lane of a gate that keeps order has nothing to hand out before rows of it
// are read.
func (q *Queue[T]) Lacks(l *Lane[T]) bool {
	if !l.IsOrdered() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.waiting == 0 || l.next().due() > l.marked()
}
