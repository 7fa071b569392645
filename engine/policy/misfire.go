package policy

import (
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// MisfireAfter is how late (ms) a due must be found, by a start, a takeover or a
// forward step of the clock, to be a misfire. All else just fires late.
const MisfireAfter = 10_000

// MaxSingles is the most dues in a row of one timer that are owed one by one; more of
// them are owed as one range, and become rows of their own as calls get through. A start
// stores the decisions of all timers before it is ready, so a timer leaves it few rows.
const MaxSingles = 2

// Triage is what was decided of dues that nobody served in time. The cost of a decision
// goes with the spans that it is about, not with the dues in them: a span leaves at
// most two records, and MaxSingles rows or one range.
type Triage struct {
	Now int64
	// RangedFrom is, of the timer that is decided next, the first due that is owed as a range already; 0: none is.
	RangedFrom int64
	Records    []*engine.Task // of dues that are not called
	Owe        []engine.Owed  // of dues that are, those of a timer by due
}

// Decide says what becomes of the dues of a timer in the open spans, which are in order
// and do not reach beyond Now: called late, skipped or missed.
//
//	      now−window      now−10 s       now
//	── missed ────┼── by policy ──┼── called ──┼──►
func (d *Triage) Decide(t *engine.Timer, p *plan.Plan, open Spans) {
	old := d.Now - t.Misfire.Window.Milliseconds()
	called := max(d.Now-MisfireAfter, old) // from here on
	if p.OneShot() || t.Misfire.Policy == engine.MisfireAll {
		called = old
	}
	latest := int64(-1) // the misfire that is called under the policy latest
	if t.Misfire.Policy == engine.MisfireLatest {
		latest = open.last(p, old, called-1)
	}
	for _, s := range open {
		d.Pass(t, p, s[0], min(s[1], old-1), engine.Missed, engine.ReasonWindow)
		from := max(s[0], called) // what is called of the span
		if s[0] <= latest && latest <= s[1] {
			from = latest
		}
		d.Pass(t, p, max(s[0], old), min(s[1], from-1), engine.Skipped, engine.ReasonMisfire)
		d.Call(t, p, from, s[1])
	}
}

// Judge is Decide for the dues before an instant. Those from there on are held by a pause: they are no
// misfires.
func (d *Triage) Judge(t *engine.Timer, p *plan.Plan, open Spans, paused int64) {
	open = open.Cut(paused - 1)
	n := slices.IndexFunc(open, func(s [2]int64) bool { return s[0] >= paused })
	if n < 0 {
		n = len(open)
	}
	d.Decide(t, p, open[:n])
	for _, s := range open[n:] {
		d.Hold(t, p, s[0], s[1])
	}
}

// last is the last due of the plan in the spans that is in [from, to], or -1.
func (s Spans) last(p *plan.Plan, from, to int64) int64 {
	for i := len(s) - 1; i >= 0; i-- {
		if due, ok := p.Prev(min(s[i][1], to)); ok && due >= max(s[i][0], from) {
			return due
		}
	}
	return -1
}

// Pass records that the dues in [from, to] are not called.
func (d *Triage) Pass(t *engine.Timer, p *plan.Plan, from, to int64, status engine.TaskStatus, reason string) {
	first, last, n := p.Run(from-1, to)
	if n == 0 {
		return
	}
	r := NotCalled(t, first, status, reason, d.Now)
	r.DueLast, r.Count = last, n
	d.Records = append(d.Records, r)
}

// Call owes the dues in [from, to]: one by one, or as a range when there are many. Behind a
// range of a timer whose dues are called in order, also few are a range: a row of one due would
// come into memory at once, and a range waits until all of an earlier one is there.
func (d *Triage) Call(t *engine.Timer, p *plan.Plan, from, to int64) {
	first, last, n := p.Run(from-1, to)
	if n > MaxSingles || n > 0 && t.Overlap == engine.OverlapQueue && d.owesRangeBefore(t.ID, first) {
		o := Row(t, first)
		o.To = last
		d.Owe = append(d.Owe, o)
		return
	}
	for due := first; n > 0; n-- {
		d.Owe = append(d.Owe, Row(t, due))
		due, _ = p.Next(due)
	}
}

// owesRangeBefore reports whether a range of the timer that is being decided begins before a due.
func (d *Triage) owesRangeBefore(id engine.TimerID, due int64) bool {
	for _, o := range slices.Backward(d.Owe) {
		if o.Key.Timer != id {
			break
		}
		if o.To != 0 && o.Key.Due < due {
			return true
		}
	}
	return d.RangedFrom != 0 && d.RangedFrom < due
}

// Hold owes the dues in [from, to], which a pause holds.
func (d *Triage) Hold(t *engine.Timer, p *plan.Plan, from, to int64) {
	n := len(d.Owe)
	d.Call(t, p, from, to)
	for i := range d.Owe[n:] {
		d.Owe[n+i].Held = 1
	}
}

// Row owes one due of a timer.
func Row(t *engine.Timer, due int64) engine.Owed {
	return engine.Owed{Key: engine.Key{Timer: t.ID, Due: due}, Generation: t.Generation, NotBefore: due, Lane: t.Lane(), OneShot: t.Schedule.OneShot()}
}

// NotCalled is the record of a due that is not called.
func NotCalled(t *engine.Timer, due int64, status engine.TaskStatus, reason string, now int64) *engine.Task {
	return &engine.Task{
		Key: engine.Key{Timer: t.ID, Due: due}, App: t.App, Name: t.Name, Generation: t.Generation, Status: status, Reason: reason,
		DueLast: due, Count: 1, Lateness: -1, Since: due, Ended: now,
	}
}
