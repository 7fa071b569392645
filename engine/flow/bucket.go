package flow

import "time"

const (
	// fine is the distance of calls below which a bucket lets those go at once that a
	// late timer has kept waiting, up to slack: a timer that wakes 100 µs late would cost
	// 1 % of 100 calls a second, and half of 10,000.
	fine  = 10 * time.Millisecond
	slack = time.Millisecond
)

// Bucket says when calls may be handed out: never more than rate in any half-open
// window of per, burst of them at once.
//
// It is a GCRA. With a credit τ, calls that are every T apart, and n calls in a window,
// (n−1)·T ≤ τ + the time from the first of them to the last < τ + per. So n ≤ rate if
// T = (τ+per)/rate: that is how slack is paid for. A burst of the user's would cost too
// much so (10 a second with a burst of 10 would be 1 a second): there a Window counts.
type Bucket struct {
	every  time.Duration // between calls; 0: no limit
	credit time.Duration // by which a call may come before its instant
	due    time.Duration // the instant of the next call, without credit
	window *window       // nil: every and credit do
}

// newBucket makes a full one.
func newBucket(rate int, per time.Duration, burst int, now time.Duration) Bucket {
	if rate == 0 {
		return Bucket{}
	}
	b := Bucket{every: ceil(per, rate), due: now}
	switch {
	case burst > 1:
		b.credit = time.Duration(burst-1) * b.every
		b.window = newWindow(rate, per)
	case b.every < fine:
		b.credit = min(slack, per/1000)
		b.every = ceil(per+b.credit, rate)
	}
	return b
}

func ceil(d time.Duration, n int) time.Duration {
	return (d + time.Duration(n) - 1) / time.Duration(n)
}

// next is the first instant, not before now, at which a call may be handed out.
func (b *Bucket) next(now time.Duration) time.Duration {
	if b.every == 0 {
		return now
	}
	at := max(now, b.due-b.credit)
	if b.window != nil {
		at = b.window.next(at)
	}
	return at
}

// take counts a call that is handed out at now ≥ next. former gives it back.
func (b *Bucket) take(now time.Duration) (former time.Duration) {
	former = b.due
	if b.every == 0 {
		return former
	}
	b.due = max(b.due, now) + b.every
	if b.window != nil {
		b.window.add(now)
	}
	return former
}

// isFull reports whether no call counts any more.
func (b *Bucket) isFull(now time.Duration) bool {
	if b.window != nil {
		b.window.advance(now)
	}
	return b.due <= now && (b.window == nil || b.window.sum == 0)
}

// refund gives a call back that was not made after all, if none was taken after it: else
// the next one could come too close to that.
func (b *Bucket) refund(former, took time.Duration) {
	if b.every == 0 || b.due != max(former, took)+b.every {
		return
	}
	b.due = former
	if b.window != nil {
		b.window.remove(took)
	}
}
