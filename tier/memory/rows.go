package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/RaduBerinde/btreemap"

	"xtimer/engine"
)

// degree is how many children a node of a tree has at least.
const degree = 16

// rows are owed rows in both orders in which they are read: by timer, and by lane. Simulated
// timers leave tens of thousands of rows, of which a page is read again and again.
type rows struct {
	byTimer *btreemap.BTreeMap[engine.Key, *engine.Owed]
	byLane  *btreemap.BTreeMap[lanePlace, *engine.Owed]
}

// lanePlace is where a row stands in its lane.
type lanePlace struct {
	lane  engine.Lane
	place engine.Place
}

func newRows() rows {
	return rows{
		byTimer: btreemap.New[engine.Key, *engine.Owed](degree, func(a, b engine.Key) int {
			return cmp.Or(cmp.Compare(a.Timer, b.Timer), cmp.Compare(a.Due, b.Due))
		}),
		byLane: btreemap.New[lanePlace, *engine.Owed](degree, func(a, b lanePlace) int {
			return cmp.Or(cmp.Compare(a.lane, b.lane), a.place.Compare(b.place))
		}),
	}
}

func (r rows) clone() rows { return rows{r.byTimer.Clone(), r.byLane.Clone()} }

// put stores a row in place of the one with its key.
func (r rows) put(o engine.Owed) {
	r.remove(o.Key)
	r.byTimer.ReplaceOrInsert(o.Key, &o)
	r.byLane.ReplaceOrInsert(lanePlace{o.Lane, o.Place()}, &o)
}

func (r rows) remove(k engine.Key) {
	if _, o, ok := r.byTimer.Delete(k); ok {
		r.byLane.Delete(lanePlace{o.Lane, o.Place()})
	}
}

// get is nil for a key that has no row.
func (r rows) get(k engine.Key) *engine.Owed {
	_, o, _ := r.byTimer.Get(k)
	return o
}

// all are the rows by lane.
func (r rows) all() iter.Seq2[lanePlace, *engine.Owed] {
	return r.byLane.Ascend(btreemap.Min[lanePlace](), btreemap.Max[lanePlace]())
}

// of are the rows of a timer that are due after an instant.
func (r rows) of(id engine.TimerID, after int64) iter.Seq2[engine.Key, *engine.Owed] {
	return r.byTimer.Ascend(btreemap.GT(engine.Key{Timer: id, Due: after}), btreemap.LE(engine.Key{Timer: id, Due: math.MaxInt64}))
}

// has reports whether a timer has a row.
func (r rows) has(id engine.TimerID) bool {
	for range r.of(id, math.MinInt64) {
		return true
	}
	return false
}

// Owed pages through the owed rows with NotBefore in (from, to].
func (c *Cold) Owed(_ context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	c.mu.Lock()
	var os []engine.Owed
	for _, o := range c.owed.all() {
		if of.Has(o.Key.Timer.Shard()) && o.NotBefore > from && o.NotBefore <= to {
			os = append(os, *o)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(os, func(a, b engine.Owed) int { return a.Place().Compare(b.Place()) })
	for page := range slices.Chunk(os, pageSize) {
		if err := yield(page); err != nil {
			return err
		}
	}
	return nil
}

// OwedPage lists the owed rows of one timer that are due after an instant.
func (c *Cold) OwedPage(_ context.Context, id engine.TimerID, after int64, limit int) (os []engine.Owed, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.owed.of(id, after) {
		if len(os) == limit {
			break
		}
		os = append(os, *o)
	}
	return os, nil
}

// Lanes lists the lanes that have a row with NotBefore ≤ to.
func (c *Cold) Lanes(_ context.Context, of engine.Set, to int64) ([]engine.Lane, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[engine.Lane]bool{}
	for _, o := range c.owed.all() {
		if of.Has(o.Key.Timer.Shard()) && o.NotBefore <= to {
			seen[o.Lane] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// OwedIn lists the rows of a lane after a place.
func (c *Cold) OwedIn(_ context.Context, of engine.Set, lane engine.Lane, after engine.Place, to int64, limit int) (os []engine.Owed, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, o := range c.owed.byLane.Ascend(btreemap.GT(lanePlace{lane, after}), btreemap.Max[lanePlace]()) {
		if at.lane != lane || o.NotBefore > to || len(os) == limit {
			break
		}
		if of.Has(o.Key.Timer.Shard()) {
			os = append(os, *o)
		}
	}
	return os, nil
}
