package fair

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"xtimer/engine/flow"
)

// ageing is how much longer an item of one priority less has to have waited to
// go first, in ms.
const ageing = 1000

// Lane is where the items of one app for one target wait, with one set of flow keys. Its fields are the
// queue's.
type Lane[T any] struct {
	name   laneName
	app    *app[T]
	target *target[T]

	rows    [inOrder + 1]fifo[T] // by priority
	line    *line[T]             // those of inOrder by due; nil: they wait by priority
	filled  uint16               // which rows have items
	waiting int
	calls   int // in flight

	// row and rank are of the item that goes next: its row, and when it became ready,
	// by ageing earlier for each priority.
	row  int
	rank int64

	pool    int      // where it stands for a place; see place
	place   int      // in the lanes of its app's share of the pool; -1: it has none
	held    *held[T] // what it knows of its gates; nil: it has none
	limited atomic.Bool
	ordered atomic.Bool    // it has a line
	outside heap[*Mark[T]] // by their instants
	bytes   int            // of the items that wait
	gathers bool           // a call has still to take its items
	filling *filling       // a call waits for more items; nil: none does
	start   slowStart      // of the lane of a backlog

	came  uint32     // how many items have come
	marks []*Item[T] // some of those that wait, as they came: see waiting.go

	parked bool        // waits in target.parked
	behind *Lane[T]    // the next one there
	dead   atomic.Bool // forgotten: another may stand in its place; see Queue.Living
}

type laneName struct {
	app, target, flow string
	class             uint64 // of items that may share a call; 0: each has its own
	// forced: a pause holds the lane, and the quota of the app; another limit does not, and its
	// calls do not count there.
	forced  bool
	backlog bool // see BacklogLane
}

// keepers is the row of the items that have a place at a gate already: they go before all
// others, which may wait for it.
const keepers = 10

// rowOf is the row that an item is to wait in.
func (l *Lane[T]) rowOf(it *Item[T]) int {
	switch {
	case it.Keeps():
		return keepers
	case l.line != nil:
		return inOrder
	}
	return int(it.Priority)
}

// row is the row that an item waits in. What row reads does not change while the item waits.
func (it *Item[T]) row() int {
	switch {
	case it.gated != nil && it.gated.place >= 0:
		return inOrder
	case it.Keeps():
		return keepers
	}
	return int(it.Priority)
}

// push adds an item and reports whether it goes next.
func (l *Lane[T]) push(it *Item[T]) bool {
	it.waits = true
	l.waiting++
	l.bytes += int(it.Bytes)
	l.target.waiting++
	return l.put(it)
}

// put has an item wait in its row and reports whether it goes next.
func (l *Lane[T]) put(it *Item[T]) bool {
	p := l.rowOf(it)
	l.rows[p].push(it)
	if p == inOrder {
		l.line.push(it)
		l.filled |= 1 << p
		l.look()
		return l.next() == it
	}
	if l.filled&(1<<p) != 0 {
		return false
	}
	l.filled |= 1 << p
	l.look()
	return l.row == p
}

// remove takes out an item that waits.
func (l *Lane[T]) remove(it *Item[T]) {
	p := it.row()
	if it.marked {
		l.unmark(it)
	}
	next := l.first(p) == it
	l.rows[p].remove(it)
	if p == inOrder {
		l.line.items.drop(&it.gated.place)
	}
	it.waits = false
	l.waiting--
	l.bytes -= int(it.Bytes)
	l.target.waiting--
	if l.first(p) == nil {
		l.filled &^= 1 << p
	}
	if next {
		l.look()
	}
}

// look finds the item that goes next.
func (l *Lane[T]) look() {
	l.rank = math.MaxInt64
	for rows := l.filled; rows != 0; rows &= rows - 1 {
		p := bits.TrailingZeros16(rows)
		r := l.first(p).Ready - int64(p)*ageing
		if p == inOrder {
			r = l.first(p).due() - usual*ageing
		}
		if r <= l.rank {
			l.rank, l.row = r, p
		}
	}
	if l.filled>>keepers&1 != 0 {
		l.rank, l.row = math.MinInt64, keepers
	}
}

// first is the item of a row that goes first, nil for none.
func (l *Lane[T]) first(row int) *Item[T] {
	switch {
	case row != inOrder:
		return l.rows[row].first
	case l.line.items.empty():
		return nil
	}
	return l.line.items.entries[0].member
}

// next is the item that goes next; the lane is not empty.
func (l *Lane[T]) next() *Item[T] { return l.first(l.row) }

// kind is the pool that the lane belongs to.
func (l *Lane[T]) kind(now time.Duration) int {
	answers := l.target.answers(now)
	switch {
	case l.calls == 0 && (answers || l.target.lowered == 0):
		return first
	case answers:
		return answering
	}
	return silent
}

func (l *Lane[T]) key() key { return key{l.calls, l.rank} }

// counts reports whether the calls of a lane count at a gate. Those that are forced count at
// the quota of the app alone.
func (l *Lane[T]) counts(g *gate[T]) bool { return !l.name.forced || g.name.Kind == flow.OfQuota }
