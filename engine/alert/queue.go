package alert

// queue is a queue in pages: to put something into it never copies what is there, so that no call
// waits for that.
type queue[T any] struct {
	pages     [][]T // of pageSize; of the first, the front is gone
	len, most int
}

// put reports whether there is room.
func (q *queue[T]) put(x T) bool {
	if q.len >= q.most {
		return false
	}
	if n := len(q.pages); n == 0 || len(q.pages[n-1]) == cap(q.pages[n-1]) {
		q.pages = append(q.pages, make([]T, 0, pageSize))
	}
	last := &q.pages[len(q.pages)-1]
	*last = append(*last, x)
	q.len++
	return true
}

// first returns the first, n at most, which stay; nil: there is none.
func (q *queue[T]) first(n int) []T {
	if q.len == 0 {
		return nil
	}
	return q.pages[0][:min(n, len(q.pages[0]))]
}

// drop drops the first n, which are of the first page.
func (q *queue[T]) drop(n int) {
	q.len -= n
	if q.pages[0] = q.pages[0][n:]; len(q.pages[0]) == 0 {
		q.pages = q.pages[1:]
	}
}
