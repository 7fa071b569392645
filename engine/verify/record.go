package verify

import (
	"fmt"
	"time"

	"xtimer/engine"
)

// holdRecords looks at what the records themselves say.
func (ev *evidence) holdRecords(eras []era, j *judged) {
	var run *entry // the one that reaches farthest
	for i := range ev.records {
		x := &ev.records[i]
		e, kept := eraOf(eras, x.gen)
		add := func(kind FindingKind, format string, args ...any) {
			if ev.holds(x.due) {
				j.findings = append(j.findings, e.finding(kind, x.due, fmt.Sprintf(format, args...)))
			}
		}
		ev.holdAttempts(x, add)
		if kept && x.stale >= 0 && x.stale <= e.waits.Milliseconds() {
			add(Early, "the task was skipped as stale %d ms after its due; its timer waits for %v", x.stale, e.waits)
		}
		if i > 0 && ev.records[i-1].due == x.due {
			add(Repeat, "the due has two records")
		}
		if x.origin != engine.FromSchedule {
			continue
		}
		if run != nil && x.due <= run.last && x.gen == run.gen && ev.holds(run.due) {
			j.findings = append(j.findings, e.finding(Repeat, x.due, fmt.Sprintf(
				"its record says %s, and the due is in a run of %s to %s that says %s", x.status, engine.FormatInstant(run.due), engine.FormatInstant(run.last), run.status,
			)))
		}
		if x.run() && (run == nil || x.last > run.last) {
			run = x
		}
		if kept {
			e.holdScheduled(eras, x, add)
		}
	}
}

// holdAttempts looks at the attempts of a record.
func (ev *evidence) holdAttempts(x *entry, add func(FindingKind, string, ...any)) {
	if x.early {
		add(Early, "an attempt started before the due")
	}
	if ev.late > 0 && x.lateness > ev.late {
		add(FoundLate, "its first attempt was %v late", x.lateness.Round(time.Microsecond))
	}
	if x.again {
		add(Repeat, "the task was called again after its target had accepted it")
	}
}

// holdScheduled looks at the dues of a record of an era: the plan has them, and none was
// called after the era had ended.
func (e *era) holdScheduled(eras []era, x *entry, add func(FindingKind, string, ...any)) {
	if by, stray := e.after(x); stray {
		add(Stray, "an attempt began %v after its timer was deleted, disabled or given another schedule", by)
	}
	switch {
	case x.run():
		if n := e.plan.Count(x.due-1, x.last); n != x.count {
			add(Miscount, "a run of %s to %s counts %d dues; the plan has %d", engine.FormatInstant(x.due), engine.FormatInstant(x.last), x.count, n)
		}
	case !derived(eras, x.due):
		add(Stray, "no definition has this due; its record says %s", x.status)
	}
}
