package resident

import (
	"math"
	"slices"
	"sync"
)

// Pins keep the watermark back: while one is there, no watermark passes it.
// Who is about to admit a due that the wheel does not know yet (a create being
// committed, a misfire being decided) takes a hold just before that due and
// gives it up once the wheel or the roster has it.
type Pins struct {
	mu    sync.Mutex
	list  []*Pin // a handful: one per commit under way
	taken int64  // the lowest that was taken since lowest was asked
}

type Pin struct {
	at    int64
	place int
}

func (h *Pins) Pin(at int64) *Pin {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := &Pin{at, len(h.list)}
	h.list = append(h.list, x)
	h.taken = min(h.taken, at)
	return x
}

func (h *Pins) Release(x *Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.list) - 1
	h.list[x.place] = h.list[last]
	h.list[x.place].place = x.place
	h.list[last] = nil
	h.list = h.list[:last]
}

// Lowest is the lowest hold, or limit when there is none below it. A settle asks
// once, before it looks at what the wheel knows.
func (h *Pins) Lowest(limit int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = math.MaxInt64
	for _, x := range h.list {
		limit = min(limit, x.at)
	}
	return limit
}

// leaps are spans of time that the watermark of a shard passes in one step: it stands at the
// beginning of a span until it can reach the end. In each span lie dues that were recorded as
// missed or skipped before the watermark passed them, and that have no row. A start reads such
// records only where their first due is later than the watermark. The spans do not overlap.
type leaps [][2]int64

// add adds the span (after, to].
func (s leaps) add(after, to int64) leaps {
	apart := s[:0]
	for _, x := range s {
		if x[1] <= after || to <= x[0] {
			apart = append(apart, x)
		} else {
			after, to = min(after, x[0]), max(to, x[1])
		}
	}
	return append(apart, [2]int64{after, to})
}

// before is the watermark w, or the beginning of the span that w lies in.
func (s leaps) before(w int64) int64 {
	for _, x := range s {
		if x[0] < w && w < x[1] {
			return x[0]
		}
	}
	return w
}

// endBy reports whether the watermark could pass a span. The watermark does not wait for tasks there: if the clock were
// set back meanwhile, nothing would be settled until the clock is at the end of the span.
func (s leaps) endBy(cut int64) bool {
	return slices.ContainsFunc(s, func(x [2]int64) bool { return x[1] <= cut })
}

// since is the lowest that was taken since lowest was asked, given up or not, or limit.
// A settle asks for each shard: the clock may have been set back under it, and a
// change has read the watermark of a shard that this settle has yet to come to.
func (h *Pins) since(limit int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(limit, h.taken)
}
