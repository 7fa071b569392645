package verify

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

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
