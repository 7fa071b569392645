package checker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dues are the dues of a schedule in (after, to], by brute force: an interval is
// counted, and a calendar is looked at second by second (minute by minute, where
// no second but 0 is asked for). It shares nothing with the service, not even the
// library that parses.
//
// MaxRuns counts the nominals after from, the instant from which the definition
// counts; anchor is that of an interval.
func (s *Schedule) Dues(from, anchor, after, to int64) ([]int64, error) {
	var all []int64
	if s.At != 0 {
		if s.At > after && s.At <= to {
			all = append(all, s.At)
		}
		return all, nil
	}
	end := to
	if s.EndAt != 0 {
		end = min(end, s.EndAt)
	}
	first := after
	if s.MaxRuns != 0 {
		first = min(first, from) // they are counted from there
	}
	if s.StartAt != 0 {
		first = max(first, s.StartAt-1)
	}
	switch {
	case s.Every != 0:
		k := int64(1)
		if s.StartAt != 0 {
			anchor, k = s.StartAt, 0
		}
		if skip := (first - anchor) / s.Every; skip > k {
			k = skip
		}
		for due := anchor + k*s.Every; due <= end; due += s.Every {
			if due > first {
				all = append(all, due)
			}
		}
	default:
		c, err := parseCalendar(s.Cron, s.TimeZone)
		if err != nil {
			return nil, err
		}
		all = c.scan(first, end)
	}
	if s.MaxRuns != 0 {
		all = slices.DeleteFunc(all, func(d int64) bool { return d <= from })
		all = all[:min(int64(len(all)), s.MaxRuns)]
	}
	return slices.DeleteFunc(all, func(d int64) bool { return d <= after }), nil
}

// calendar is a cron expression in a zone: which values each field takes.
type calendar struct {
	second, minute, hour, day, month, weekday map[int]bool
	// days and weekdays are items like L, 15W and 5#2, which are looked at day by day.
	days, weekdays []string
	// anyDay: of day and weekday one is a star, so both have to match; else one.
	anyDay bool
	// fixed: hours are named. Such a calendar is due once for each reading that
	// it names: right after a gap that skips it, and the first time where it
	// comes twice. Without it, whenever the wall shows a matching reading.
	fixed bool
	loc   *time.Location
}

var shorthands = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

func parseCalendar(spec, zone string) (*calendar, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	if long, ok := shorthands[spec]; ok {
		spec = long
	}
	f := strings.Fields(spec)
	if len(f) == 5 {
		f = append([]string{"0"}, f...)
	}
	if len(f) != 6 {
		return nil, fmt.Errorf("%q has %d fields", spec, len(f))
	}
	c := &calendar{loc: loc}
	var stars [6]bool
	f[3], c.days = monthDays(f[3])
	f[5], c.weekdays = monthDays(f[5])
	for i, to := range []*map[int]bool{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		lo := [...]int{0, 0, 0, 1, 1, 0}[i]
		hi := [...]int{59, 59, 23, 31, 12, 6}[i]
		if *to, stars[i], err = parseField(f[i], lo, hi, i); err != nil {
			return nil, fmt.Errorf("%q: %w", spec, err)
		}
	}
	c.anyDay = stars[3] || stars[5]
	wild := !strings.Contains(f[2], ",") && (f[2][0] == '*' || f[2][0] == '?')
	c.fixed = !wild && len(c.hour) < 24
	return c, nil
}

// parseField reads a list of *, n, a-b, each with an optional /step. star tells
// that an item is a * that leaves nothing out.
func parseField(text string, lo, hi, field int) (values map[int]bool, star bool, err error) {
	values = map[int]bool{}
	if text == "" {
		return values, false, nil // days of the month only
	}
	value := func(s string) (int, error) {
		names := map[int]string{4: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", 5: "SUNMONTUEWEDTHUFRISAT"}[field]
		if i := strings.Index(names, strings.ToUpper(s)); len(s) == 3 && i >= 0 && names != "" {
			return lo + i/3, nil
		}
		return strconv.Atoi(s)
	}
	for item := range strings.SplitSeq(text, ",") {
		body, stepText, stepped := strings.Cut(item, "/")
		from, to, step := lo, hi, 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil {
				return nil, false, err
			}
		}
		switch a, b, ranged := strings.Cut(body, "-"); {
		case body == "*" || body == "?":
			star = star || step == 1
		default:
			if from, err = value(a); err != nil {
				return nil, false, err
			}
			switch {
			case ranged:
				if to, err = value(b); err != nil {
					return nil, false, err
				}
			case !stepped:
				to = from
			default:
				to = max(to, from)
			}
		}
		for v := from; v <= to; v += step {
			if field == 5 {
				values[v%7] = true
			} else {
				values[v] = true
			}
		}
	}
	return values, star, nil
}

// matches reports whether a reading of the wall clock is one that is asked for.
func (c *calendar) matches(wall time.Time) bool {
	if !c.second[wall.Second()] || !c.minute[wall.Minute()] || !c.hour[wall.Hour()] || !c.month[int(wall.Month())] {
		return false
	}
	isOn := func(item string) bool { return onMonthDay(item, wall) }
	day := c.day[wall.Day()] || slices.ContainsFunc(c.days, isOn)
	weekday := c.weekday[int(wall.Weekday())] || slices.ContainsFunc(c.weekdays, isOn)
	if c.anyDay {
		return day && weekday
	}
	return day || weekday
}

// scan walks the clock and looks at the wall: dues in (after, to], Unix ms.
func (c *calendar) scan(after, to int64) (dues []int64) {
	step := int64(1)
	if len(c.second) == 1 && c.second[0] {
		step = 60 // no zone has been off by less since 1972
	}
	at := after / 1000 / step * step
	if !c.fixed {
		for ; at*1000 <= to; at += step {
			if at*1000 > after && c.matches(time.Unix(at, 0).In(c.loc)) {
				dues = append(dues, at*1000)
			}
		}
		return dues
	}
	// What the wall has reached for the first time at an instant is due then:
	// one reading as a rule, none while time is lived through again, and all
	// that a gap has skipped.
	at -= 48 * 3600
	reached := reading(at-step, c.loc)
	for ; at*1000 <= to; at += step {
		now := reading(at, c.loc)
		due := false
		for reached < now {
			reached += step
			due = due || c.matches(time.Unix(reached, 0).UTC())
		}
		if due && at*1000 > after {
			dues = append(dues, at*1000)
		}
	}
	return dues
}

// reading is what the wall shows, in seconds as if it were UTC's.
func reading(at int64, loc *time.Location) int64 {
	_, off := time.Unix(at, 0).In(loc).Zone()
	return at + int64(off)
}
