package fair

// The pools, one of which a lane with items stands in for a place.
const (
	// first: the lane has no call in flight, and none timed out since its target last
	// answered, if ever.
	first = iota
	// answering: the target answers.
	answering
	// silent: the target has not answered yet, or not for too long.
	silent
	pools
)

// pool is the calls that lanes began from it, and who waits for a place there.
type pool[T any] struct {
	calls  int             // in flight
	shares heap[*share[T]] // of apps that may have one more, by cost
}

// app has its share of each pool.
type app[T any] struct {
	name   string
	calls  int // in flight
	shares [pools]share[T]
	lanes  int
}

// share is an app's part of a pool.
type share[T any] struct {
	app   *app[T]
	calls int            // in flight
	lanes heap[*Lane[T]] // that have items and room at their targets, by calls
	turn  int64          // when it last got a place; the one longest ago goes first
	place int            // in pool.shares; -1: not there
}

func newApp[T any](name string) *app[T] {
	a := &app[T]{name: name}
	for p := range a.shares {
		a.shares[p] = share[T]{app: a, place: -1}
	}
	return a
}

// How many times the free places a lane's cost may be, where it makes its app's first
// calls to a target, and where the target answers.
const (
	firstCost     = 4
	answeringCost = 8
	// kept: one place in so many is kept for first calls.
	kept = 16
)

// cost is that of the share's cheapest lane; it has one.
func (s *share[T]) cost() int { return s.calls + s.lanes.entries[0].cost }

// fits reports whether the cheapest lane of a pool may have one of the free places of
// the queue.
func (p *pool[T]) fits(kind, places, free int) bool {
	if p.shares.empty() || free <= 0 {
		return false
	}
	cost := p.shares.entries[0].cost
	switch kind {
	case first:
		return cost < firstCost*free
	case answering:
		return cost < answeringCost*(free-places/kept)
	}
	return p.calls+cost < free
}

// fits reports whether the cheapest lane of a share may have one of the free places of
// its app.
func (s *share[T]) fits(kind, places, free int) bool {
	if s.lanes.empty() || free <= 0 {
		return false
	}
	switch kind {
	case first:
		return true
	case answering:
		return s.lanes.entries[0].cost < answeringCost*(free-places/kept)
	}
	return s.cost() < free
}
