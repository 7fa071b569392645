package engine

import "sync"

// holds keep the watermark back: while one is there, no watermark passes it.
// Who is about to admit a due that the wheel does not know yet (a create being
// committed, a misfire being decided) takes a hold just before that due and
// gives it up once the wheel or the roster has it.
type holds struct {
	mu   sync.Mutex
	list []*hold // a handful: one per commit under way
}

type hold struct {
	at    int64
	place int
}

func (h *holds) take(at int64) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := &hold{at, len(h.list)}
	h.list = append(h.list, x)
	return x
}

func (h *holds) give(x *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.list) - 1
	h.list[x.place] = h.list[last]
	h.list[x.place].place = x.place
	h.list[last] = nil
	h.list = h.list[:last]
}

// lowest is the lowest hold, or limit when there is none below it.
func (h *holds) lowest(limit int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.list {
		limit = min(limit, x.at)
	}
	return limit
}
