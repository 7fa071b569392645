package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// complete is L1: each due that had to be called was taken, or its record says why not;
// and what a record says is what happened.
func (c *court) complete(o *Due) {
	f := o.final()
	if f == nil {
		if o.Must && !slices.ContainsFunc(o.arrivals, (*Arrived).ok) {
			c.broken("L1", "%s is lost: %d arrivals, none of them taken, and no record says why", o.key(), len(o.arrivals))
		}
		return
	}
	rule, wrong := "L1", c.wrong(o, f)
	if wrong == "" {
		return
	}
	if f.Status == "unknown" {
		rule = "L8"
	}
	c.broken(rule, "%s: its record says %s %s after %d attempts: %s", o.key(), f.Status, f.Reason, f.Attempts, wrong)
}

// wrong says what of the record of a due is not so; "": nothing.
func (c *court) wrong(o *Due, f *Final) string {
	answered := func(is func(*Arrived) bool) bool { return slices.ContainsFunc(o.arrivals, is) }
	amo := o.timer.some((*Definition).atMostOnce)
	lost := func(a *Arrived) bool { return a.ok() && c.forgot(a, forever) != nil }
	if f.Status != "succeeded" && answered((*Arrived).ok) && !answered(lost) {
		return "its target took it"
	}
	switch f.Status {
	case "succeeded":
		if !answered((*Arrived).ok) {
			return fmt.Sprintf("its target took none of %d calls", len(o.arrivals))
		}
	case "failed":
		if !answered(func(a *Arrived) bool { return a.Code != 0 && !a.ok() && (amo || !a.retryable()) }) {
			return "its target did not reject it"
		}
	case "dead":
		return c.dead(o, f)
	case "cancelled": // a change that nobody answered may have ended it as well
		if !slices.ContainsFunc(o.Eras, func(e *Era) bool { return e.Over && e.Generation == f.Generation }) {
			return "nobody asked for its end"
		}
	case "skipped":
		return c.skipped(o, f)
	case "missed":
		return c.missed(o, f)
	case "unknown":
		return c.unclear(o)
	default:
		if o.Must {
			return "it has no end"
		}
	}
	return ""
}

// missed is wrong of a due that was found later than its timer wants to know of it.
func (c *court) missed(o *Due, f *Final) string {
	window := o.timer.least(func(d *Definition) int64 { return cmp.Or(d.MisfireWindow, 24*3_600_000) })
	switch {
	case f.Reason != "misfire_window":
		return "for no reason"
	case !c.foundLate(max(o.At, f.DueLast), window):
		return "nothing made it so late"
	}
	return ""
}

// unclear is wrong of a task of which nobody knows whether its target took it.
func (c *court) unclear(o *Due) string {
	switch {
	case !o.timer.some((*Definition).atMostOnce):
		return "it is at least once"
	case slices.ContainsFunc(o.arrivals, func(a *Arrived) bool { return a.Code == 0 }):
	case c.near(o.At-c.run.Unsynced, forever) == nil:
		return "nothing was broken"
	}
	return ""
}

// dead is wrong of a task whose attempts were given up.
func (c *court) dead(o *Due, f *Final) string {
	most := 0
	for _, a := range o.arrivals {
		most = max(most, a.Attempt)
	}
	switch f.Reason {
	case "max_age": // it is given up when its next attempt would be too late
		age := func(d *Definition) int64 { return cmp.Or(d.Retry.MaxAge, 24*3_600_000) - d.Retry.longest() }
		if least := o.timer.least(age); f.Ended-o.At <= least {
			return fmt.Sprintf("it waited for %d ms, less than %d", f.Ended-o.At, least)
		}
		return ""
	case "stale":
		return c.stale(o, f)
	case "overlap", "overlap_queue_full":
		return o.overlapped(f)
	}
	out := func(f *Broken) bool { return f.Fault == Receiver }
	switch {
	case int64(f.Attempts-f.Base) < o.timer.least(attempts):
		return "it had attempts left"
	case most != f.Attempts && !o.Unreached && o.Redriven == 0 && c.between(o.At, c.run.Ended, out) == nil:
		return fmt.Sprintf("attempt %d was the last that arrived", most)
	}
	return ""
}

// skipped is wrong of a due that was not called: its timer has given the reason.
func (c *court) skipped(o *Due, f *Final) string {
	switch f.Reason {
	case "overlap", "overlap_queue_full":
		return o.overlapped(f)
	case "stale":
		return c.stale(o, f)
	case "misfire":
		switch {
		case o.timer.all(func(d *Definition) bool { return d.Misfire == "all" || d.Schedule.At != 0 }):
			return "its timer wants all"
		case !c.foundLate(max(o.At, f.DueLast), misfireAfter):
			return "nothing made it late"
		}
	default:
		return "for no reason"
	}
	return ""
}

// overlapped is wrong of a task that found its timer busy.
func (o *Due) overlapped(f *Final) string {
	policy, wrong := "skip", "its timer does not skip"
	if f.Reason == "overlap_queue_full" {
		policy, wrong = "queue", "its timer does not queue"
	}
	if o.timer.some(func(d *Definition) bool { return d.Overlap == policy }) {
		return ""
	}
	return wrong
}

// stale is wrong of a task that was not called for its age.
func (c *court) stale(o *Due, f *Final) string {
	waited, waits := f.Ended-cmp.Or(f.Since, o.At), o.timer.least((*Definition).waits)
	if waited <= waits {
		return fmt.Sprintf("it waited for %d ms, its timer waits for %d", waited, waits)
	}
	return ""
}
