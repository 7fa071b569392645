package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
)

// Describe says in one English sentence when the schedule is due: "At 09:00, Monday to
// Friday, Asia/Shanghai".
func Describe(s *engine.Schedule) string {
	var parts []string
	cs := Clauses(s)
	for i := range cs {
		c := &cs[i]
		text := c.english()
		switch also := i > 0 && cs[i-1].isDays(); {
		case also && c.Kind == ClauseWeekdays:
			text = "and besides on each " + text
		case also && c.Kind == ClauseMonthDays:
			text = "and besides " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// isDays reports whether the clause names days: a later one that does adds to them.
func (c *Clause) isDays() bool { return c.Kind == ClauseDays || c.Kind == ClauseWeekdays }

func (c *Clause) english() string {
	switch c.Kind {
	case ClauseNever:
		return "Never: " + c.Text
	case ClauseOnceAt:
		return "Once, at " + engine.FormatInstant(c.At)
	case ClauseOnceAfter:
		if c.Length == 0 {
			return "Once, at once"
		}
		return "Once, " + span(c.Length) + " after it is accepted"
	case ClauseEvery:
		return "Every " + span(c.Length)
	case ClauseTimes:
		return "At " + clockTimes(c.Times)
	case ClauseClock:
		return c.clock()
	case ClauseEveryDay:
		return "every day"
	case ClauseDays:
		if len(c.Values) == 1 {
			return "on day " + list(c.Values, strconv.Itoa) + " of the month"
		}
		return "on days " + list(c.Values, strconv.Itoa) + " of the month"
	case ClauseWeekdays:
		return list(c.Values, func(d int) string { return time.Weekday(d % 7).String() })
	case ClauseMonthDays:
		var days []string
		for _, d := range c.MonthDays {
			days = append(days, d.english())
		}
		return "on " + and(days)
	case ClauseMonths:
		return "in " + list(c.Values, func(m int) string { return time.Month(m).String() })
	case ClauseFrom:
		return "from " + engine.FormatInstant(c.At)
	case ClauseUntil:
		return "until " + engine.FormatInstant(c.At)
	case ClauseAtMost:
		if c.Count == 1 {
			return "once only"
		}
		return fmt.Sprintf("%d times at most", c.Count)
	case ClauseSpread:
		return "spread over up to " + span(c.Length)
	}
	return c.Text // of the zone
}

// clock describes seconds, minutes and hours.
func (c *Clause) clock() string {
	at := func(u Units, unit string) string {
		switch {
		case u.Every == 1:
			return "every " + unit
		case u.Every > 1:
			return fmt.Sprintf("every %d %ss", u.Every, unit)
		case len(u.Values) == 1:
			return "at " + unit + " " + strconv.Itoa(u.Values[0])
		}
		return "at " + unit + "s " + list(u.Values, strconv.Itoa)
	}
	var parts []string
	perSecond := !c.Seconds.onlyZero()
	if perSecond {
		parts = append(parts, at(c.Seconds, "second"))
	}
	switch {
	case c.Minutes.Every != 1:
		parts = append(parts, at(c.Minutes, "minute"))
	case !perSecond:
		parts = append(parts, "every minute")
	case c.Seconds.Every == 0:
		parts = append(parts, "of every minute")
	}
	switch {
	case c.Hours.Every == 1:
		if strings.HasPrefix(parts[len(parts)-1], "at minute") {
			parts = append(parts, "of every hour")
		}
	case c.Hours.Every > 1:
		parts = append(parts, fmt.Sprintf("of every %s hour from 00 on", ordinal(c.Hours.Every)))
	default:
		if strings.HasPrefix(parts[len(parts)-1], "at minute") {
			parts = append(parts, "of every hour")
		}
		parts = append(parts, "from "+spansOfHours(c.Hours.Values))
	}
	text := strings.Join(parts, " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// spansOfHours lists the parts of the day that ascending hours make:
// "09:00 to 17:59 and 22:00 to 22:59".
func spansOfHours(hours []int) string {
	var parts []string
	for i := 0; i < len(hours); i++ {
		first := hours[i]
		for i+1 < len(hours) && hours[i+1] == hours[i]+1 {
			i++
		}
		parts = append(parts, fmt.Sprintf("%02d:00 to %02d:59", first, hours[i]))
	}
	return and(parts)
}

// clockTimes lists times of day.
func clockTimes(times []int) string {
	var all []string
	for _, t := range times {
		all = append(all, TimeOfDay(t))
	}
	return and(all)
}

// list writes ascending numbers by their names: "1, 2 and 5 to 9".
func list(values []int, name func(int) string) string {
	var parts []string
	for i := 0; i < len(values); i++ {
		end := i
		for end+1 < len(values) && values[end+1] == values[end]+1 {
			end++
		}
		if end < i+2 {
			parts = append(parts, name(values[i]))
			continue
		}
		parts = append(parts, name(values[i])+" to "+name(values[end]))
		i = end
	}
	return and(parts)
}

func and(parts []string) string {
	if n := len(parts) - 1; n > 0 {
		return strings.Join(parts[:n], ", ") + " and " + parts[n]
	}
	return strings.Join(parts, "")
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return strconv.Itoa(n) + "th"
}

// span writes a duration in words.
func span(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	var parts []string
	for _, u := range [...]struct {
		name string
		len  time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}, {"ms", time.Millisecond}} {
		n := d / u.len
		d %= u.len
		switch {
		case n == 0:
		case n == 1 || u.name == "ms":
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, u.name))
		}
	}
	if d != 0 || parts == nil {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, " ")
}
