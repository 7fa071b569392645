package checker

import (
	"cmp"
	"slices"
)

// receive hands each arrival to its due, and holds it against what was asked
// for: L2, L3, L6.
func (c *court) receive() {
	for i := range c.logs.Arrived {
		a := &c.logs.Arrived[i]
		k := key{a.Timer, a.Due}
		o := c.due[k]
		if early := a.Due*1000 - c.clock(a.At); early > 0 && (o == nil || !c.setBack(o, a)) {
			c.broken("L2", "%s arrived %d µs before its due", k, early)
		}
		if o == nil {
			c.phantom(k, a)
			continue
		}
		o.arrivals = append(o.arrivals, a)
		if a.App != o.timer.App || a.Name != o.timer.Name {
			c.broken("L6", "%s arrived as %s/%s, it is %s/%s", k, a.App, a.Name, o.timer.App, o.timer.Name)
		}
		if o.timer.born != nil {
			c.inForce(o, a)
		}
	}
	for _, o := range c.all {
		slices.SortStableFunc(o.arrivals, func(a, b *Arrived) int { return cmp.Compare(a.At, b.At) })
	}
}

// inForce holds an arrival against what the owner was answered: L3, L6.
func (c *court) inForce(o *Due, a *Arrived) {
	if !o.said(a) {
		c.broken("L6", "%s arrived as a request (method, headers, body) that was not in force: %s", o.key(), a.RequestSHA)
	}
	if at, by := o.ended(); by != nil && a.At/1000 > at+grace(by) {
		c.broken("L3", "%s arrived %d ms after its %s was answered", o.key(), a.At/1000-at, by.Op)
	}
}

// phantom judges an arrival that no timer asks for: the schedule that did may
// be over. Of a create of which nobody knows whether it was made, it may be.
func (c *court) phantom(k key, a *Arrived) {
	if t := c.timers[a.Timer]; t != nil {
		for _, e := range t.eras {
			ds, err := e.def.Schedule.Dues(e.From, e.anchor, a.Due-1, a.Due)
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
func (o *Due) said(a *Arrived) bool {
	for _, e := range o.Eras {
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

// grace is for how long (ms) after the answer a call may arrive that was in flight
// when its timer ended.
func grace(by *Asked) int64 {
	if by.Op == Delete && by.Result != "in_flight" {
		return 0
	}
	return onTheWay
}
