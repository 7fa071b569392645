package verify

import (
	"cmp"
	"math"
	"slices"
	"time"

	"xtimer/engine"
)

// evidence is what is known of one timer's dues in [from, to).
type evidence struct {
	from, to int64
	w        int64         // the watermark of its shard
	now      int64         // when the verification began
	late     time.Duration // the bound of lateness; 0: none
	stopped  bool          // no engine runs: its journal may know of calls that history does not
	sampled  bool          // history keeps only some of the successes
	leftOut  []int64       // minutes of which history is not whole, in order
	records  []entry       // by due; some outside [from, to) do no harm
	owed     []debt        // by due
	ranges   []debt        // of owed; see hold
}

// judged is what the rule found of one timer.
type judged struct {
	findings   []Finding
	dues, open int64
}

// hold holds the records of a timer against its life. This is the rule:
//
//	a due of a definition in force, not later than the watermark,
//	is owed, or has exactly one final record, of its own or in a run
//
// Dues later than the watermark are open. What a change ended has its record
// (cancelled) as any other; what passed while a timer was disabled is no due.
func (ev *evidence) hold(l *engine.Life) (j judged) {
	eras := erasOf(l)
	if len(eras) == 0 {
		return j
	}
	ev.ranges = nil
	for _, d := range ev.owed {
		if d.end > d.due {
			ev.ranges = append(ev.ranges, d)
		}
	}
	for i := range eras {
		if eras[i].Status != engine.Disabled {
			ev.holdEra(&eras[i], &j)
		}
	}
	ev.holdRecords(eras, &j)
	return j
}

// holdEra looks for the dues of a generation that have no record.
func (ev *evidence) holdEra(e *era, j *judged) {
	if e.plan.OneShot() && e.LastDue <= e.ValidFrom {
		// The plan does not derive it: it was owed from its creation on. After the clock
		// was set back, its era may have ended before it.
		if due := e.LastDue; e.fresh && due <= e.end && ev.holds(due) {
			ev.expect(e, due, ev.record(due), j)
		}
		return
	}
	end := min(e.end, ev.to-1)
	if after := max(ev.w, ev.from-1); after < end {
		j.open += e.plan.Count(after, end)
		ev.unsettled(e, after, end, j)
	}
	end = min(end, ev.w)
	next, covered := 0, int64(math.MinInt64) // the first record not looked at; up to where runs reach
	for due, ok := e.plan.Next(ev.from - 1); ok && due <= end; due, ok = e.plan.Next(due) {
		var own *entry
		for ; next < len(ev.records) && ev.records[next].due <= due; next++ {
			own = &ev.records[next]
			if own.run() && own.gen == e.Generation {
				covered = max(covered, own.last)
			}
		}
		if due <= covered {
			upTo := min(covered, end)
			j.dues += e.plan.Count(due-1, upTo)
			due = upTo
			continue
		}
		if own != nil && own.due != due {
			own = nil
		}
		ev.expect(e, due, own, j)
	}
}

// settlingTakes is how long what has ended may take to be in history. It is well
// below a second, unless the tier is away or the machine is too busy.
const settlingTakes = 10 * time.Second

// unsettled looks for dues in (after, to] that had to be called by now, and of
// which history knows nothing: something keeps the watermark back.
func (ev *evidence) unsettled(e *era, after, to int64, j *judged) {
	if ev.late == 0 || ev.stopped {
		return
	}
	to = min(to, ev.overdue())
	first, ok := e.plan.Next(after)
	last, ok2 := e.plan.Prev(to)
	if !ok || !ok2 || first > last {
		return
	}
	f := e.finding(FoundLate, first, "history has no record of the due yet: its first attempt may be this late")
	f.DueLast, f.Count = last, e.plan.Count(after, to)
	j.findings = append(j.findings, f)
}

// record finds the record of a due, nil when there is none.
func (ev *evidence) record(due int64) *entry {
	i, ok := slices.BinarySearchFunc(ev.records, due, func(x entry, due int64) int { return cmp.Compare(x.due, due) })
	if !ok {
		return nil
	}
	return &ev.records[i]
}

// expect asks that a due is over, or owed.
func (ev *evidence) expect(e *era, due int64, x *entry, j *judged) {
	j.dues++
	kind, detail := Gap, "the due has no record and is not pending"
	d := ev.owes(due)
	switch {
	case x != nil && x.status.Final():
		return
	case d != nil:
		j.open++
		if ev.late == 0 || ev.stopped || d.tried || due > ev.overdue() {
			return
		}
		kind, detail = FoundLate, "the due is pending, and nothing was sent yet"
	case x != nil:
		detail = "its record says " + x.status.String() + ", and the due is not pending"
	case ev.sampled:
		kind, detail = Unproven, "the due has no record, and history keeps only some of the successes"
	case ev.incomplete(due):
		kind, detail = Unproven, "the due has no record; records of its minute were left out by --history-sample or while the disk was nearly full, dropped because of their size, or not imported"
	}
	if n := len(j.findings); n > 0 {
		f := &j.findings[n-1]
		if next, ok := e.plan.Next(f.DueLast); ok && next == due && f.Kind == kind && f.Detail == detail {
			f.DueLast = due
			f.Count++
			return
		}
	}
	j.findings = append(j.findings, e.finding(kind, due, detail))
}

// incomplete reports whether history is not whole where the due is.
func (ev *evidence) incomplete(due int64) bool {
	_, found := slices.BinarySearch(ev.leftOut, due-due%minute)
	return found
}

// owes finds the row of owed that has the due, nil when there is none. A timer may have
// a hundred thousand rows of one due each; of ranges it has few.
func (ev *evidence) owes(due int64) *debt {
	if i, ok := slices.BinarySearchFunc(ev.owed, due, func(d debt, due int64) int { return cmp.Compare(d.due, due) }); ok {
		return &ev.owed[i]
	}
	i := slices.IndexFunc(ev.ranges, func(d debt) bool { return d.due <= due && due <= d.end })
	if i < 0 {
		return nil
	}
	return &ev.ranges[i]
}

// overdue is the last due whose first attempt had to be known by now.
func (ev *evidence) overdue() int64 { return ev.now - (ev.late + settlingTakes).Milliseconds() }

func (ev *evidence) holds(due int64) bool { return due >= ev.from && due < ev.to }
