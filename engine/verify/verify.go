package verify

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// Finding is a place where the ledger does not prove itself: what history says
// is not what the definitions, with the times at which they were in force, ask for.
type Finding struct {
	Kind      FindingKind
	Timer     engine.TimerID
	App, Name string
	// Due to DueLast, Count of them: neighbouring gaps are one finding.
	Due, DueLast int64
	Count        int64
	Detail       string
}

// FindingKind says what is wrong.
type FindingKind uint8

// What verifying can find.
const (
	// Gap: a due that has passed, has no final record and is not owed.
	Gap FindingKind = iota
	// Repeat: a due that was decided twice, or called again after it was taken.
	Repeat
	// Early: an attempt that started before its due, or a task that was skipped as
	// stale before it was.
	Early
	// FoundLate: a first attempt later than the bound that was asked for.
	FoundLate
	// Stray: a record of a due that no definition has, or of a call that began
	// after its timer was deleted, disabled or given another schedule.
	Stray
	// Miscount: a run of dues in one record that counts other than the plan.
	Miscount
	// Unproven: no record, where history is known not to be whole: successes are
	// sampled, or the disk or history's bound left no room. It is no failure.
	Unproven
	// Damaged: a row of the store that cannot be read, or is that of another task.
	Damaged

	findingKinds
)

var findingNames = [findingKinds]string{"gap", "repeat", "early", "late", "stray", "miscount", "unproven", "damaged"}

func (k FindingKind) String() string { return findingNames[k] }

// entry is what the rule needs of a record.
type entry struct {
	id        engine.TimerID
	due, last int64 // last > due: a run of count dues
	count     int64
	lateness  time.Duration // of the first attempt; 0 without one
	started   int64         // Unix ms: the last attempt; 0 without one
	gen       uint32
	status    engine.TaskStatus
	origin    engine.Origin
	early     bool // an attempt started before the due
	again     bool // an attempt was made after one that the target took
	// stale is how long (ms) after its due a task that was not called ended as stale, −1:
	// it did not.
	stale int64
}

func entryOf(t *engine.Task) entry {
	x := entry{
		id: t.Key.Timer, due: t.Key.Due, last: max(t.Key.Due, t.DueLast), count: max(t.Count, 1),
		gen: t.Generation, status: t.Status, origin: t.Origin, stale: -1,
	}
	if t.Status == engine.Skipped && t.Reason == engine.ReasonStale {
		x.stale = t.Ended - t.Key.Due
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		x.early = x.early || a.Started < t.Key.Due*1000
		x.again = x.again || a.ErrorClass == "" && i+1 < len(t.Attempts)
	}
	if n := len(t.Attempts); n > 0 {
		x.lateness, x.started = max(t.Lateness, 0), t.Attempts[n-1].Started/1000
	}
	return x
}

// run reports whether the record stands for many dues.
func (x *entry) run() bool { return x.last > x.due }

// debt is what the rule needs of a row of owed.
type debt struct {
	id       engine.TimerID
	due, end int64 // end > due: a range
	tried    bool  // an attempt was made, or is under way
}

func debtOf(o *engine.Owed) debt {
	return debt{o.Key.Timer, o.Key.Due, max(o.Key.Due, o.To), o.Begun || o.Task != nil && len(o.Task.Attempts) > 0}
}

// era is the time during which one generation of a timer was in force. Its dues
// are those of its plan up to its end; later ones are its successor's.
type era struct {
	*engine.Timer
	plan plan.Plan
	end  int64
	// fresh: its schedule was given anew, so an instant that was past is due.
	fresh bool
	// last: no task of a later due is called; and when stopped, no attempt that
	// begins later is made. MaxDue: nobody knows.
	last    int64
	stopped bool
	timeout time.Duration // the longest of its versions
	waits   time.Duration // before a task is stale: the shortest of its versions
}

// erasOf are the generations of a life that are kept, oldest first.
func erasOf(l *engine.Life) []era {
	var es []era
	for i, t := range l.Versions {
		if n := len(es); n > 0 {
			was := &es[n-1]
			if was.Generation == t.Generation {
				was.Timer, was.timeout = t, max(was.timeout, t.Callback.Timeout) // the dues stayed what they were
				was.waits = min(was.waits, waitsOf(t))
				continue
			}
			was.ends(t)
		}
		p, err := plan.Of(t)
		if err != nil { // the engine left it out, see leaveOut
			p = plan.Plan{}
		}
		fresh := t.Version == 1
		if i > 0 {
			was := l.Versions[i-1]
			fresh = (t.Schedule != was.Schedule || t.At != was.At) && t.ValidFrom <= t.UpdatedAt
		}
		es = append(es, era{Timer: t, plan: p, end: engine.MaxDue, fresh: fresh, last: engine.MaxDue, timeout: t.Callback.Timeout, waits: waitsOf(t)})
	}
	if l.Deleted != 0 && len(es) > 0 {
		e := &es[len(es)-1]
		e.end, e.last, e.stopped = l.Deleted, l.Deleted, true
	}
	return es
}

// waitsOf is how long a task of a timer waits at least before it is stale.
func waitsOf(t *engine.Timer) time.Duration {
	if t.StaleAfter > 0 {
		return min(t.StaleAfter, t.Retry.MaxAge)
	}
	return t.Retry.MaxAge
}

// ends is what its successor does to an era. A change that takes effect at once is
// stamped by the latest time that the timer's calls may have had; the dues of the era
// end by the clock's own time, ValidFrom. A later one-shot or enable does not tell.
func (e *era) ends(next *engine.Timer) {
	e.end = min(next.UpdatedAt, next.ValidFrom)
	switch {
	case next.Status == engine.Disabled:
		e.last, e.stopped = next.UpdatedAt, true
	case next.Status == engine.Enabled && !next.Schedule.OneShot() && next.ValidFrom <= next.UpdatedAt:
		e.last = next.UpdatedAt
	}
}

// sendingTakes is how long an attempt that was let go may take to begin, beside
// its timeout: at most once waits for the journal. So may a change, to take hold.
const sendingTakes = 10 * time.Second

// after tells how long after the end of its era a call of the record began, and
// whether it may not have been in flight then.
func (e *era) after(x *entry) (by time.Duration, stray bool) {
	if x.started == 0 || e.last == engine.MaxDue {
		return 0, false
	}
	began := x.due
	if e.stopped {
		began = max(began, x.started-e.timeout.Milliseconds())
	}
	return time.Duration(x.started-e.last) * time.Millisecond, began > e.last+sendingTakes.Milliseconds()
}

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
		// The plan does not derive it: it was owed from its creation on.
		if due := e.LastDue; e.fresh && ev.holds(due) {
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
		kind, detail = Unproven, "the due has no record; records of its minute were left out while the disk was nearly full, dropped because of their size, or not imported"
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

// owes finds the row of owed that has the due, nil when there is none.
func (ev *evidence) owes(due int64) *debt {
	i := slices.IndexFunc(ev.owed, func(d debt) bool { return d.due <= due && due <= d.end })
	if i < 0 {
		return nil
	}
	return &ev.owed[i]
}

// overdue is the last due whose first attempt had to be known by now.
func (ev *evidence) overdue() int64 { return ev.now - (ev.late + settlingTakes).Milliseconds() }

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
		if x.early {
			add(Early, "an attempt started before the due")
		}
		if ev.late > 0 && x.lateness > ev.late {
			add(FoundLate, "its first attempt was %v late", x.lateness.Round(time.Microsecond))
		}
		if x.again {
			add(Repeat, "the task was called again after its target had accepted it")
		}
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
		if by, stray := e.after(x); kept && stray {
			add(Stray, "an attempt began %v after its timer was deleted, disabled or given another schedule", by)
		}
		switch {
		case !kept:
		case x.run():
			if n := e.plan.Count(x.due-1, x.last); n != x.count {
				add(Miscount, "a run of %s to %s counts %d dues; the plan has %d", engine.FormatInstant(x.due), engine.FormatInstant(x.last), x.count, n)
			}
		case !derived(eras, x.due):
			add(Stray, "no definition has this due; its record says %s", x.status)
		}
	}
}

// eraOf finds the generation of a record; kept is false when its definition is
// not kept any more.
func eraOf(es []era, gen uint32) (e *era, kept bool) {
	for i := range es {
		if es[i].Generation == gen {
			return &es[i], true
		}
	}
	return &es[len(es)-1], false
}

// derived reports whether any generation has the due, whenever it was in force:
// after the clock was set back, one may have fired beyond its end. For how far
// beyond, see after.
func derived(es []era, due int64) bool {
	for i := range es {
		if es[i].plan.Hits(due) {
			return true
		}
	}
	return false
}

func (ev *evidence) holds(due int64) bool { return due >= ev.from && due < ev.to }

func (e *era) finding(kind FindingKind, due int64, detail string) Finding {
	return Finding{Kind: kind, Timer: e.ID, App: e.App, Name: e.Name, Due: due, DueLast: due, Count: 1, Detail: detail}
}
