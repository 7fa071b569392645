package simulator

import (
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

// complete: every due that had to be called has one final record (L1).
func (m *machine) complete(t *timer, upTo int64) {
	for _, e := range t.eras {
		must := e.dues(upTo)
		if e.catchMust != 0 && e.start.state == done {
			must = append(must, e.catchMust)
		}
		for _, due := range must {
			k := t.final(due, e.first.Generation)
			switch {
			case due > upTo && (k == nil || !k.Status.Final()): // the clock was set back before it
			case k == nil && t.blocked && due > t.blocker:
			case k == nil:
				m.wrong("%s: due %s (generation %d) is lost: %d calls, and no record", t.name(), stamp(due), e.first.Generation, len(t.calls[due]))
			case !k.Status.Final() && !t.rests[due]:
				m.wrong("%s: due %s is %s still", t.name(), stamp(due), k.Status)
			}
		}
	}
	for due, r := range t.manual {
		if k := t.final(due, 0); r.state == done && due <= upTo && !t.blocked && (k == nil || !k.Status.Final()) {
			m.wrong("%s: the run of %s was acknowledged, and has no end", t.name(), stamp(due))
		}
	}
}

// holdRecords: what a record says is what happened.
func (m *machine) holdRecords(t *timer, upTo int64, out *Outcome) {
	for i, k := range t.records {
		due := k.Key.Due
		bad := func(format string, args ...any) {
			m.wrong("%s: the record of %s says %s %s: %s", t.name(), stamp(due), k.Status, k.Reason, fmt.Sprintf(format, args...))
		}
		last := fmt.Sprintf("%s %v", t.name(), time.Duration(due-m.begin.UnixMilli())*time.Millisecond)
		if k.Count > 1 {
			last += fmt.Sprintf(" to %v ×%d", time.Duration(k.DueLast-m.begin.UnixMilli())*time.Millisecond, k.Count)
		}
		if due <= upTo { // else it may be as well that it does not come any more
			out.Final = append(out.Final, last+" "+k.Status.String()+" "+k.Reason)
		}
		if i > 0 && t.records[i-1].Key.Due == due {
			bad("there are two")
		}
		e := t.eraOf(k.Generation)
		if e == nil {
			bad("generation %d is not stored", k.Generation)
			continue
		}
		if k.App != t.versions[0].App || k.Name != t.name() {
			bad("it is of %q/%q", k.App, k.Name)
		}
		if n := int64(len(e.between(due-1, max(due, k.DueLast)))); k.Count > 1 && k.Count != n {
			bad("it is of %d dues, and the timer has %d from then to %s", k.Count, n, stamp(k.DueLast))
		}
		m.holdStatus(t, e, k, bad)
	}
}

// holdStatus: what a record says became of a due is what its calls came to.
func (m *machine) holdStatus(t *timer, e *era, k *engine.Task, bad func(string, ...any)) {
	calls := t.calls[k.Key.Due]
	taken := slices.ContainsFunc(calls, func(c *call) bool { return c.answer.class == engine.ClassOK })
	answered := func(classes ...engine.Class) bool {
		return slices.ContainsFunc(calls, func(c *call) bool { return slices.Contains(classes, c.answer.class) })
	}
	amo := e.atMostOnce()
	switch k.Status {
	case engine.Succeeded:
		if !taken {
			bad("its target took none of %d calls", len(calls))
		}
	case engine.Failed:
		if !answered(engine.ClassRejected) && !(amo && answered(engine.ClassRetry)) {
			bad("its target did not reject it")
		}
	case engine.Dead:
		switch n := k.LastAttempt() - k.Base; {
		case k.Reason == engine.ReasonAge:
		case k.Reason == engine.ReasonStale:
			m.holdStale(t, k, bad)
		case n < e.fewest():
			bad("after %d attempts", n)
		}
	case engine.Unknown:
		if !amo {
			bad("it is at least once")
		}
	case engine.Cancelled:
		if e.end == nil {
			bad("generation %d is in force", k.Generation)
		}
	case engine.Skipped, engine.Missed:
		m.holdSkipped(t, e, k, bad)
	}
	if taken && k.Status != engine.Succeeded && !m.forgot(t, calls) {
		bad("its target took it")
	}
}

// holdSkipped: a due is not called for a reason that its timer has given.
func (m *machine) holdSkipped(t *timer, e *era, k *engine.Task, bad func(string, ...any)) {
	overlap := func(o engine.Overlap) bool {
		return slices.ContainsFunc(t.versions, func(v version) bool { return v.Overlap == o })
	}
	policy := func(p engine.MisfirePolicy) bool {
		return slices.ContainsFunc(t.versions, func(v version) bool { return v.Misfire.Policy == p })
	}
	last := max(k.Key.Due, k.DueLast)
	switch k.Reason {
	case engine.ReasonOverlap:
		if !overlap(engine.OverlapSkip) {
			bad("its timer does not skip")
		}
	case engine.ReasonQueueFull:
		if !overlap(engine.OverlapQueue) {
			bad("its timer does not queue")
		}
	case engine.ReasonMisfire:
		if !policy(engine.MisfireSkip) && !policy(engine.MisfireLatest) {
			bad("its timer wants all")
		}
		if !m.foundLate(last, 10*time.Second) {
			bad("nothing made it late")
		}
		if !policy(engine.MisfireSkip) && e.end == nil {
			// A later one is called in its place.
			next := e.between(last, m.latest())
			if len(next) == 0 {
				bad("it was the latest")
			}
		}
	case engine.ReasonStale:
		m.holdStale(t, k, bad)
	case engine.ReasonWindow:
		if !m.foundLate(last, 30*time.Second) {
			bad("nothing made it so late")
		}
	default:
		bad("for no reason")
	}
}

// holdStale: a task that is not called for its age has waited for as long as its timer
// says.
func (m *machine) holdStale(t *timer, k *engine.Task, bad func(string, ...any)) {
	if shortest, _ := t.staleAfter(); k.Ended-k.Since <= shortest.Milliseconds() {
		bad("it waited for %d ms, its timer waits for %v", k.Ended-k.Since, shortest)
	}
}
