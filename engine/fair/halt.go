package fair

import "time"

// Halt stops the queue from handing items out until Resume. Each worker that finds that no call may
// begin calls Halt: else calls of a key would gather at the workers at the pace of its rate, and then
// begin all at once. The queue goes on after as many calls of Resume as of Halt.
func (q *Queue[T]) Halt() {
	q.mu.Lock()
	q.halts++
	q.mu.Unlock()
}

// Resume ends one Halt.
func (q *Queue[T]) Resume() {
	q.mu.Lock()
	q.halts--
	q.handOut(q.now())
}

const (
	// mostYield is for how long the queue yields at a time, and leastYielded for how long the queue hands
	// items out before it yields again. So calls have a sixth of the time even where the wheel is always late.
	mostYield    = 100 * time.Millisecond
	leastYielded = 20 * time.Millisecond
)

// Yield halts the queue while the wheel is late, for at most 100 ms at a time. The wheel calls Yield with
// true before each batch while it is late, and with false when it is not late any more. The queue can take
// turns only between items that have come, and the dues of all apps come from the one goroutine of the
// wheel: where more is due than the machine can call, that goroutine would wait for a core behind calls
// and the work that follows them. Calls that are under way go on.
func (q *Queue[T]) Yield(late bool) {
	now := q.now()
	q.mu.Lock()
	past := now - q.turned
	switch {
	case !q.yields && late && past >= leastYielded:
		q.yields, q.turned = true, now
		q.halts++
	case q.yields && (!late || past >= mostYield):
		q.yields, q.turned = false, now
		q.halts--
		q.handOut(now)
		return
	}
	q.mu.Unlock()
}
