package plan

import (
	"math/bits"
	"time"

	"xtimer/engine"
)

// count is the number of nominals in (from, to], both in Unix ms. It costs some steps
// for each change of the zone's clock in between, and for a spec that names days or
// months a bit test for each day: a year of a minute spec takes a microsecond.
func (c *calendar) count(from, to int64) (n int64) {
	a, b := floorDiv(from, 1000), floorDiv(min(to, engine.MaxDue), 1000)
	if b <= a {
		return 0
	}
	if c.spec.fixedHour {
		return c.countOnce(a, b)
	}
	for p := c.zone.at(a); ; p = c.zone.at(p.end) {
		end := min(b, p.end-1)
		n += c.spec.count(a+p.off, end+p.off)
		if a = end; a == b {
			return n
		}
	}
}

// countOnce counts for a spec with fixed hours in (a, b], in seconds: each reading
// that the wall first reached then, and those that it skipped together once.
func (c *calendar) countOnce(a, b int64) int64 {
	n := c.spec.count(c.zone.reached(a), c.zone.reached(b))
	for at := c.zone.at(a).end; at <= b; at = c.zone.at(at).end {
		if skipped := c.spec.count(c.zone.reached(at-1), c.zone.reached(at)); skipped > 1 {
			n -= skipped - 1
		}
	}
	return n
}

const daySeconds = 24 * 60 * 60

// count is the number of matching readings in (a, b].
func (s *cronSpec) count(a, b int64) int64 {
	if b <= a {
		return 0
	}
	dayA, dayB := floorDiv(a, daySeconds), floorDiv(b, daySeconds)
	n := s.countDays(dayA, dayB) * s.within(daySeconds-1)
	if s.countDays(dayA, dayA+1) > 0 {
		n -= s.within(a - dayA*daySeconds)
	}
	if s.countDays(dayB, dayB+1) > 0 {
		n += s.within(b - dayB*daySeconds)
	}
	return n
}

// within is the number of matching times of a day from midnight to the second t of it.
func (s *cronSpec) within(t int64) int64 {
	below := func(set uint64, n int64) int64 { return int64(bits.OnesCount64(set &^ cronStar & (1<<n - 1))) }
	hour, minute, second := t/3600, t/60%60, t%60
	minutes, seconds := below(s.set.Minute, 60), below(s.set.Second, 60)
	n := below(s.set.Hour, hour) * minutes * seconds
	if s.set.Hour>>hour&1 == 0 {
		return n
	}
	n += below(s.set.Minute, minute) * seconds
	if s.set.Minute>>minute&1 == 0 {
		return n
	}
	return n + below(s.set.Second, second+1)
}

// countDays is the number of matching days in [from, to), counted from 1970.
func (s *cronSpec) countDays(from, to int64) (n int64) {
	const allMonths = (1<<12 - 1) << 1
	if s.set.Dom&cronStar != 0 && s.set.Month&allMonths == allMonths && !s.month.isWeekday() && to > from {
		weeks := (to - from) / 7
		n = weeks * int64(bits.OnesCount64(s.set.Dow&(1<<7-1)))
		from += weeks * 7
	}
	for from < to {
		year, month, day := time.Unix(from*daySeconds, 0).UTC().Date()
		length := int64(time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day())
		first := from - int64(day) // the day before the month
		end := min(first+length+1, to)
		n += int64(bits.OnesCount64(s.daysOf(year, month) >> day & (1<<(end-from) - 1)))
		from = end
	}
	return n
}
