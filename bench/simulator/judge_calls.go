package simulator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"xtimer/engine"
)

// holdCalls holds the calls of a timer against what only its versions tell.
func (m *machine) holdCalls(t *timer) {
	for due, calls := range t.calls {
		slices.SortStableFunc(calls, func(a, b *call) int { return int(a.at - b.at) })
		for _, c := range calls {
			bad := func(format string, args ...any) {
				m.wrong("%s: the call of %s at %v, attempt %d: %s", t.name(), stamp(due), c.at, c.attempt, fmt.Sprintf(format, args...))
			}
			m.holdVersion(t, c, bad)
			m.holdMisfire(t, c, bad)
		}
	}
}

// holdOverlap: of a timer that does not allow it no two tasks are busy at once. A
// task is busy from its first attempt to its last answer.
func (m *machine) holdOverlap(t *timer) {
	if t.all(func(v version) bool { return v.Overlap == engine.OverlapAllow }) ||
		!t.all(func(v version) bool { return v.Overlap != engine.OverlapAllow }) {
		return
	}
	type span struct {
		first    *call
		from, to int // see call.began
	}
	var busy []span
	for _, calls := range t.calls { // sorted by holdCalls
		for i, c := range calls {
			end := c.over
			if end == 0 { // as long as its process lived
				end = math.MaxInt
			}
			if i > 0 && calls[i-1].life == c.life && c.attempt == calls[i-1].attempt+1 && t.redriven[c.key.Due] == 0 && len(t.unsure) == 0 {
				busy[len(busy)-1].to = end
				continue
			}
			busy = append(busy, span{c, c.began, end})
		}
	}
	slices.SortFunc(busy, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i, b := range busy {
		for _, a := range busy[:i] {
			if a.first.sameHolder(b.first) && a.first.key != b.first.key && b.from < a.to {
				m.wrong("%s: the call of %s at %v comes while %s is busy, since %v", t.name(), stamp(b.first.key.Due), b.first.at,
					stamp(a.first.key.Due), a.first.at)
			}
		}
	}
}

// sameHolder reports whether two calls are of one life, which has held the shard since the
// first one.
func (c *call) sameHolder(d *call) bool { return c.life == d.life && c.fence == d.fence }

// holdOrder: tasks of a timer that wait for each other have their first attempts in the
// order of their dues, in each life and generation. The order is not held over steps back
// of the clock, nor for what somebody asked for: that is due when it was asked for.
func (m *machine) holdOrder(t *timer) {
	if m.back() || m.wasSet || !t.all(func(v version) bool { return v.Overlap == engine.OverlapQueue }) {
		return
	}
	var firsts []*call
	for due, calls := range t.calls {
		for _, c := range calls {
			if c.attempt == 1 && !c.redelivered && t.manual[due] == nil && t.redriven[due] == 0 && len(t.unsure) == 0 {
				firsts = append(firsts, c)
			}
		}
	}
	slices.SortFunc(firsts, func(a, b *call) int { return cmp.Compare(a.began, b.began) })
	for i := 1; i < len(firsts); i++ {
		if a, b := firsts[i-1], firsts[i]; a.sameHolder(b) && a.generation == b.generation && b.key.Due < a.key.Due {
			m.wrong("%s: %s was first called at %v, after %s, which was due later", t.name(), stamp(b.key.Due), b.at, stamp(a.key.Due))
		}
	}
}

// asked reports whether anybody asked for a due.
func (t *timer) asked(due int64) bool {
	return t.manual[due] != nil || t.doubtfulRun(due) || slices.ContainsFunc(t.eras, func(e *era) bool { return e.has(due) })
}

// doubtfulRun reports whether a due is, or may be, of a run by hand that was not acknowledged.
func (t *timer) doubtfulRun(due int64) bool {
	if r := t.manual[due]; r != nil {
		return r.state != done
	}
	return slices.ContainsFunc(t.unsure, func(r *request) bool { return r.Kind == Run && r.about(due) })
}

// holdVersion: a call is of the definition in force when it starts (L3, L6).
func (m *machine) holdVersion(t *timer, c *call, bad func(string, ...any)) {
	for _, v := range t.versions {
		switch {
		case v.by == nil:
		case v.Version == c.version && c.at < v.by.sent:
			bad("version %d was asked for only at %v", v.Version, v.by.sent)
		case v.Version > c.version && v.by.state == done && c.at > v.by.answered:
			bad("it is of version %d, and version %d was acknowledged at %v", c.version, v.Version, v.by.answered)
		}
	}
	if r := t.end; r != nil && r.state == done && c.at > r.answered {
		bad("its delete was acknowledged at %v: %s", r.answered, r.deleted)
	}
}

// holdMisfire: what a timer wants skipped is not called, when it was found late
// by a start or a step of the clock. A due that a pause holds then is no misfire.
func (m *machine) holdMisfire(t *timer, c *call, bad func(string, ...any)) {
	due := c.key.Due
	if !t.skipsLate(due) {
		return
	}
	if c.wall.UnixMilli()-due < late && !m.forward(end{}) {
		return // found late, and then, by a clock that was set back, in time
	}
	if c.attempt > 1 {
		return // it was begun before, and goes on
	}
	for _, x := range m.ended {
		if x.at < c.at && m.finds(x, due) && !m.mayBePaused(t, x.up) {
			bad("it was found %v late by a start, and its timer skips such", time.Duration(x.upWall-due)*time.Millisecond)
		}
	}
	since := t.has(due)
	for _, s := range m.steps {
		if since <= s.at && s.at < c.asked && s.from < due && due < s.to-late && !m.reached(due, s.at) && !m.asleep(s) && !m.mayBePaused(t, s.at) {
			bad("a step of the clock made it %v late, and its timer skips such", time.Duration(s.to-due)*time.Millisecond)
		}
	}
}

// late is a second more than it takes to be a misfire (ms).
const late = 11_000

// finds reports whether the start after the end of a life found a due late that came while no process ran.
func (m *machine) finds(x end, due int64) bool {
	return x.upWall != 0 && x.wall < due && due < x.upWall-late && m.forward(x) && !m.reached(due, x.at)
}

// skipsLate reports whether a timer wants a due skipped that is found late, and nobody
// asked for it besides.
func (t *timer) skipsLate(due int64) bool {
	skips := t.all(func(v version) bool { return v.Misfire.Policy == engine.MisfireSkip && !v.Schedule.OneShot() })
	caught := slices.ContainsFunc(t.eras, func(e *era) bool { return slices.Contains(e.caught, due) })
	return skips && !caught && t.manual[due] == nil && len(t.unsure) == 0 && t.redriven[due] == 0
}

// has is since when a timer has a due: from before that no step of the clock made it late.
func (t *timer) has(due int64) (since time.Duration) {
	for _, e := range slices.Backward(t.eras) {
		if e.has(due) && (e.endWall == 0 || due <= e.endWall) {
			if since = 0; e.start != nil {
				since = e.start.sent
			}
		}
	}
	return since
}
