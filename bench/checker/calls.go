package checker

import (
	"cmp"
	"math"
	"slices"
)

func (d *Definition) atMostOnce() bool { return d.Delivery == "at_most_once" }

// waits is how long (ms) a due waits for its first call.
func (d *Definition) waits() int64 { return cmp.Or(d.StaleAfter, d.Retry.MaxAge, 24*3_600_000) }

func (r *Retry) max() int { return cmp.Or(r.MaxAttempts, 4) }

// longest is the longest wait (ms) between two attempts.
func (r *Retry) longest() int64 { return cmp.Or(r.MaxBackoff, 300_000) }

// wait is the least time (ms) between the end of attempt n and the next one.
func (r *Retry) wait(n int) int64 {
	w := float64(cmp.Or(r.Backoff, 1000)) * math.Pow(cmp.Or(r.Multiplier, 4), float64(n-1))
	return int64(min(w, float64(r.longest())) * (1 - r.Jitter))
}

// least and most are of what the definitions of a timer say.
func (t *Timer) least(of func(*Definition) int64) int64 {
	n := int64(forever)
	for _, d := range t.Definitions {
		n = min(n, of(d))
	}
	return n
}

func (t *Timer) most(of func(*Definition) int64) int64 {
	return -t.least(func(d *Definition) int64 { return -of(d) })
}

func attempts(d *Definition) int64 { return int64(d.Retry.max()) }

// onePolicy reports whether attempts were repeated by the same policy all the time.
func (t *Timer) onePolicy() bool {
	return t.all(func(d *Definition) bool { return d.Retry == t.Definitions[0].Retry })
}

// once is L8.
func (c *court) once(o *Due) {
	if n := len(o.arrivals); n > 1+o.Redriven && o.timer.all((*Definition).atMostOnce) {
		c.broken("L8", "%s arrived %d times", o.key(), n)
	}
}

// fresh is L13: what has waited for too long is not called for the first time. A call
// that is allowed takes its time to arrive. A clock that was set says nothing of how
// long a due has waited.
func (c *court) fresh(o *Due) {
	for _, a := range o.arrivals {
		if a.Attempt > 1 || a.Redelivered || len(c.set) > 0 {
			continue
		}
		waits := o.timer.most((*Definition).waits)
		if late := a.At/1000 - o.since(a); late > waits+c.run.OnTheWay {
			c.broken("L13", "%s arrived for the first time %d ms after its due, it waits for %d", o.key(), late, waits)
		}
	}
}

// retries is L5: attempts count up from 1, wait their time, and stop.
func (c *court) retries(o *Due) {
	if o.Redriven > 0 {
		return
	}
	for i, a := range o.arrivals {
		if most := o.timer.most(attempts); a.Attempt < 1 || int64(a.Attempt) > most {
			c.broken("L5", "%s arrived as attempt %d of %d", o.key(), a.Attempt, most)
			continue
		}
		if i > 0 {
			c.retry(o, o.arrivals[i-1], a)
		} else if a.Attempt > 1 && !o.Unreached && c.near(o.At, a.At/1000) == nil {
			c.broken("L5", "%s arrived first as attempt %d", o.key(), a.Attempt)
		}
		former := func(was *Arrived) bool { return was.Life < a.Life && was.Attempt >= a.Attempt }
		if !a.Redelivered && !c.back() && slices.ContainsFunc(o.arrivals[:i], former) {
			c.broken("L5", "%s: attempt %d was made by a former process and is not marked", o.key(), a.Attempt)
		}
	}
}

// retry is retries of two calls, one after the other.
func (c *court) retry(o *Due, was, a *Arrived) {
	forgot := c.forgot(was, a.At/1000) != nil
	broken := c.between(was.At/1000, a.At/1000, anyFault) != nil
	switch {
	case was.ok() || o.timer.all((*Definition).atMostOnce): // L4, L8
	case !was.retryable() && !forgot:
		c.broken("L5", "%s was called again after the answer %d", o.key(), was.Code)
	case a.Attempt != was.Attempt+1 && !broken && !o.Unreached, a.Attempt <= was.Attempt && !forgot:
		c.broken("L5", "%s: attempt %d after attempt %d", o.key(), a.Attempt, was.Attempt)
	case a.Attempt <= was.Attempt && !a.Redelivered && !c.back():
		c.broken("L5", "%s: attempt %d came again and is not marked", o.key(), a.Attempt)
	case !forgot && was.Done != 0 && len(c.set) == 0 && o.timer.onePolicy():
		if got := a.At - was.Done; got < (o.timer.Definitions[0].Retry.wait(was.Attempt)-1)*1000 {
			c.broken("L5", "%s: attempt %d only %d ms after attempt %d", o.key(), a.Attempt, got/1000, was.Attempt)
		}
	}
}

// repeats is L4: a call that was taken comes again only beside a crash.
func (c *court) repeats() {
	beside := map[*Broken]int{}
	for _, o := range c.all {
		if o.Redriven > 0 {
			continue
		}
		var taken *Arrived
		for _, a := range o.arrivals {
			if taken != nil {
				c.Repeats++
				f := c.forgot(taken, a.At/1000)
				switch {
				case f == nil:
					c.broken("L4", "%s arrived again %d ms after it was taken, and nothing had crashed", o.key(), (a.At-taken.At)/1000)
				case !a.Redelivered && !c.back():
					c.broken("L4", "%s arrived again after a %s and is not marked", o.key(), f.Fault)
				}
				beside[f]++
			}
			if a.ok() && (taken == nil || a.At > taken.At) {
				taken = a
			}
		}
	}
	for i := range c.faults {
		f := &c.faults[i]
		c.Beside = max(c.Beside, beside[f])
		limit := c.run.InCall + max(c.arrivals(f.From-250, f.From), c.arrivals(f.From-1000, f.From)/4)
		if beside[f] > limit {
			c.broken("L4", "%d repeats beside the %s at %d: more than were in flight and written in 250 ms (%d)", beside[f], f.Fault, f.From, limit)
		}
	}
}
