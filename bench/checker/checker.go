// Package checker holds what a service did against what it was asked to do,
// from three logs that others wrote: what was asked and answered, what arrived,
// and what was broken when. It imports nothing of the service and computes the
// dues itself, by brute force. A run that was too quiet to prove anything is
// invalid, whatever it shows.
//
//	L1  complete      every due was taken, or the end of it says why not
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

// Check judges a run.
func Check(l *Logs) (*Report, error) {
	r := &Report{Arrivals: len(l.Arrived), Faults: len(l.Broken)}
	c := &court{Report: r, logs: l, faults: slices.Clone(l.Broken)}
	for i := range l.Asked {
		if l.Asked[i].Conditions != nil {
			c.run = *l.Asked[i].Conditions
		}
	}
	if c.run.Ended == 0 {
		return nil, fmt.Errorf("the log of what was asked does not say how the run is to be judged")
	}
	slices.SortFunc(c.faults, func(a, b Broken) int { return cmp.Compare(a.From, b.From) })
	for i := range c.faults {
		healed := c.faults[i].To
		if i > 0 {
			healed = max(healed, c.healed[i-1])
		}
		c.healed = append(c.healed, healed)
	}
	for i := range l.Arrived {
		c.times = append(c.times, l.Arrived[i].At/1000)
	}
	slices.Sort(c.times)
	if err := c.expect(); err != nil {
		return nil, err
	}
	c.receive()
	for _, o := range c.all {
		c.complete(o)
		c.fresh(o)
		c.retries(o)
	}
	c.repeats()
	c.lateness()
	c.api()
	c.load()
	return r, nil
}

// court is a run that is being judged.
type court struct {
	*Report
	logs   *Logs
	run    Condition
	faults []Broken // by time
	healed []int64  // when the last fault up to each was over (Unix ms)
	times  []int64  // of arrivals, sorted (Unix ms)

	timers  map[string]*timer
	unknown map[string]*Asked // creates of which nobody knows, by app and name
	due     map[key]*occurrence
	all     []*occurrence // in order of timer and due
}

type key struct {
	timer string
	due   int64
}

func (k key) String() string { return fmt.Sprintf("%s_%d", k.timer, k.due) }

// between finds the first fault that touches [from, to] (Unix ms) and is of a kind.
func (c *court) between(from, to int64, kind func(*Broken) bool) *Broken {
	// healed[i] is when the last of the faults up to the i-th was over.
	i, _ := slices.BinarySearch(c.healed, from)
	for ; i < len(c.faults) && c.faults[i].From <= to; i++ {
		if f := &c.faults[i]; f.To >= from && kind(f) {
			return f
		}
	}
	return nil
}

// arrivals counts what arrived in [from, to) (Unix ms).
func (c *court) arrivals(from, to int64) int { return within(c.times, from, to) }

// within counts the instants in [from, to).
func within(sorted []int64, from, to int64) int {
	i, _ := slices.BinarySearch(sorted, from)
	j, _ := slices.BinarySearch(sorted, to)
	return j - i
}

func anyFault(*Broken) bool { return true }

// forgets reports whether a fault may make the service forget what it has just
// done. A process that was told to end forgets nothing.
func (f *Broken) forgets() bool { return f.Fault != "terminate" && f.Fault != "receiver" }

// unsynced is how long before a crash (ms) a call may have been answered
// without its outcome being durable.
const unsynced = 2000
