package alert

import "xtimer/engine"

// brief is an event without the names of its timer: 32 bytes.
type brief struct {
	Key    engine.Key
	Ended  int64
	Code   uint16
	Class  uint8
	Status engine.TaskStatus
	N      uint32
}

func briefOf(ev *event) brief { return brief{ev.Key, ev.Ended, ev.Code, ev.Class, ev.Status, ev.N} }

func (b *brief) named(app, name string) event {
	return event{Key: b.Key, App: app, Name: name, Ended: b.Ended, Code: b.Code, Class: b.Class, Status: b.Status, N: b.N}
}

// Bounds of what waits behind the ring: 32 MiB, in pages.
const (
	mostBriefs = 1 << 20
	pageSize   = 1000
)

// briefs is a queue of events without names.
type briefs struct {
	pages     [][]brief // of pageSize; of the first, the front is gone
	len, most int
}

// put reports whether there is room.
func (q *briefs) put(b brief) bool {
	if q.len >= q.most {
		return false
	}
	if n := len(q.pages); n == 0 || len(q.pages[n-1]) == cap(q.pages[n-1]) {
		q.pages = append(q.pages, make([]brief, 0, pageSize))
	}
	last := &q.pages[len(q.pages)-1]
	*last = append(*last, b)
	q.len++
	return true
}

// first returns the first page, which stays; nil: there is none.
func (q *briefs) first() []brief {
	if q.len == 0 {
		return nil
	}
	return q.pages[0]
}

// drop drops the first n, which are of the first page.
func (q *briefs) drop(n int) {
	q.len -= n
	if q.pages[0] = q.pages[0][n:]; len(q.pages[0]) == 0 {
		q.pages = q.pages[1:]
	}
}
