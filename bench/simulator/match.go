package simulator

import (
	"time"

	"xtimer/engine"
)

// place is where a version is stored.
type place struct {
	id      engine.TimerID
	version uint32
}

// seen is when each version was first in an answer or a call.
func (m *machine) seen() map[place]time.Duration {
	first := map[place]time.Duration{}
	see := func(p place, at time.Duration) {
		if was, ok := first[p]; !ok || at < was {
			first[p] = at
		}
	}
	for _, rs := range m.asked {
		for _, r := range rs {
			if r.state == done && r.view.Timer != nil {
				see(place{r.view.ID, r.view.Version}, r.answered)
			}
		}
	}
	for _, c := range m.calls {
		see(place{c.key.Timer, c.version}, c.at)
	}
	return first
}

// acknowledged are the requests that were answered, by what they made.
type acknowledged struct {
	versions map[place]*request
	deletes  map[engine.TimerID]*request
}

func (m *machine) acknowledged() acknowledged {
	a := acknowledged{map[place]*request{}, map[engine.TimerID]*request{}}
	for _, rs := range m.asked {
		for _, r := range rs {
			if r.state != done || r.same || r.view.Timer == nil {
				continue
			}
			switch r.Kind {
			case Create, Put, Patch, Disable, Enable:
				a.versions[place{r.view.ID, r.view.Version}] = r
			case Delete:
				a.deletes[r.view.ID] = r
			}
		}
	}
	return a
}

// match finds out who asked for each version.
func (m *machine) match(lives []engine.Life) map[engine.TimerID]*timer {
	by := m.acknowledged()
	seen := m.seen()
	timers := map[engine.TimerID]*timer{}
	used := map[*request]bool{}
	for i := range lives {
		timers[lives[i].ID] = m.matchTimer(&lives[i], by, seen, used)
	}
	for p, r := range by.versions {
		m.wrong("%s: the %s at %v was acknowledged, and version %d of timer %s is not stored", r.Name, r.Kind, r.sent, p.version, p.id)
	}
	for id, r := range by.deletes {
		m.wrong("%s: the delete of %s at %v was acknowledged, and nothing of it is stored", r.Name, id, r.sent)
	}
	for _, rs := range m.asked {
		for _, r := range rs {
			m.extra(timers, r)
		}
	}
	m.sortCalls(timers)
	return timers
}

// matchTimer takes the requests of a timer out of by.
func (m *machine) matchTimer(l *engine.Life, by acknowledged, seen map[place]time.Duration, used map[*request]bool) *timer {
	t := &timer{
		id: l.ID, deleted: l.Deleted, end: by.deletes[l.ID],
		manual: map[int64]*request{}, redriven: map[int64]int{}, calls: map[int64][]*call{}, must: map[int64]bool{},
	}
	for i, v := range l.Versions {
		r := by.versions[place{l.ID, v.Version}]
		if r == nil {
			r = m.guessVersion(l, i, seen, used)
		}
		delete(by.versions, place{l.ID, v.Version})
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
		if t.end = m.guess(name, used, t.deleted, m.since(), func(k Kind) bool { return k == Delete }); t.end == nil {
			m.wrong("%s: timer %s is deleted, and nobody asked for it", name, l.ID)
		}
	}
	if t.deleted == 0 && t.end != nil {
		m.wrong("%s: the delete of timer %s was acknowledged, and it stands", t.end.Name, l.ID)
	}
	delete(by.deletes, l.ID)
	t.split()
	return t
}

// guessVersion finds the request of unknown outcome that may have made version i of l.
func (m *machine) guessVersion(l *engine.Life, i int, seen map[place]time.Duration, used map[*request]bool) *request {
	v := l.Versions[i]
	before := m.since()
	for _, later := range l.Versions[i:] {
		if at, ok := seen[place{l.ID, later.Version}]; ok {
			before = min(before, at)
		}
	}
	return m.guess(v.Name, used, v.UpdatedAt, before, func(k Kind) bool {
		disabled := v.Reason != ""
		fits := k != Enable && k != Disable || disabled == (k == Disable)
		return fits && k <= Enable && k != Delete && (v.Version == 1) == (k == Create || k == Put && v.Version == 1)
	})
}

// sortCalls gives the calls, and the keys that were refused, to their timers.
func (m *machine) sortCalls(timers map[engine.TimerID]*timer) {
	for _, c := range m.calls {
		t := timers[c.key.Timer]
		if t == nil {
			m.wrong("%s: called for %s, which is no timer", c.name, c.key)
			continue
		}
		t.calls[c.key.Due] = append(t.calls[c.key.Due], c)
	}
	for _, k := range m.refused {
		if t := timers[k.Timer]; t != nil {
			t.refused = append(t.refused, k.Due)
		}
	}
}

// guess finds the request of unknown outcome that may have made a version: one of those
// sent before it was seen, and nearest to the instant that it bears, which may be that
// of a clock that was set back.
func (m *machine) guess(name string, used map[*request]bool, at int64, before time.Duration, fits func(Kind) bool) *request {
	var best *request
	distance := int64(0)
	for _, r := range m.asked[name] {
		if r.state != unknown || used[r] || r.sent > before || !fits(r.Kind) {
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
