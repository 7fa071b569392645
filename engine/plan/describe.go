package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
)

// Describe says in one sentence when the schedule is due: "At 09:00, Monday to
// Friday, Asia/Shanghai".
func Describe(s *engine.Schedule) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	every, is, err := interval(s)
	switch {
	case s.At != 0:
		add("Once, at %s", engine.FormatInstant(s.At))
	case s.HasDelay && s.Delay == 0:
		add("Once, at once")
	case s.HasDelay:
		add("Once, %s after it is accepted", span(s.Delay))
	case is && err == nil:
		add("Every %s", span(every))
	default:
		spec, err := parseCron(s.Cron)
		if err != nil {
			return "Never: " + err.Error()
		}
		parts = spec.describe()
		if s.TimeZone == "" {
			add("UTC")
		} else {
			add("%s", s.TimeZone)
		}
	}
	if s.StartAt != 0 {
		add("from %s", engine.FormatInstant(s.StartAt))
	}
	if s.EndAt != 0 {
		add("until %s", engine.FormatInstant(s.EndAt))
	}
	switch {
	case s.OneShot() || s.MaxRuns == 0:
	case s.MaxRuns == 1:
		add("once only")
	default:
		add("%d times at most", s.MaxRuns)
	}
	if s.Jitter != 0 {
		add("spread over up to %s", span(s.Jitter))
	}
	return strings.Join(parts, ", ")
}

// describe says when the spec is due: the times of the day, then the days.
func (s *cronSpec) describe() []string {
	parts := []string{s.times()}
	day := s.days()
	if day == "" && strings.HasPrefix(parts[0], "At ") && s.fixedHour {
		day = "every day"
	}
	if day != "" {
		parts = append(parts, day)
	}
	if s.set.Month&cronStar == 0 {
		parts = append(parts, "in "+list(s.set.Month, 1, 12, func(m int) string { return time.Month(m).String() }))
	}
	return parts
}

// times describes seconds, minutes and hours.
func (s *cronSpec) times() string {
	sec, minute, hour := s.set.Second&^cronStar, s.set.Minute&^cronStar, s.set.Hour&^cronStar
	if s.fixedHour && bits.OnesCount64(sec)*bits.OnesCount64(minute)*bits.OnesCount64(hour) <= 6 {
		return "At " + clockTimes(sec, minute, hour)
	}
	at := func(set uint64, unit string, max int) string {
		switch step := stepOf(set, max); {
		case step == 1:
			return "every " + unit
		case step > 1:
			return fmt.Sprintf("every %d %ss", step, unit)
		case bits.OnesCount64(set) == 1:
			return "at " + unit + " " + list(set, 0, max, strconv.Itoa)
		}
		return "at " + unit + "s " + list(set, 0, max, strconv.Itoa)
	}
	var parts []string
	if sec != 1 {
		parts = append(parts, at(sec, "second", 59))
	}
	switch all := stepOf(minute, 59) == 1; {
	case !all:
		parts = append(parts, at(minute, "minute", 59))
	case sec == 1:
		parts = append(parts, "every minute")
	case bits.OnesCount64(sec) == 1 || stepOf(sec, 59) == 0:
		parts = append(parts, "of every minute")
	}
	switch step := stepOf(hour, 23); {
	case step == 1:
		if strings.HasPrefix(parts[len(parts)-1], "at minute") {
			parts = append(parts, "of every hour")
		}
	case step > 1:
		parts = append(parts, fmt.Sprintf("of every %s hour from 00 on", ordinal(step)))
	default:
		parts = append(parts, "of the hours "+list(hour, 0, 23, func(h int) string { return fmt.Sprintf("%02d", h) }))
	}
	text := strings.Join(parts, " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// clockTimes lists a few times of day.
func clockTimes(sec, minute, hour uint64) string {
	var times []string
	for h := range 24 {
		for m := range 60 {
			for s := range 60 {
				if hour>>h&1 == 0 || minute>>m&1 == 0 || sec>>s&1 == 0 {
					continue
				}
				t := fmt.Sprintf("%02d:%02d", h, m)
				if sec != 1 {
					t += fmt.Sprintf(":%02d", s)
				}
				times = append(times, t)
			}
		}
	}
	return and(times)
}

// days describes the days of the month and of the week; "" is every day.
func (s *cronSpec) days() string {
	var dom, dow string
	if s.set.Dom&cronStar == 0 && s.set.Dom != 0 {
		dom = "on day " + list(s.set.Dom, 1, 31, strconv.Itoa) + " of the month"
		if bits.OnesCount64(s.set.Dom) > 1 {
			dom = strings.Replace(dom, "day", "days", 1)
		}
	}
	if parts := s.month.describeDates(); parts != nil && s.set.Dom&cronStar == 0 {
		dom = joined(dom, "on "+and(parts))
	}
	if set := s.set.Dow; set&cronStar == 0 && set != 0 {
		set = set>>1&(1<<6-1) | set&1<<6 // a week begins on Monday
		dow = list(set, 0, 6, func(d int) string { return time.Weekday((d + 1) % 7).String() })
	}
	if parts := s.month.describeWeekdays(); parts != nil && s.set.Dow&cronStar == 0 {
		if of := "on " + and(parts); dow != "" {
			dow = "on each " + dow + ", and " + of
		} else {
			dow = of
		}
		return joined(dom, dow)
	}
	if dom != "" && dow != "" {
		return dom + ", and besides on each " + dow
	}
	return dom + dow
}

// joined are two descriptions of days, either of which may be empty.
func joined(a, b string) string {
	if a != "" && b != "" {
		return a + ", and " + b
	}
	return a + b
}

// list writes the members of a set between lo and hi: "1, 2 and 5 to 9".
func list(set uint64, lo, hi int, name func(int) string) string {
	var parts []string
	for i := lo; i <= hi; i++ {
		if set>>i&1 == 0 {
			continue
		}
		end := i
		for end < hi && set>>(end+1)&1 == 1 {
			end++
		}
		if end < i+2 {
			parts = append(parts, name(i))
			continue
		}
		parts = append(parts, name(i)+" to "+name(end))
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

// stepOf is n if the set is every n-th of 0…max, evenly also over its end; 0 if
// it is none.
func stepOf(set uint64, max int) int {
	n := max + 1
	for step := 1; step < n; step++ {
		if n%step != 0 {
			continue
		}
		var want uint64
		for i := 0; i < n; i += step {
			want |= 1 << i
		}
		if set == want {
			return step
		}
	}
	return 0
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
