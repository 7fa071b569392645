package simulator

import (
	"cmp"
	"slices"

	"xtimer/bench/checker"
	"xtimer/engine"
)

// version is one version of a timer that was stored, and who asked for it.
type version struct {
	*engine.Timer
	by *request // nil: nobody knows
}

// timer is the life of one timer, as it is stored in the end.
type timer struct {
	id       engine.TimerID
	versions []version
	deleted  int64    // Unix ms; 0: it stands
	end      *request // its delete
	eras     []*era
	manual   map[int64]*request // dues that a run made, by key
	unsure   []*request         // runs of which nobody knows
	redriven map[int64]int      // how often
	calls    map[int64][]*call  // by due
	records  []*engine.Task     // by due
	blocked  bool               // see waits
	blocker  int64              // the due that it waits for
	rests    map[int64]bool     // see remains.resting
}

// era is the time of one generation: which dues there are.
type era struct {
	timer      *timer
	first      version // with it, it began
	last       version // as it was in the end
	countFrom  int64   // max_runs counts from here
	fresh      bool    // its schedule was given anew
	start, end *request
	endWall    int64 // when its end was asked for; 0: it stands
	caught     []int64
	catchMust  int64 // the one of them that has to be called; 0: none
}

// split splits a life into generations.
func (t *timer) split() {
	for i, v := range t.versions {
		if i > 0 && t.versions[i-1].Generation == v.Generation {
			t.eras[len(t.eras)-1].last = v
			continue
		}
		e := &era{timer: t, first: v, last: v, start: v.by, countFrom: v.UpdatedAt}
		if v.Reason == "" { // after the clock was set back dues count from the last that was taken
			e.countFrom = max(v.UpdatedAt, v.ValidFrom)
		}
		if i == 0 {
			e.fresh = true
		} else {
			was := t.versions[i-1]
			e.fresh = (was.Schedule != v.Schedule || was.At != v.At) && v.ValidFrom <= v.UpdatedAt
			before := t.eras[len(t.eras)-1]
			before.end, before.endWall = v.by, v.UpdatedAt
			if v.by != nil {
				before.endWall = min(before.endWall, v.by.sentWall)
				if v.by.Kind == Disable {
					e.countFrom = before.countFrom
				}
			}
		}
		t.eras = append(t.eras, e)
	}
	if n := len(t.eras); n > 0 && t.deleted != 0 {
		e := t.eras[n-1]
		e.end, e.endWall = t.end, t.deleted
		if t.end != nil {
			e.endWall = min(e.endWall, t.end.sentWall)
		}
	}
	for i, e := range t.eras {
		if e.start != nil && e.start.Kind == Enable && e.start.CatchUp != engine.CatchUpNone && i > 0 {
			t.catchUp(i)
		}
	}
}

// countOn: a schedule that was given while its timer was disabled until an instant, after
// the clock was set back, counts its max_runs from the last due that was called before.
func (t *timer) countOn() {
	for _, e := range t.eras {
		v := e.first
		if v.by == nil || v.by.Kind > Patch || v.Reason == "" || v.ValidFrom <= v.UpdatedAt {
			continue
		}
		for due, cs := range t.calls {
			if slices.ContainsFunc(cs, func(c *call) bool { return c.at <= v.by.answered }) {
				e.countFrom = max(e.countFrom, due)
			}
		}
	}
}

// catchUp are the dues that an enable brings back: those since the timer was
// disabled, or got its schedule if that was later.
func (t *timer) catchUp(i int) {
	e := t.eras[i]
	if e.first.ValidFrom > e.first.UpdatedAt {
		return // the clock was set back, and all that is past was decided before
	}
	since := t.eras[i-1].since()
	for j := i - 1; j > 0; j-- {
		a, b := t.eras[j-1], t.eras[j]
		if a.last.Schedule != b.first.Schedule || !a.disabled() || a.first.Status != engine.Disabled && a.first.ValidFrom <= b.first.UpdatedAt {
			break // until then it was disabled, and no longer
		}
		since = a.since()
	}
	ds := t.eras[i-1].between(since, e.first.UpdatedAt) // its max_runs count from before
	e.caught = ds
	if len(ds) > 0 {
		e.catchMust = ds[len(ds)-1]
	}
}

// since is when an era began. A version's UpdatedAt may be ahead of a clock that was
// set back; the ValidFrom of one that is disabled for good is not.
func (e *era) since() int64 {
	if e.first.Status == engine.Disabled {
		return e.first.ValidFrom
	}
	return e.first.UpdatedAt
}

func (e *era) disabled() bool {
	until := e.first.Reason != "" && e.first.ValidFrom > e.first.UpdatedAt // also when it was changed meanwhile
	return e.first.Status == engine.Disabled || e.start != nil && e.start.Kind == Disable || until
}

// between are the dues that the schedule of an era has in (after, to], by brute force.
func (e *era) between(after, to int64) []int64 {
	s := e.last.Schedule
	c := checker.Schedule{
		Cron: s.Cron, TimeZone: s.TimeZone, Every: s.Every.Milliseconds(), At: s.At, MaxRuns: s.MaxRuns, StartAt: s.StartAt, EndAt: s.EndAt,
	}
	if s.HasDelay {
		c.At = e.last.At
	}
	ds, err := c.Dues(e.countFrom, e.last.CreatedAt, after, to)
	if err != nil {
		panic("BUG: the oracle does not know a schedule of the script: " + err.Error())
	}
	return ds
}

// dues are all dues of an era up to an instant, in order.
func (e *era) dues(to int64) []int64 {
	if e.first.Status == engine.Disabled {
		return nil
	}
	if e.endWall != 0 {
		to = min(to, e.endWall)
	}
	var ds []int64
	if s := e.last.Schedule; s.OneShot() && e.last.At <= min(to, e.first.ValidFrom) && e.fresh {
		ds = append(ds, e.last.At)
	}
	return append(ds, e.between(e.first.ValidFrom, to)...)
}

// has tells whether a due is one of an era's.
func (e *era) has(due int64) bool {
	if e.first.Status == engine.Disabled {
		return false
	}
	if e.last.Schedule.OneShot() && e.last.At == due && (e.fresh || due > e.first.ValidFrom) {
		return true
	}
	return due > e.first.ValidFrom && len(e.between(due-1, due)) > 0 || slices.Contains(e.caught, due)
}

// match finds out who asked for each version.
func (m *machine) match(lives []engine.Life) map[engine.TimerID]*timer {
	type place struct {
		id      engine.TimerID
		version uint32
	}
	by := map[place]*request{}
	deletes := map[engine.TimerID]*request{}
	for _, rs := range m.asked {
		for _, r := range rs {
			if r.state != done || r.same || r.view.Timer == nil {
				continue
			}
			switch r.Kind {
			case Create, Put, Patch, Disable, Enable:
				by[place{r.view.ID, r.view.Version}] = r
			case Delete:
				deletes[r.view.ID] = r
			}
		}
	}
	timers := map[engine.TimerID]*timer{}
	used := map[*request]bool{}
	for i := range lives {
		l := &lives[i]
		t := &timer{
			id: l.ID, deleted: l.Deleted, end: deletes[l.ID],
			manual: map[int64]*request{}, redriven: map[int64]int{}, calls: map[int64][]*call{},
		}
		timers[l.ID] = t
		for _, v := range l.Versions {
			r := by[place{l.ID, v.Version}]
			if r == nil {
				r = m.guess(v.Name, used, v.UpdatedAt, func(k Kind) bool {
					disabled := v.Reason != ""
					fits := k != Enable && k != Disable || disabled == (k == Disable)
					return fits && k <= Enable && k != Delete && (v.Version == 1) == (k == Create || k == Put && v.Version == 1)
				})
			}
			delete(by, place{l.ID, v.Version})
			if r == nil {
				m.wrong("%s: version %d of timer %s is stored, and nobody asked for it", v.Name, v.Version, l.ID)
			}
			t.versions = append(t.versions, version{v, r})
			if r != nil && r.state == done {
				m.same(r, v)
			}
		}
		if t.deleted != 0 && t.end == nil && len(t.versions) > 0 {
			name := t.versions[0].Name
			if t.end = m.guess(name, used, t.deleted, func(k Kind) bool { return k == Delete }); t.end == nil {
				m.wrong("%s: timer %s is deleted, and nobody asked for it", name, l.ID)
			}
		}
		if t.deleted == 0 && t.end != nil {
			m.wrong("%s: the delete of timer %s was acknowledged, and it stands", t.end.Name, l.ID)
		}
		delete(deletes, l.ID)
		t.split()
	}
	for p, r := range by {
		m.wrong("%s: the %s at %v was acknowledged, and version %d of timer %s is not stored", r.Name, r.Kind, r.sent, p.version, p.id)
	}
	for id, r := range deletes {
		m.wrong("%s: the delete of %s at %v was acknowledged, and nothing of it is stored", r.Name, id, r.sent)
	}
	for _, rs := range m.asked {
		for _, r := range rs {
			m.extra(timers, r)
		}
	}
	for _, c := range m.calls {
		t := timers[c.key.Timer]
		if t == nil {
			m.wrong("%s: called for %s, which is no timer", c.name, c.key)
			continue
		}
		t.calls[c.key.Due] = append(t.calls[c.key.Due], c)
	}
	for _, t := range timers {
		t.countOn()
	}
	return timers
}

// guess finds the request of unknown outcome that may have made a version.
func (m *machine) guess(name string, used map[*request]bool, at int64, fits func(Kind) bool) *request {
	var best *request
	distance := int64(0)
	for _, r := range m.asked[name] {
		if r.state != unknown || used[r] || !fits(r.Kind) {
			continue
		}
		d := max(r.sentWall-at, at-r.answeredWall, 0)
		if best == nil || d < distance {
			best, distance = r, d
		}
	}
	if best != nil {
		used[best] = true
	}
	return best
}

// same holds what is stored against what was acknowledged.
func (m *machine) same(r *request, v *engine.Timer) {
	if !v.Definition.Equal(&r.view.Definition) || v.ValidFrom != r.view.ValidFrom || v.At != r.view.At || v.LastDue != r.view.LastDue {
		m.wrong("%s: version %d is stored other than it was acknowledged", r.Name, v.Version)
	}
	if v.UpdatedAt < m.earliest(r.sent, r.sentWall, r.answered) {
		m.wrong("%s: version %d is of %s, and was asked for at %s", r.Name, v.Version, stamp(v.UpdatedAt), stamp(r.sentWall))
	}
	asked := r.Definition
	switch r.Kind {
	case Create, Put:
		if !v.Definition.Equal(&asked) {
			m.wrong("%s: version %d is not the definition that was put", r.Name, v.Version)
		}
	default:
		return
	}
	if asked.Schedule.HasDelay && v.At != v.UpdatedAt+asked.Schedule.Delay.Milliseconds() && v.Version == 1 {
		m.wrong("%s: a delay of %v from %s became %s", r.Name, asked.Schedule.Delay, stamp(v.UpdatedAt), stamp(v.At))
	}
}

// extra notes dues that are no schedule's.
func (m *machine) extra(timers map[engine.TimerID]*timer, r *request) {
	if r.Kind != Run && r.Kind != Retry || r.state == refused {
		return
	}
	if r.key != (engine.Key{}) {
		t := timers[r.key.Timer]
		if t == nil {
			m.wrong("%s: %s of a timer that is not stored", r.Name, r.Kind)
			return
		}
		if r.Kind == Run {
			t.manual[r.key.Due] = r
		} else {
			t.redriven[r.key.Due]++
		}
		return
	}
	for _, t := range timers {
		if len(t.versions) > 0 && t.versions[0].Name == r.Name {
			t.unsure = append(t.unsure, r)
		}
	}
}

func byDue(a, b *engine.Task) int { return cmp.Compare(a.Key.Due, b.Key.Due) }
