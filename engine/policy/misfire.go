package policy

import (
	"xtimer/engine"
	"xtimer/engine/plan"
)

// MisfireAfter is how late (ms) a due must be found, by a start, a takeover or a
// forward step of the clock, to be a misfire. All else just fires late.
const MisfireAfter = 10_000

// MaxSingles is the most dues of one timer that are owed one by one; more of
// them are owed as a range and unfolded as calls get through.
const MaxSingles = 1000

// Triage is what a misfire decision leaves.
type Triage struct {
	Now     int64
	Records []*engine.Task // of dues that are not called
	Owe     []engine.Owed  // of dues that are
}

// Decide goes through the dues of a timer in (after, d.Now] that are not
// finished and says what becomes of each: called late, skipped or missed.
//
//	      after         now−window      now−10 s       now
//	────────┼──── missed ────┼── by policy ──┼── called ──┼──►
//
// finished tells of a due that needs no decision; it may be nil.
func (d *Triage) Decide(t *engine.Timer, p *plan.Plan, after int64, finished func(due int64) bool) {
	old := d.Now - t.Misfire.Window.Milliseconds()
	late := d.Now - MisfireAfter
	var run *engine.Task // consecutive dues that are not called
	var latest int64     // the latest misfire within the window; 0: none
	var split bool       // a finished due came after latest: no run reaches over it
	var all []int64
	var more int64 // the end of the range when there are too many for all
	add := func(due int64, status engine.TaskStatus, reason string) {
		if run != nil && run.Status == status && run.Reason == reason {
			run.DueLast = due
			run.Count++
			return
		}
		run = NotCalled(t, due, status, reason, d.Now)
		d.Records = append(d.Records, run)
	}
	for due, ok := p.Next(after); ok && due <= d.Now; due, ok = p.Next(due) {
		switch {
		case finished != nil && finished(due):
			run, split = nil, latest != 0
		case due < old:
			add(due, engine.Missed, engine.ReasonWindow)
		case due >= late || p.OneShot():
			d.Owe = append(d.Owe, Row(t, due))
		case t.Misfire.Policy == engine.MisfireAll:
			if len(all) < MaxSingles {
				all = append(all, due)
			} else {
				more = due
			}
		case t.Misfire.Policy == engine.MisfireSkip:
			add(due, engine.Skipped, engine.ReasonMisfire)
		default:
			if latest != 0 {
				add(latest, engine.Skipped, engine.ReasonMisfire)
			}
			if split {
				run, split = nil, false
			}
			latest = due
		}
	}
	if latest != 0 {
		d.Owe = append(d.Owe, Row(t, latest))
	}
	if more != 0 {
		o := Row(t, all[0])
		o.To = more
		d.Owe = append(d.Owe, o)
		return
	}
	for _, due := range all {
		d.Owe = append(d.Owe, Row(t, due))
	}
}

// Row owes one due of a timer.
func Row(t *engine.Timer, due int64) engine.Owed {
	return engine.Owed{Key: engine.Key{Timer: t.ID, Due: due}, Generation: t.Generation, NotBefore: due, Lane: t.Lane()}
}

// NotCalled is the record of a due that is not called.
func NotCalled(t *engine.Timer, due int64, status engine.TaskStatus, reason string, now int64) *engine.Task {
	return &engine.Task{
		Key: engine.Key{Timer: t.ID, Due: due}, App: t.App, Name: t.Name, Generation: t.Generation, Status: status, Reason: reason,
		DueLast: due, Count: 1, Lateness: -1, Since: due, Ended: now,
	}
}
