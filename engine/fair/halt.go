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

// yield is whether the queue hands nothing out so that the wheel finds a core.
type yield struct {
	on    bool
	since time.Duration // by Queue.now
}

const (
	// mostYield is how long the queue yields at a time, and leastYielded how long it hands items
	// out before it yields again: where even the wheel alone has not enough of a core, calls
	// still have a sixth of the time.
	mostYield    = 100 * time.Millisecond
	leastYielded = 20 * time.Millisecond
)

// Yield tells whether the wheel is late: it is told with each batch while it is. The queue hands
// nothing out meanwhile. Else, where more is due than the machine can call, calls and what follows
// them would take the time of the one goroutine on which the dues of all apps depend: the queue
// can take turns only between those that have come. Calls that are under way go on.
func (q *Queue[T]) Yield(late bool) {
	now := q.now()
	q.mu.Lock()
	y := &q.yield
	switch past := now - y.since; {
	case !y.on && late && past >= leastYielded:
		*y = yield{true, now}
		q.mu.Unlock()
	case y.on && (!late || past >= mostYield):
		*y = yield{false, now}
		q.handOut(now)
	default:
		q.mu.Unlock()
	}
}
