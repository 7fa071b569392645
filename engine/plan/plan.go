package plan

import (
	"math"

	"xtimer/engine"
)

// Plan derives the dues of one timer: a pure function of its definition and of
// what Resolve made of it, the same on every node and after every crash. It is
// small and cheap to copy; calendars and zones behind it are shared.
//
//	due = nominal + j, 0 ≤ j < min(jitter, gap to the next nominal)
//
// and j depends on timer and nominal only, so dues strictly increase. StartAt,
// EndAt and MaxRuns judge the nominal; ValidFrom judges the due: the plan has no
// due ≤ ValidFrom. A one-shot that is due by then is not derived (it stands in
// owed from its creation on).
type Plan struct {
	cal    *calendar // of a cron spec
	every  int64     // ms, of an interval; both nil and 0: a one-shot
	start  int64     // no nominal is earlier; the first one of an interval, the only one of a one-shot
	jitter int64     // ms
	id     engine.TimerID
	from   int64 // Timer.ValidFrom
	last   int64 // Timer.LastDue, or MaxDue
}

// Of makes the plan of a timer that Resolve has seen. It fails only on a
// definition that Validate refuses.
func Of(t *engine.Timer) (Plan, error) {
	p := Plan{start: t.At, jitter: t.Schedule.Jitter.Milliseconds(), id: t.ID, from: t.ValidFrom, last: t.LastDue}
	if p.last == 0 {
		p.last = engine.MaxDue
	}
	s := &t.Schedule
	if s.OneShot() {
		return p, nil
	}
	every, is, err := interval(s)
	switch {
	case err != nil:
		return Plan{}, engine.Invalid("schedule.cron", "invalid_cron", "%v", err)
	case is && every < minEvery:
		return Plan{}, everyTooShort(s)
	case is:
		p.every, p.start = every.Milliseconds(), t.Anchor
		if s.StartAt == 0 {
			p.start += p.every
		}
		return p, nil
	}
	p.start = s.StartAt
	if p.cal, err = calendarOf(s.Cron, s.TimeZone); err != nil {
		return Plan{}, calendarFault(s, err)
	}
	return p, nil
}

// OneShot reports whether there is a single due.
func (p *Plan) OneShot() bool { return p.cal == nil && p.every == 0 }

// Next returns the first due later than both after and ValidFrom; ok is false if
// no such due exists.
func (p *Plan) Next(after int64) (due int64, ok bool) {
	due = p.next(max(after, p.from))
	return due, due <= p.last
}

// Has reports whether the instant is a due.
func (p *Plan) Has(at int64) bool {
	due, ok := p.Next(at - 1)
	return ok && due == at
}

// Hits reports whether the instant would be a due if the timer were always in
// force: Hits ignores ValidFrom and the last due.
func (p *Plan) Hits(at int64) bool { return p.next(at-1) == at }

// next is the first due > t, whatever ValidFrom and the last due are, or never.
func (p *Plan) next(t int64) int64 {
	if p.jitter == 0 {
		return p.nominal(t)
	}
	prev, next, after := p.around(t)
	if prev != math.MinInt64 {
		if d := p.due(prev, next); d > t {
			return d
		}
	}
	return p.due(next, after)
}

// nominal is the first nominal > t, or never.
func (p *Plan) nominal(t int64) int64 {
	switch {
	case p.cal != nil:
		return p.cal.next(max(t, p.start-1))
	case t < p.start:
		return p.start
	case p.every == 0 || t >= engine.MaxDue:
		return never
	}
	return capDue(p.start + ((t-p.start)/p.every+1)*p.every)
}

// around finds the last nominal ≤ t (math.MinInt64: none within the longest
// jitter) and the next two after it.
func (p *Plan) around(t int64) (prev, next, after int64) {
	prev = math.MinInt64
	if p.cal != nil && t >= p.start {
		m := p.cal.around(t)
		if m.prev >= p.start {
			prev = m.prev
		}
		return prev, m.next, m.after
	}
	next = p.nominal(t)
	if p.cal == nil && t >= p.start {
		if prev = p.start; p.every > 0 {
			prev += (t - p.start) / p.every * p.every
		}
	}
	return prev, next, p.nominal(next)
}

// due is the due of nominal n, of which next is the following nominal.
func (p *Plan) due(n, next int64) int64 {
	if n >= never || p.jitter == 0 {
		return n
	}
	return n + int64(Scatter(uint64(p.id), uint64(n))%uint64(min(p.jitter, next-n)))
}

// dueOf is the due of nominal n.
func (p *Plan) dueOf(n int64) int64 {
	if p.jitter == 0 {
		return n
	}
	return p.due(n, p.nominal(n))
}

// lastNominal is the last nominal ≤ t, or never.
func (p *Plan) lastNominal(t int64) int64 {
	switch {
	case t < p.start:
		return never
	case p.cal != nil:
		return p.cal.prev(t, max(p.start, earliest)-1)
	case p.every == 0:
		return p.start
	}
	return p.start + (t-p.start)/p.every*p.every
}

// Prev returns the last due ≤ t that the plan derives; ok is false if no such due
// exists.
func (p *Plan) Prev(t int64) (due int64, ok bool) {
	n := p.lastNominal(min(t, p.last))
	if n == never {
		return 0, false
	}
	if due = p.dueOf(n); due > min(t, p.last) { // its jitter takes it beyond t
		if n = p.lastNominal(n - 1); n == never {
			return 0, false
		}
		due = p.dueOf(n)
	}
	return due, due > p.from
}

// Count returns the number of dues in (from, to].
func (p *Plan) Count(from, to int64) int64 {
	_, _, n := p.Run(from, to)
	return n
}

// Run returns the first due, the last due and the number of dues in (from, to]. It
// takes constant time for an interval, and a few steps for each day that is due for a
// calendar.
func (p *Plan) Run(from, to int64) (first, last, n int64) {
	first, ok := p.Next(from)
	if !ok || first > to {
		return 0, 0, 0
	}
	last, ok = p.Prev(to)
	if !ok || last < first {
		return 0, 0, 0
	}
	// The nominals of these two, and all in between.
	a, b := p.nominalOf(first), p.nominalOf(last)
	switch {
	case p.cal != nil:
		n = p.cal.count(a-1, b)
	case p.every == 0:
		n = 1
	default:
		n = (b-a)/p.every + 1
	}
	return first, last, n
}

// nominalOf is the nominal behind a due.
func (p *Plan) nominalOf(due int64) int64 {
	if p.jitter == 0 {
		return due
	}
	n, _, _ := p.around(due)
	return n
}

// Scatter hashes two numbers with the finaliser of splitmix64 (Steele, Lea,
// Flood 2014): every bit of them decides every bit of the result.
func Scatter(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 + b
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
