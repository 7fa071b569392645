package checker

import (
	"fmt"
	"slices"
)

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
	if c.Full < c.run.MinFull {
		invalid(fmt.Sprintf("%d calls of flow keys came as soon as the rate allowed, fewer than %d", c.Full, c.run.MinFull))
	}
	var dues []int64
	for _, o := range c.all {
		if o.Must {
			dues = append(dues, o.At)
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
