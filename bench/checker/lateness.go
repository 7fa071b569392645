package checker

import (
	"cmp"
	"slices"
)

// lateness is L7.
func (c *court) lateness() {
	var late []int64
	var latest *Due
	for _, o := range c.all {
		if len(o.arrivals) == 0 || o.timer.some(func(d *Definition) bool { return d.Flow != "" }) {
			continue // what a flow holds is late by somebody's will
		}
		first := o.arrivals[0]
		if o.At < max(o.Eras[0].From, c.run.Settled) {
			continue // an instant that was past when it was given, or before it counts
		}
		away := c.between(o.At, o.At, anyFault)
		switch {
		case away != nil:
			if at := first.At / 1000; o.Must && at > away.To+c.run.Recover && c.between(away.To+1, at, anyFault) == nil {
				c.broken("L7", "%s arrived %d ms after the %s was over", o.key(), at-away.To, away.Fault)
			}
		case o.timer.all(func(d *Definition) bool { return d.Overlap != "queue" }) && c.between(o.At-cmp.Or(c.run.Calm, c.run.Recover), o.At, anyFault) == nil:
			late = append(late, first.At-o.At*1000)
			if latest == nil || late[len(late)-1] > latest.arrivals[0].At-latest.At*1000 {
				latest = o
			}
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
			c.broken("L7", "lateness outside faults: %s is %d µs, more than %d; the latest is %s", q.name, *q.got, q.bound, latest.key())
		}
	}
}
