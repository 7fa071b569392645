package fair

import (
	"cmp"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"xtimer/engine/flow"
)

// What waits for a flow key can be listed in pages, in the order in which it goes:
//
//	lanes of the key ── each row: as its items came ──► rows ── by rank, as Lane.look ──► the list
//
// Each item has a number, greater than those of all that came before it. A page begins
// after the numbers that the former page has seen, so what stays between two pages is neither
// missed nor listed twice. A reader lets others have the queue after some items.

const (
	// ofForced is the row of the list for forced items: whatever their priority, they go first when
	// the pause ends that holds them.
	ofForced = inOrder + 1
	// marking: one item of a lane in so many is a mark, which a reader goes on from.
	marking = 256
	// looksAtOnce is how many items a reader looks at while mu is held.
	looksAtOnce = 256
)

// Seen is how far a reader has come: of each row of the list the number of its last item.
type Seen [ofForced + 1]uint64

// Waiter is an item that waits for a key.
type Waiter[T any] struct {
	Value T
	Row   int    // of Seen
	Came  uint64 // its number
	Rank  int64  // of two rows, the one whose first item has the lesser rank goes first
}

// keyReader reads a page.
type keyReader[T any] struct {
	q       *Queue[T]
	upTo    uint64 // what came later is not listed
	most    int    // so many heads of a row are enough for the page
	looks   int    // since others had the queue
	round   int    // how often they had
	found   [ofForced + 1][]*head[T]
	trimmed bool // some were left out
	heads   [ofForced + 1]heap[*head[T]]
}

// head is the first item of a row of a lane that is still to be listed.
type head[T any] struct {
	lane  *Lane[T]
	row   int // of the lane
	of    int // of the list
	came  uint64
	rank  int64
	item  *Item[T] // good in one round only: it may leave, and be made anew, in another
	round int
	place int // in its heap
}

// WaitingFor lists what waits for a flow key of an app and was not seen, at most so many.
// Whatever came up to upTo is seen when all are listed.
func (q *Queue[T]) WaitingFor(app, key string, seen *Seen, most int) (ws []Waiter[T], upTo uint64, all bool) {
	g, lanes, upTo := q.lanesFor(app, key)
	r := &keyReader[T]{q: q, upTo: upTo, most: most}
	ws, all = r.page(g, lanes, seen)
	return ws, upTo, all
}

// page lists what waits in the lanes of a gate.
func (r *keyReader[T]) page(g *gate[T], lanes []*Lane[T], seen *Seen) (ws []Waiter[T], all bool) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for _, l := range lanes {
		r.look(l, g, seen)
		r.rest()
	}
	for _, hs := range r.found {
		for _, h := range hs {
			r.heads[h.of].put(h, &h.place, key64(h.came))
		}
	}
	clear(r.found[:])
	for len(ws) < r.most {
		h := r.first()
		if h == nil {
			return ws, !r.trimmed
		}
		it := h.item
		if h.round != r.round {
			it = r.after(h.lane, h.row, h.came-1)
		}
		if it != nil && it.came == h.came {
			ws = append(ws, Waiter[T]{it.Value, h.of, h.came, h.rank})
			it = it.latter
		}
		if r.set(h, it) {
			r.heads[h.of].put(h, &h.place, key64(h.came))
		} else {
			r.heads[h.of].drop(&h.place)
		}
		r.looks++
		r.rest()
	}
	return ws, r.first() == nil && !r.trimmed
}

func key64(came uint64) key { return key{0, int64(came)} }

// lanesFor are the lanes that name a flow key, and the number of the last item that came.
func (q *Queue[T]) lanesFor(app, key string) (g *gate[T], ls []*Lane[T], last uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last = q.came
	if g = q.gates[flow.Name{Kind: flow.OfFlow, App: app, Key: key}]; g == nil {
		return nil, nil, last
	}
	for l := range g.members {
		if ls = append(ls, l); len(ls)%looksAtOnce == 0 {
			q.mu.Unlock()
			runtime.Gosched()
			q.mu.Lock()
		}
	}
	return g, ls, last
}

// look finds the heads of a lane. mu is held.
func (r *keyReader[T]) look(l *Lane[T], g *gate[T], seen *Seen) {
	if l.name.forced && (l.held == nil || l.held.at != g) {
		return // the key does not hold it
	}
	r.looks++
	for rows := l.filled; rows != 0; rows &= rows - 1 {
		h := &head[T]{lane: l, row: bits.TrailingZeros16(rows), place: -1}
		if h.of = h.row; l.name.forced {
			h.of = ofForced
		}
		if r.set(h, r.after(l, h.row, seen[h.of])) {
			r.found[h.of] = append(r.found[h.of], h)
		}
	}
}

// set moves a head to an item, and reports whether the list has that.
func (r *keyReader[T]) set(h *head[T], it *Item[T]) bool {
	if it == nil || it.came > r.upTo {
		return false
	}
	h.item, h.came, h.round, h.rank = it, it.came, r.round, it.Ready-int64(h.row)*ageing
	switch h.of {
	case keepers, ofForced:
		h.rank = math.MinInt64
	case inOrder:
		h.rank = it.due() - usual*ageing
	}
	return true
}

// after is the first item of a row of a lane that came after a number. mu is held.
func (r *keyReader[T]) after(l *Lane[T], row int, seen uint64) *Item[T] {
	it := l.rows[row].first
	if it == nil || it.came > seen {
		return it
	}
	i, _ := slices.BinarySearchFunc(l.marks, seen, compareCame)
	for i--; i >= 0; i-- {
		r.looks++
		if m := l.marks[i]; m.row() == row {
			it = m
			break
		}
	}
	for it != nil && it.came <= seen {
		it = it.latter
		r.looks++
	}
	return it
}

// first is the head that goes next, nil for none.
func (r *keyReader[T]) first() (first *head[T]) {
	for i := range r.heads {
		if r.heads[i].empty() {
			continue
		}
		if h := r.heads[i].entries[0].member; first == nil || h.rank <= first.rank {
			first = h
		}
	}
	return first
}

// rest lets others have the queue after some looks. mu is held.
func (r *keyReader[T]) rest() {
	if r.looks < looksAtOnce {
		return
	}
	r.q.mu.Unlock()
	for i, hs := range r.found {
		if len(hs) > 2*r.most+looksAtOnce {
			slices.SortFunc(hs, func(a, b *head[T]) int { return cmp.Compare(a.came, b.came) })
			clear(hs[r.most:])
			r.found[i], r.trimmed = hs[:r.most], true
		}
	}
	r.looks, r.round = 0, r.round+1
	runtime.Gosched()
	r.q.mu.Lock()
}

// Came is the number of an item, 0 if it has not come to the queue yet. The caller keeps others from
// making the item anew.
func (q *Queue[T]) Came(it *Item[T]) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return it.came
}

// LaneName is the app, the target and the flow keys of a lane.
type LaneName struct{ App, Target, Flow string }

// LanesFor are the names of the lanes of an app with a flow key, except the lanes of forced items.
// Several lanes may have one name.
func (q *Queue[T]) LanesFor(app, key string) (ns []LaneName) {
	_, ls, _ := q.lanesFor(app, key)
	for _, l := range ls {
		if !l.name.forced {
			ns = append(ns, LaneName{l.name.app, l.name.target, l.name.flow})
		}
	}
	return ns
}

// HeldBy describes the lanes that the gate of a name holds, except the lanes of forced items.
func (q *Queue[T]) HeldBy(n flow.Name) (ls []LaneStats) {
	for some := range slices.Chunk(q.heldBy(n), piece) {
		ls = q.describe(ls, some)
	}
	return ls
}

// heldBy copies pointers only: there may be 100,000 lanes, and calls wait for mu meanwhile.
func (q *Queue[T]) heldBy(n flow.Name) (ls []*Lane[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.gates[n]
	if g == nil {
		return nil
	}
	ls = make([]*Lane[T], 0, len(g.lanes.entries))
	for i := range g.lanes.entries {
		if l := g.lanes.entries[i].member; !l.name.forced {
			ls = append(ls, l)
		}
	}
	return ls
}

// EstimateOf is when what waits for a flow key may be called (Queue.Now).
func (q *Queue[T]) EstimateOf(app, key string) flow.Estimate {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.gates[flow.Name{Kind: flow.OfFlow, App: app, Key: key}]
	if g == nil {
		return flow.Estimate{Next: now}
	}
	return g.Estimate(now)
}

// Expected is about when an item that is held may be called, so far as what holds it is concerned
// (Queue.Now); flow.Never if nobody knows.
func (q *Queue[T]) Expected(it *Item[T]) time.Duration {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !it.waits || it.Lane.held == nil || it.Lane.held.at == nil {
		return now
	}
	n, many := it.Lane.held.at.before(it)
	if many {
		return flow.Never
	}
	return it.Lane.held.at.Estimate(now).After(n)
}

// joins notes a lane that goes through a gate. mu is held.
func (g *gate[T]) joins(l *Lane[T]) {
	if g.users++; g.name.Kind == flow.OfFlow {
		if g.members == nil {
			g.members = map[*Lane[T]]struct{}{}
		}
		g.members[l] = struct{}{}
	}
}

// leaves notes a lane that goes through a gate no more. mu is held.
func (g *gate[T]) leaves(l *Lane[T]) {
	g.users--
	delete(g.members, l)
}

// number numbers an item that comes to a lane. mu is held.
func (l *Lane[T]) number(it *Item[T], came uint64) {
	l.came++
	it.came, it.ofLane = came, l.came
	if it.marked = l.came%marking == 0; it.marked {
		l.marks = append(l.marks, it)
	}
}

// unmark takes an item that leaves out of the marks. The one behind it becomes one, unless it
// is the first of its row then. mu is held.
func (l *Lane[T]) unmark(it *Item[T]) {
	it.marked = false
	i, _ := slices.BinarySearchFunc(l.marks, it.came, compareCame)
	next := it.latter
	if it.former != nil && next != nil && !next.marked && (i+1 == len(l.marks) || next.came < l.marks[i+1].came) {
		next.marked, l.marks[i] = true, next
		return
	}
	l.marks = slices.Delete(l.marks, i, i+1)
}

func compareCame[T any](m *Item[T], came uint64) int { return cmp.Compare(m.came, came) }

// guessedLanes is how many lanes of a gate are looked at to guess what goes before an item.
const guessedLanes = 64

// before guesses how many items go before one that waits at a gate; many: there are too many
// lanes. mu is held.
func (g *gate[T]) before(it *Item[T]) (n int, many bool) {
	if len(g.lanes.entries) > guessedLanes {
		return 0, true
	}
	own := it.Lane
	n = min(own.waiting-1, int(it.ofLane-own.rows[it.row()].first.ofLane))
	for i := range g.lanes.entries {
		if l := g.lanes.entries[i].member; l != own {
			n += l.earlier(it)
		}
	}
	return n, false
}

// earlier guesses how many items of another lane go before an item: as if those between its
// first and the last of that row had come evenly.
func (l *Lane[T]) earlier(it *Item[T]) int {
	row := &l.rows[l.row]
	at, first, last := it.Ready-int64(it.row())*ageing, l.rank, row.last.Ready-int64(l.row)*ageing
	if l.row == it.row() { // which is more precise
		at, first, last = int64(it.came), int64(row.first.came), int64(row.last.came)
	}
	switch {
	case at <= first:
		return 0
	case at > last, l.row >= keepers:
		return l.waiting
	}
	return int((int64(l.waiting)*(at-first) + last - first - 1) / (last - first))
}
