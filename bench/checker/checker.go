// Package checker holds what a service did against what it was asked to do,
// from three logs that others wrote: what was asked and answered, what arrived,
// and what was broken when. It imports nothing of the service and computes the
// dues itself, by brute force. A run that was too quiet to prove anything is
// invalid, whatever it shows.
//
// Check judges trials of the real program: its logs tell what the owners of timers
// know. Judge judges the runs of the simulator by the same rules: that knows from the
// store which timers and dues there were, and what became of requests that nobody
// answered.
//
//	L1  complete      every due was taken, or its record says why not; records are true
//	L2  never early   no call arrives before its due
//	L3  ended         after a delete, disable or change was answered, nothing of before starts
//	L4  repeats       a call that was taken comes again only beside a crash, marked
//	L5  retries       attempts count up, wait their time, and stop
//	L6  no phantoms   what arrives was asked for, word for word
//	L7  lateness      within bounds, outside faults; and soon after them
//	L8  at most once  one arrival, or an unknown
//	L10 API           what was acknowledged is seen, what was deleted is not
//	L11 audit         the auditor found nothing
//	L12 load          enough was going on for the rest to mean anything
//	L13 fresh         what has waited for too long is not called for the first time
//	L14 rate          no window of per has more calls of a flow key than its rate
//	L15 in line       tasks of a flow key with one place, which a task keeps until its end, go
//	                  one after the other, in the order of their dues
//	L16 paused        no call is handed out while its app or one of its flow keys is paused
//
// L14 and L16 are about calls that are handed out to a worker. A receiver sees their first
// byte later, by the time that a connection, a busy machine and the receiver itself take: by
// OnTheWay at most. So a call that arrived at t was handed out in [t−OnTheWay, t], and rate+1
// calls break L14 if they were handed out within per wherever in that time each of them was:
// at the receiver no window of per−OnTheWay may have more than rate. Where it is known when a
// call was begun, per is judged exactly.
package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report is what a run shows.
type Report struct {
	Violations []Violation
	Invalid    []string // why it proves nothing
	Dues       int      // that had to be called
	Arrivals   int
	Repeats    int // calls that came again after they were taken, all of them beside a crash
	Beside     int // the most of them beside one crash
	Faults     int
	Full       int // calls of flow keys that came as soon as the rate allowed, or nearly
	Late       Lateness
}

// Lateness of first arrivals outside faults, in µs.
type Lateness struct {
	Dues          int
	P50, P99, Max int64
}

// Violation is a broken promise.
type Violation struct {
	Rule   string // L1 …
	Detail string
}

// OK reports whether the run is valid and all promises were kept.
func (r *Report) OK() bool { return len(r.Violations) == 0 && len(r.Invalid) == 0 }

// Has reports whether a promise was broken.
func (r *Report) Has(rule string) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == rule })
}

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d dues, %d arrivals, %d repeats beside %d faults (%d at most beside one), %d violations",
		r.Dues, r.Arrivals, r.Repeats, r.Faults, r.Beside, len(r.Violations))
	if r.Full > 0 {
		fmt.Fprintf(&b, "; %d calls of flow keys came as soon as the rate allowed", r.Full)
	}
	if l := r.Late; l.Dues > 0 {
		fmt.Fprintf(&b, "; lateness of %d outside faults: p50 %d, p99 %d, max %d µs", l.Dues, l.P50, l.P99, l.Max)
	}
	for _, why := range r.Invalid {
		fmt.Fprintf(&b, "\nINVALID: %s", why)
	}
	shown := map[string]int{}
	for _, v := range r.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= 10 {
			fmt.Fprintf(&b, "\n%s: %s", v.Rule, v.Detail)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(shown)) {
		if n := shown[rule]; n > 10 {
			fmt.Fprintf(&b, "\n%s: %d more", rule, n-10)
		}
	}
	return b.String()
}

func (r *Report) broken(rule, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{rule, fmt.Sprintf(format, args...)})
}

// Check judges a run by its logs alone.
func Check(l *Logs) (*Report, error) {
	c, err := newCourt(l)
	if err != nil {
		return nil, err
	}
	if err := c.expect(); err != nil {
		return nil, err
	}
	c.judge(slices.Collect(maps.Values(c.timers)))
	c.api()
	c.load()
	return c.Report, nil
}

// Judge judges a run of which it is known which timers there were, and which dues they
// had: what was asked is not looked at but for the conditions. What the API told, and
// whether enough was going on, is not judged.
func Judge(l *Logs, timers []*Timer) (*Report, error) {
	c, err := newCourt(l)
	if err != nil {
		return nil, err
	}
	for _, t := range timers {
		for _, o := range t.Dues {
			o.timer = t
			c.due[o.key()] = o
		}
	}
	c.judge(timers)
	return c.Report, nil
}

// court is a run that is being judged.
type court struct {
	*Report
	logs   *Logs
	run    Condition
	faults []Broken // by time
	healed []int64  // when the last fault up to each was over (Unix ms)
	set    []Broken // those that set the clock
	times  []int64  // of arrivals, sorted (Unix ms)

	timers  map[string]*Timer // that are known from the logs alone
	unknown map[string]*Asked // creates of which nobody knows, by app and name
	due     map[key]*Due
	all     []*Due // in order of timer and due
}

type key struct {
	timer string
	due   int64
}

func (k key) String() string { return fmt.Sprintf("%s_%d", k.timer, k.due) }

func newCourt(l *Logs) (*court, error) {
	c := &court{
		Report: &Report{Arrivals: len(l.Arrived), Faults: len(l.Broken)}, logs: l, faults: slices.Clone(l.Broken), due: map[key]*Due{},
	}
	for i := range l.Asked {
		if l.Asked[i].Conditions != nil {
			c.run = *l.Asked[i].Conditions
		}
	}
	if c.run.Ended == 0 {
		return nil, fmt.Errorf("the log of what was asked does not say how the run is to be judged")
	}
	c.run.Unsynced, c.run.OnTheWay = cmp.Or(c.run.Unsynced, unsynced), cmp.Or(c.run.OnTheWay, onTheWay)
	slices.SortStableFunc(c.faults, func(a, b Broken) int { return cmp.Compare(a.From, b.From) })
	for i := range c.faults {
		healed := c.faults[i].To
		if i > 0 {
			healed = max(healed, c.healed[i-1])
		}
		c.healed = append(c.healed, healed)
		if c.faults[i].Fault == Clock {
			c.set = append(c.set, c.faults[i])
		}
	}
	for i := range l.Arrived {
		c.times = append(c.times, l.Arrived[i].At/1000)
	}
	slices.Sort(c.times)
	return c, nil
}

// judge holds what arrived, and what is recorded of it, against the dues of timers.
func (c *court) judge(timers []*Timer) {
	for _, t := range timers {
		for _, o := range t.Dues {
			c.all = append(c.all, o)
			if o.Must {
				c.Dues++
			}
		}
	}
	slices.SortFunc(c.all, func(a, b *Due) int {
		return cmp.Or(cmp.Compare(a.timer.ID, b.timer.ID), cmp.Compare(a.At, b.At))
	})
	c.receive()
	for _, o := range c.all {
		c.complete(o)
		c.fresh(o)
		c.once(o)
		c.retries(o)
	}
	c.repeats()
	c.flows()
	c.lateness()
}

// arrivals counts what arrived in [from, to) (Unix ms).
func (c *court) arrivals(from, to int64) int { return within(c.times, from, to) }

// within counts the instants in [from, to).
func within(sorted []int64, from, to int64) int {
	i, _ := slices.BinarySearch(sorted, from)
	j, _ := slices.BinarySearch(sorted, to)
	return j - i
}
