package simulator

import (
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

// complete: every due that had to be called has a record, in each generation; what the
// record may say is the checker's.
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
			case k.Status.Final() || !t.rests[due]:
				t.must[due] = true
			}
		}
	}
	for due, r := range t.manual {
		if r.state == done && due <= upTo && !t.blocked {
			t.must[due] = true
			if t.final(due, 0) == nil {
				m.wrong("%s: the run of %s was acknowledged, and has no record", t.name(), stamp(due))
			}
		}
	}
}

// holdRecords: there is one record of a due, and as much as the store knows of its timer
// it says as well.
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
		// Of dues that were found late the latest is called, unless the timer skips all.
		skips := slices.ContainsFunc(t.versions, func(v version) bool { return v.Misfire.Policy == engine.MisfireSkip })
		if k.Reason == engine.ReasonMisfire && !skips && e.end == nil && len(e.between(max(due, k.DueLast), m.latest())) == 0 {
			bad("it was the latest")
		}
	}
}
