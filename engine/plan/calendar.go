package plan

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"xtimer/engine"
)

// calendar is a cron spec in a time zone: a sequence of nominal dues in Unix ms.
//
// When clocks change, the rule is this. A spec with fixed hours is due once for
// each time of day that it names: one that the clock skips is due right after
// the gap (several that fall into one gap are due once), one that comes twice
// is due the first time. A spec with a wildcard hour follows elapsed time: it is
// due at each instant at which the wall shows a matching reading.
//
// Calendars are interned, one a zone and spec while any Plan uses it, and
// remember what they last computed: a million timers of one spec cost one
// computation an instant.
type calendar struct {
	spec   cronSpec
	zone   *zone
	blocks [3]block
	memo   [4]atomic.Pointer[triple]
	turn   atomic.Uint32
}

type calendarKey struct{ zone, spec string }

// calendars holds weak pointers, so that specs nobody uses any more, however
// many were tried, take no memory.
var calendars struct {
	sync.RWMutex
	m map[calendarKey]weak.Pointer[calendar]
}

// calendarOf finds or makes the calendar of a spec in a zone.
func calendarOf(spec, tz string) (*calendar, error) {
	k := calendarKey{tz, spec}
	calendars.RLock()
	c := calendars.m[k].Value()
	calendars.RUnlock()
	if c != nil {
		return c, nil
	}
	z, err := zoneOf(tz)
	if err != nil {
		return nil, err
	}
	s, err := parseCron(spec)
	if err != nil {
		return nil, err
	}
	calendars.Lock()
	defer calendars.Unlock()
	if c = calendars.m[k].Value(); c != nil {
		return c, nil
	}
	if calendars.m == nil {
		calendars.m = map[calendarKey]weak.Pointer[calendar]{}
	}
	c = &calendar{spec: s, zone: z, blocks: s.blocks()}
	k = calendarKey{strings.Clone(tz), strings.Clone(spec)}
	p := weak.Make(c)
	calendars.m[k] = p
	runtime.AddCleanup(c, func(k calendarKey) {
		calendars.Lock()
		defer calendars.Unlock()
		if calendars.m[k] == p { // not made anew meanwhile
			delete(calendars.m, k)
		}
	}, k)
	return c, nil
}

// triple is three neighbouring nominals. For an instant t with from ≤ t < next,
// next is the first nominal after t; prev is the last one up to t.
type triple struct {
	from, next int64
	// prev and after are known only if full; prev is math.MinInt64 if there was
	// none within maxJitter.
	full        bool
	prev, after int64
}

// next is the first nominal after t, or never; both in Unix ms.
func (c *calendar) next(t int64) int64 {
	if t >= engine.MaxDue {
		return never
	}
	for i := range c.memo {
		if m := c.memo[i].Load(); m != nil && m.from <= t {
			if t < m.next {
				return m.next
			}
			if t < m.after {
				return m.after
			}
		}
	}
	n := c.compute(t)
	c.remember(&triple{from: t, next: n})
	return n
}

func (c *calendar) remember(m *triple) {
	c.memo[c.turn.Add(1)%uint32(len(c.memo))].Store(m)
}

// around is the triple about t, whole.
func (c *calendar) around(t int64) triple {
	var m triple
	for i := range c.memo {
		if o := c.memo[i].Load(); o != nil && o.full && o.from <= t && t < o.after {
			if t < o.next {
				return *o
			}
			m = triple{from: o.next, prev: o.next, next: o.after, full: true}
			break
		}
	}
	if !m.full {
		m = triple{from: t, prev: math.MinInt64, next: c.compute(t), full: true}
		if p := c.prev(t, t-maxJitter.Milliseconds()); p != never {
			m.from, m.prev = p, p
		}
	}
	m.after = c.compute(m.next)
	kept := m // m itself stays on the stack
	c.remember(&kept)
	return m
}

// compute finds the first nominal after t anew.
func (c *calendar) compute(t int64) int64 {
	if t >= engine.MaxDue {
		return never
	}
	s := floorDiv(t, 1000)
	if c.spec.fixedHour {
		if w := c.spec.next(c.zone.reached(s)); w != never {
			return capDue(c.zone.first(w) * 1000)
		}
		return never
	}
	for s++; ; { // the first match at s or later
		p := c.zone.at(s)
		w := c.spec.next(s + p.off - 1)
		if w == never {
			return never
		}
		if w-p.off < p.end {
			return capDue((w - p.off) * 1000)
		}
		// Nothing until this period ends; and nothing until shortly before w,
		// if all readings that a change can repeat have been looked at.
		if s+slack <= p.end {
			s = max(p.end, w-slack)
		} else {
			s = p.end
		}
	}
}

// prev is the last nominal with floor < nominal ≤ t, or never.
func (c *calendar) prev(t, floor int64) int64 {
	for i := range c.memo {
		if m := c.memo[i].Load(); m != nil && m.full && m.from == m.prev && m.from <= t && t < m.next && m.prev > floor {
			return m.prev
		}
	}
	for back := int64(1000); ; back *= 2 {
		from := max(t-back, floor)
		if c.compute(from) <= t {
			last, _, _ := c.walk(from, t, math.MaxInt64, math.MaxInt)
			next := c.compute(t)
			c.remember(&triple{from: last, prev: last, next: next, after: c.compute(next), full: true})
			return last
		}
		if from == floor {
			return never
		}
	}
}

// walk counts the nominals in (from, to], up to n of them, and finds the last
// one counted. It takes whole days, hours and minutes in one step; ok is false
// if it needed more than the given steps.
func (c *calendar) walk(from, to, n int64, steps int) (last, count int64, ok bool) {
	last = never
	for count < n {
		d := c.compute(from)
		if d > to {
			break
		}
		if steps--; steps < 0 {
			return last, count, false
		}
		end, k := c.whole(d, to, n-count)
		last, from = end, end
		count += k
	}
	return last, count, true
}

// whole finds the longest block of which d is the first nominal and that can be
// taken whole: k nominals up to end ≤ to, k ≤ n. At least it is d alone.
func (c *calendar) whole(d, to, n int64) (end, k int64) {
	s := d / 1000
	p := c.zone.at(s)
	for i := range c.blocks {
		b := &c.blocks[i]
		start := s - b.first
		if b.count > n || (s+p.off)%b.length != b.first || (start+b.last)*1000 > to {
			continue
		}
		// No change of the clock has to do with it: neither within nor, for fixed
		// hours, right before (d may stand for what was skipped) or by time that
		// comes again.
		if p.start <= start && start+b.length <= p.end &&
			(!c.spec.fixedHour || p.start < start && c.zone.reached(start) == start+p.off) {
			return (start + b.last) * 1000, b.count
		}
	}
	return d, 1
}

func capDue(t int64) int64 {
	if t > engine.MaxDue {
		return never
	}
	return t
}

// floorDiv is a / b rounded down, b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
