package plan

import (
	"fmt"
	"math/bits"
	"time"

	"xtimer/engine"
)

// Preview describes the dues of a schedule before a timer uses it.
type Preview struct {
	Dues     []int64 // Unix ms, without jitter: that depends on the timer's id
	Sentence string  // Describe
	Clauses  []Clause
	Warnings []Warning
}

// Warning describes surprising behaviour of a schedule. The codes are never_fires,
// overdue, ends_soon, very_dense, dst_gap, dst_fold, dst_pause, dst_repeat, day_or_weekday,
// leap_day, short_months and time_zone_unused. The fields after Detail have what Detail says in words; those that a
// code does not name are zero.
type Warning struct {
	Code, Detail string
	// Reason of never_fires is the code of the fault that a create returns.
	Reason string
	// At is when the schedule ends (ends_soon), or when the clock changes (dst_…); until when nothing is due (never_fires, 0: ever). Unix ms.
	At int64
	// Count of dues: those that are left (ends_soon), or those of a day (very_dense).
	Count int64
	// Zone whose clock changes, and what the clock shows before and after.
	Zone, Before, After string
}

const maxPreview = 1000

// PreviewSchedule returns the first n dues after from. It returns a *Fault for a
// schedule that cannot be parsed, and a warning for a schedule that never fires. For
// dues in the past it uses the default misfire window.
func PreviewSchedule(s engine.Schedule, n int, from int64) (Preview, error) {
	var c checks
	c.schedule(&s)
	c.want(1 <= n && n <= maxPreview, "n", "%d is not in the range 1 to %d", n, maxPreview)
	c.want(earliest <= from && from <= engine.MaxDue, "from", "must be between the years 2020 and 9999")
	if err := c.fault(); err != nil {
		return Preview{}, err
	}
	v := Preview{Sentence: Describe(&s), Clauses: Clauses(&s)}
	s.Jitter = 0
	t := engine.Timer{Definition: engine.NewDefinition(), CreatedAt: from}
	t.Schedule = s
	if err := Resolve(&t, nil, from); err != nil {
		f, ok := err.(*engine.Fault)
		if ok && f.Code != "max_runs_too_large" {
			v.Warnings = []Warning{{Code: "never_fires", Detail: f.Fields[0].Detail, Reason: f.Code, At: s.EndAt}}
			return v, nil
		}
		return Preview{}, err
	}
	p, err := Of(&t)
	if err != nil {
		return Preview{}, err
	}
	if p.cal == nil && s.TimeZone != "" {
		v.warn("time_zone_unused", "time_zone has an effect on cron expressions only: an instant, a delay and an interval have no zone")
	}
	if s.OneShot() {
		v.Dues = []int64{t.At}
		if t.At <= from {
			v.warn("overdue", "it lies in the past: it fires at once, if it is within the misfire window")
		}
		return v, nil
	}
	for at := from; len(v.Dues) < n; {
		due, ok := p.Next(at)
		if !ok {
			break
		}
		v.Dues = append(v.Dues, due)
		at = due
	}
	v.warnOf(&t, &p, n)
	return v, nil
}

// warn adds a warning; the caller sets its other fields.
func (v *Preview) warn(code, format string, args ...any) *Warning {
	v.Warnings = append(v.Warnings, Warning{Code: code, Detail: fmt.Sprintf(format, args...)})
	return &v.Warnings[len(v.Warnings)-1]
}

// warnOf finds what may surprise about a schedule that repeats.
func (v *Preview) warnOf(t *engine.Timer, p *Plan, n int) {
	const day = 24 * time.Hour
	if len(v.Dues) < n && t.LastDue != 0 {
		w := v.warn("ends_soon", "it ends at %s, after %d more", engine.FormatInstant(t.LastDue), len(v.Dues))
		w.At, w.Count = t.LastDue, int64(len(v.Dues))
	}
	dense := p.Count(t.ValidFrom, t.ValidFrom+day.Milliseconds())
	if first := v.Dues[0]; dense == 0 {
		dense = p.Count(first-1, first+day.Milliseconds())
	}
	if dense >= 86400 {
		v.warn("very_dense", "it is due %d times a day", dense).Count = dense
	}
	if p.cal == nil {
		return
	}
	set, month := p.cal.spec.set, &p.cal.spec.month
	if set.Dom&cronStar == 0 && set.Dow&cronStar == 0 {
		v.warn("day_or_weekday", "day of month and day of week are both given: it is due on days that match either")
	}
	switch onDays := set.Dow&cronStar != 0; {
	case month.last != 0, month.lastWeekday: // each month has such a day
	case onDays && set.Month == 1<<2 && bits.TrailingZeros64(set.Dom|uint64(month.nearest)) == 29:
		v.warn("leap_day", "it is due in leap years only")
	case onDays && set.Dom&cronStar == 0 && bits.TrailingZeros64(set.Dom|uint64(month.nearest)) >= 29 && shortMonth(set.Month, set.Dom|uint64(month.nearest)),
		set.Dom&cronStar != 0 && set.Dow&(1<<7-1) == 0 && month.nth[5] != 0 && [5]uint8(month.nth[:]) == [5]uint8{}:
		v.warn("short_months", "it is not due in months that have no such day")
	}
	v.warnClock(p.cal, t.ValidFrom)
}

// shortMonth reports whether some month of the set has none of the days.
func shortMonth(months, days uint64) bool {
	for m := time.January; m <= time.December; m++ {
		last := time.Date(2023, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if months>>m&1 == 1 && days&(1<<(last+1)-1) == 0 {
			return true
		}
	}
	return false
}

// warnClock describes the changes of the clock within a year that the dues of a calendar
// fall into.
func (v *Preview) warnClock(c *calendar, from int64) {
	shows := func(reading int64) string { return time.Unix(reading, 0).UTC().Format("2006-01-02 15:04") }
	t := floorDiv(from, 1000)
	end := t + 366*86400
	for p := c.zone.at(t); p.end < end; {
		q := c.zone.at(p.end)
		before, after := p.end+p.off, p.end+q.off // what the wall shows at the change
		if c.spec.next(min(before, after)-1) < max(before, after) {
			code, detail := "", ""
			if c.spec.fixedHour {
				code, detail = atFixedHour(before < after)
			} else {
				code, detail = c.atStep(p, from)
			}
			if code != "" {
				verb := "skips from"
				if after < before {
					verb = "goes back from"
				}
				w := v.warn(code, "the clock of %s %s %s to %s: %s", c.zone.name, verb, shows(before), shows(after)[11:], detail)
				w.At, w.Zone, w.Before, w.After = p.end*1000, c.zone.name, shows(before), shows(after)
			}
		}
		p = q
	}
}

// atFixedHour says what a change of the clock does to dues at fixed hours.
func atFixedHour(skips bool) (code, detail string) {
	if skips {
		return "dst_gap", "what is due between is due once, right after it"
	}
	return "dst_fold", "what is due between is due the first time only"
}

// atStep says what the end of a period does to the dues of a wildcard hour: they pause for
// longer than at other times, or are due more often, as "0 */12" is in a zone whose clock
// skips midnight.
func (c *calendar) atStep(p period, from int64) (code, detail string) {
	last := c.prev(p.end*1000-1, from)
	if last == never {
		return "", ""
	}
	reading := last/1000 + p.off
	took, usual := (c.next(p.end*1000-1)-last)/1000, c.spec.next(reading)-reading
	skips := c.zone.at(p.end).off > p.off
	switch lasts := span(time.Duration(took) * time.Second); {
	case skips && took > usual:
		return "dst_pause", "there is no due for " + lasts
	case !skips && took < usual:
		return "dst_repeat", "there is a due after only " + lasts
	}
	return "", ""
}
