package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// receive hands each arrival to its due, and holds it against what was asked
// for: L2, L3, L6.
func (c *court) receive() {
	for i := range c.logs.Arrived {
		a := &c.logs.Arrived[i]
		k := key{a.Timer, a.Due}
		if a.At < a.Due*1000 {
			c.broken("L2", "%s arrived %d µs before its due", k, a.Due*1000-a.At)
		}
		o := c.due[k]
		if o == nil {
			c.phantom(k, a)
			continue
		}
		o.arrivals = append(o.arrivals, a)
		if a.App != o.t.app || a.Name != o.t.name {
			c.broken("L6", "%s arrived as %s/%s, it is %s/%s", k, a.App, a.Name, o.t.app, o.t.name)
		}
		if !o.said(a) {
			c.broken("L6", "%s arrived as a request (method, headers, body) that was not in force: %s", k, a.RequestSHA)
		}
		if at, by := o.ended(); by != nil && a.At/1000 > at+grace(by) {
			c.broken("L3", "%s arrived %d ms after its %s was answered", k, a.At/1000-at, by.Op)
		}
	}
	for _, o := range c.all {
		slices.SortStableFunc(o.arrivals, func(a, b *Arrived) int { return cmp.Compare(a.At, b.At) })
	}
}

// phantom judges an arrival that no timer asks for: the schedule that did may
// be over. Of a create of which nobody knows whether it was made, it may be.
func (c *court) phantom(k key, a *Arrived) {
	if t := c.timers[a.Timer]; t != nil {
		for _, e := range t.eras {
			ds, err := e.def.Schedule.Dues(e.from, e.anchor, a.Due-1, a.Due)
			if err == nil && len(ds) > 0 && e.end != nil && a.Due > e.endAnswered {
				c.broken("L3", "%s arrived: it is due %d ms after its %s was answered", k, a.Due-e.endAnswered, e.end.Op)
				return
			}
		}
	}
	born := c.unknown[a.App+"/"+a.Name]
	if born == nil || c.timers[a.Timer] != nil {
		c.broken("L6", "%s (%s/%s) arrived, and nobody asked for it", k, a.App, a.Name)
		return
	}
	d := born.Definition
	if at := d.Schedule.At; at != 0 && at != a.Due || a.Due < born.Invoked && at == 0 || d.RequestSHA != a.RequestSHA {
		c.broken("L6", "%s (%s/%s) arrived, which is not what was asked for", k, a.App, a.Name)
	}
}

// said reports whether the arrival's request was in force when it was sent.
func (o *occurrence) said(a *Arrived) bool {
	for _, e := range o.eras {
		if len(e.defs) == 0 && e.def.RequestSHA == a.RequestSHA {
			return true // manual
		}
		for i, d := range e.defs {
			over := i+1 < len(e.defs) && e.defs[i+1].OK && a.At/1000 > e.defs[i+1].Answered+onTheWay
			if d.Definition.RequestSHA == a.RequestSHA && a.At/1000 >= d.Invoked && !over {
				return true
			}
		}
	}
	return false
}

// onTheWay is how long (ms) a call whose first byte had left before a change was
// answered may take until a receiver notes it, on a machine with more to do than it
// has cores.
const onTheWay = 1000

// grace is for how long (ms) after the answer a call may arrive that was in flight
// when its timer ended.
func grace(by *Asked) int64 {
	if by.Op == Delete && by.Result != "in_flight" {
		return 0
	}
	return onTheWay
}

// complete is L1 and L8: each due that had to be called was taken, or its end
// says why not.
func (c *court) complete(o *occurrence) {
	amo := o.def().Delivery == "at_most_once"
	if amo && len(o.arrivals) > 1 {
		c.broken("L8", "%s arrived %d times", o.key, len(o.arrivals))
	}
	if !o.must || slices.ContainsFunc(o.arrivals, (*Arrived).ok) {
		return
	}
	f := o.final()
	if f == nil {
		c.broken("L1", "%s is lost: %d arrivals, none of them taken, and no record says why", o.key, len(o.arrivals))
		return
	}
	most := 0
	for _, a := range o.arrivals {
		most = max(most, a.Attempt)
	}
	switch {
	case c.excused(o, f, most):
	case amo && f.Status == "unknown":
		c.broken("L8", "%s is unknown, and nothing was broken", o.key)
	default:
		c.broken("L1", "%s was not taken: its record says %s %s after %d attempts, %d arrived", o.key, f.Status, f.Reason, f.Attempts, most)
	}
}

// excused reports whether the final record of an occurrence may say what it says; most
// is the highest attempt that arrived.
func (c *court) excused(o *occurrence, f *Final, most int) bool {
	d := o.def()
	amo := d.Delivery == "at_most_once"
	switch f.Status {
	case "dead":
		out := c.between(o.due, c.run.Ended, func(f *Broken) bool { return f.Fault == "receiver" })
		return f.Attempts >= d.Retry.max() && (most == f.Attempts || out != nil)
	case "failed":
		return slices.ContainsFunc(o.arrivals, func(a *Arrived) bool { return a.Code != 0 && (amo || !a.retryable()) })
	case "cancelled":
		// A change that nobody answered may have ended it as well.
		_, by := o.ended()
		return by != nil || slices.ContainsFunc(o.eras, func(e *era) bool { return e.endSent != forever })
	case "skipped":
		return c.maySkip(o, f)
	case "missed":
		window := cmp.Or(d.MisfireWindow, 24*3_600_000)
		return c.between(o.due, forever, func(f *Broken) bool { return o.due < f.To-window }) != nil
	case "unknown":
		dropped := slices.ContainsFunc(o.arrivals, func(a *Arrived) bool { return a.Code == 0 })
		return amo && (dropped || c.between(o.due-unsynced, forever, anyFault) != nil)
	}
	return false
}

// maySkip reports whether a due was skipped for a reason that its timer gives.
func (c *court) maySkip(o *occurrence, f *Final) bool {
	d := o.def()
	switch f.Reason {
	case "overlap":
		return d.Overlap == "skip"
	case "overlap_queue_full":
		return d.Overlap == "queue"
	case "stale":
		return f.Ended-o.due > o.waits()
	case "misfire":
		return d.Misfire != "all" && d.Schedule.At == 0 &&
			c.between(o.due, forever, func(f *Broken) bool { return f.From <= f.To-misfireAfter && o.due <= f.To-misfireAfter }) != nil
	}
	return false
}

// waits is how long (ms) a due waits for its first call.
func (o *occurrence) waits() int64 {
	d := o.def()
	return cmp.Or(d.StaleAfter, d.Retry.MaxAge, 24*3_600_000)
}

// fresh is L13: what has waited for too long is not called for the first time. A call
// that is allowed takes its time to arrive, until it times out.
func (c *court) fresh(o *occurrence) {
	since := max(o.due, o.eras[len(o.eras)-1].from)
	if len(o.arrivals) == 0 || o.arrivals[0].Redelivered || o.arrivals[0].Attempt > 1 {
		return
	}
	if late := o.arrivals[0].At/1000 - since; late > o.waits()+onTheWay {
		c.broken("L13", "%s arrived for the first time %d ms after its due, it waits for %d", o.key, late, o.waits())
	}
}

// misfireAfter is how late (ms) a start must find a due for it to be a misfire.
const misfireAfter = 10_000

func (r *Retry) max() int { return cmp.Or(r.MaxAttempts, 4) }

// wait is the least time (ms) between the end of attempt n and the next one.
func (r *Retry) wait(n int) int64 {
	w := float64(cmp.Or(r.Backoff, 1000)) * math.Pow(cmp.Or(r.Multiplier, 4), float64(n-1))
	return int64(min(w, float64(cmp.Or(r.MaxBackoff, 300_000))) * (1 - cmp.Or(r.Jitter, 0.2)))
}

// retries is L5: attempts count up from 1, wait their time, and stop.
func (c *court) retries(o *occurrence) {
	r := &o.def().Retry
	amo := o.def().Delivery == "at_most_once"
	for i, a := range o.arrivals {
		if a.Attempt < 1 || a.Attempt > r.max() {
			c.broken("L5", "%s arrived as attempt %d of %d", o.key, a.Attempt, r.max())
			continue
		}
		if i == 0 {
			if a.Attempt > 1 && c.between(o.due, a.At/1000, anyFault) == nil {
				c.broken("L5", "%s arrived first as attempt %d", o.key, a.Attempt)
			}
			continue
		}
		was := o.arrivals[i-1]
		forgot := c.between(was.At/1000-unsynced, a.At/1000, (*Broken).forgets) != nil
		broken := forgot || c.between(was.At/1000, a.At/1000, anyFault) != nil
		switch {
		case was.ok() || amo: // L4, L8
		case !was.retryable() && !forgot:
			c.broken("L5", "%s was called again after the answer %d", o.key, was.Code)
		case a.Attempt != was.Attempt+1 && !broken, a.Attempt < was.Attempt && !forgot:
			c.broken("L5", "%s: attempt %d after attempt %d", o.key, a.Attempt, was.Attempt)
		case a.Attempt <= was.Attempt && !a.Redelivered:
			c.broken("L5", "%s: attempt %d came again and is not marked", o.key, a.Attempt)
		case !broken && a.At-was.Done < (r.wait(was.Attempt)-1)*1000:
			c.broken("L5", "%s: attempt %d only %d ms after attempt %d", o.key, a.Attempt, (a.At-was.Done)/1000, was.Attempt)
		}
	}
}

// repeats is L4: a call that was taken comes again only beside a crash.
func (c *court) repeats() {
	beside := map[*Broken]int{}
	for _, o := range c.all {
		var taken *Arrived
		for _, a := range o.arrivals {
			if taken != nil {
				c.Repeats++
				f := c.between(taken.At/1000, forever, func(f *Broken) bool {
					return f.forgets() && f.From-taken.At/1000 <= unsynced && a.At/1000 >= f.From
				})
				switch {
				case f == nil:
					c.broken("L4", "%s arrived again %d ms after it was taken, and nothing had crashed", o.key, (a.At-taken.At)/1000)
				case !a.Redelivered:
					c.broken("L4", "%s arrived again after a %s and is not marked", o.key, f.Fault)
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

// lateness is L7.
func (c *court) lateness() {
	var late []int64
	for _, o := range c.all {
		if len(o.arrivals) == 0 {
			continue
		}
		first := o.arrivals[0]
		if o.due < o.eras[0].from {
			continue // an instant that was past when it was given
		}
		away := c.between(o.due, o.due, anyFault)
		switch {
		case away != nil:
			if at := first.At / 1000; o.must && at > away.To+c.run.Recover && c.between(away.To+1, at, anyFault) == nil {
				c.broken("L7", "%s arrived %d ms after the %s was over", o.key, at-away.To, away.Fault)
			}
		case o.def().Overlap != "queue" && c.between(o.due-cmp.Or(c.run.Calm, c.run.Recover), o.due, anyFault) == nil:
			late = append(late, first.At-o.due*1000)
		}
	}
	slices.Sort(late)
	c.Late.Dues = len(late)
	if len(late) == 0 {
		return
	}
	for _, q := range []struct {
		name  string
		at    float64
		bound int64
		got   *int64
	}{{"p50", 0.5, c.run.P50, &c.Late.P50}, {"p99", 0.99, c.run.P99, &c.Late.P99}, {"the most", 1, c.run.Max, &c.Late.Max}} {
		*q.got = late[min(int(q.at*float64(len(late))), len(late)-1)]
		if q.bound > 0 && *q.got > q.bound {
			c.broken("L7", "lateness outside faults: %s is %d µs, more than %d", q.name, *q.got, q.bound)
		}
	}
}

// api is L10 and L11.
func (c *court) api() {
	for i := range c.logs.Asked {
		switch a := &c.logs.Asked[i]; a.Op {
		case Get:
			c.seen(a)
		case List:
			c.listed(a)
		case Audit:
			if a.Violations > 0 {
				c.broken("L11", "the auditor counted %d violations", a.Violations)
			}
		}
	}
}

func (c *court) seen(a *Asked) {
	t := c.timers[a.Timer]
	if t == nil || !a.OK && a.Status != 404 {
		return
	}
	version, gone, unsure := int64(1), false, false
	for _, x := range t.changes {
		switch {
		case x.Invoked > a.Answered:
		case !x.OK || x.Answered > a.Invoked:
			unsure = true
		case x.Op == Delete:
			gone = true
		default:
			version++
		}
	}
	switch {
	case t.born.Answered > a.Invoked:
	case gone && a.OK:
		c.broken("L10", "timer %s was read after its delete was answered", t.id)
	case !gone && !unsure && !a.OK:
		c.broken("L10", "timer %s was not found (%d) after its create was answered", t.id, a.Status)
	case a.OK && a.Version != 0 && (a.Version < version || a.Version > version && !unsure):
		c.broken("L10", "timer %s was read as version %d, it has %d", t.id, a.Version, version)
	}
}

func (c *court) listed(a *Asked) {
	there := map[string]bool{}
	for _, id := range a.IDs {
		there[id] = true
		t := c.timers[id]
		if t == nil && len(c.unknown) == 0 {
			c.broken("L10", "timer %s is listed, and nobody has made it", id)
		}
		if t != nil && t.deleted != nil && t.deleted.OK && t.deleted.Answered < a.Invoked {
			c.broken("L10", "timer %s is listed, and was deleted", id)
		}
	}
	for id, t := range c.timers {
		if !there[id] && t.deleted == nil && t.born.Answered < a.Invoked {
			c.broken("L10", "timer %s is not listed", id)
		}
	}
}

// minLate is how many dues a p99 is to be of.
const minLate = 50

// load is L12: a run that was too quiet proves nothing.
func (c *court) load() {
	invalid := func(why string) { c.Invalid = append(c.Invalid, why) }
	if c.Dues == 0 || len(c.logs.Arrived) == 0 {
		invalid("nothing was due, or nothing arrived")
	}
	if c.run.P99 > 0 && c.Late.Dues < minLate {
		invalid(fmt.Sprintf("the lateness of %d dues outside faults is known, fewer than %d", c.Late.Dues, minLate))
	}
	var dues []int64
	for _, o := range c.all {
		if o.must {
			dues = append(dues, o.due)
		}
	}
	slices.Sort(dues)
	for i := range c.faults {
		f := &c.faults[i]
		if n := c.arrivals(f.From-1000, f.From); n < c.run.MinRate {
			invalid(fmt.Sprintf("%d calls arrived in the second before the %s at %d, fewer than %d", n, f.Fault, f.From, c.run.MinRate))
		}
		// What was due while it lasted says nothing of what it hit.
		if n := max(within(dues, f.From-100, f.From), c.arrivals(f.From-100, f.From)); n < c.run.MinOpen {
			invalid(fmt.Sprintf("the %s at %d met %d calls under way, fewer than %d", f.Fault, f.From, n, c.run.MinOpen))
		}
	}
}
