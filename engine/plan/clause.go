package plan

import (
	"math/bits"
	"time"

	"xtimer/engine"
)

// Clause is one part of what a schedule means, without words: a program renders the
// clauses of a schedule in any language. Describe renders them in English. The fields
// that a kind does not name are zero.
type Clause struct {
	Kind ClauseKind
	// Times of Times: seconds since midnight, ascending.
	Times []int
	// Seconds, Minutes and Hours of Clock.
	Seconds, Minutes, Hours Units
	// Values of Days (1 to 31), Weekdays (1 to 7, Monday is 1) and Months (1 to 12),
	// ascending.
	Values []int
	// MonthDays of MonthDays.
	MonthDays []MonthDay
	// At of OnceAt, From and Until, in Unix ms.
	At int64
	// Length of OnceAfter, Every and Spread.
	Length time.Duration
	// Count of AtMost.
	Count int64
	// Text of Zone: its name; of Never: why.
	Text string
}

// ClauseKind says what a clause is about.
type ClauseKind string

// The kinds of clauses, in the order in which Clauses returns them.
const (
	ClauseNever     ClauseKind = "never"      // the cron expression cannot be read
	ClauseOnceAt    ClauseKind = "once_at"    // once, at an instant
	ClauseOnceAfter ClauseKind = "once_after" // once, so long after the timer is accepted
	ClauseEvery     ClauseKind = "every"      // at an interval
	ClauseTimes     ClauseKind = "times"      // at a few times of the day
	ClauseClock     ClauseKind = "clock"      // at seconds, minutes and hours
	ClauseEveryDay  ClauseKind = "every_day"
	ClauseDays      ClauseKind = "days"     // on days of the month
	ClauseWeekdays  ClauseKind = "weekdays" // on days of the week; after Days: on these as well
	// ClauseMonthDays: on days whose date depends on the month; after Days or Weekdays: on
	// these as well.
	ClauseMonthDays ClauseKind = "month_days"
	ClauseMonths    ClauseKind = "months"
	ClauseZone      ClauseKind = "zone"
	ClauseFrom      ClauseKind = "from"
	ClauseUntil     ClauseKind = "until"
	ClauseAtMost    ClauseKind = "at_most" // so many times at most
	ClauseSpread    ClauseKind = "spread"  // each due is put off by up to so long
)

// Units are the seconds, minutes or hours at which a schedule is due: every so many,
// from 0 on, or the values.
type Units struct {
	Every  int   // 0: Values
	Values []int // ascending
}

// Clauses says what the schedule means.
func Clauses(s *engine.Schedule) (cs []Clause) {
	every, is, err := interval(s)
	switch {
	case s.At != 0:
		cs = append(cs, Clause{Kind: ClauseOnceAt, At: s.At})
	case s.HasDelay:
		cs = append(cs, Clause{Kind: ClauseOnceAfter, Length: s.Delay})
	case is && err == nil:
		cs = append(cs, Clause{Kind: ClauseEvery, Length: every})
	default:
		spec, err := parseCron(s.Cron)
		if err != nil {
			return []Clause{{Kind: ClauseNever, Text: err.Error()}}
		}
		zone := s.TimeZone
		if zone == "" {
			zone = "UTC"
		}
		cs = append(spec.clauses(), Clause{Kind: ClauseZone, Text: zone})
	}
	if s.StartAt != 0 {
		cs = append(cs, Clause{Kind: ClauseFrom, At: s.StartAt})
	}
	if s.EndAt != 0 {
		cs = append(cs, Clause{Kind: ClauseUntil, At: s.EndAt})
	}
	if s.MaxRuns != 0 && !s.OneShot() {
		cs = append(cs, Clause{Kind: ClauseAtMost, Count: s.MaxRuns})
	}
	if s.Jitter != 0 {
		cs = append(cs, Clause{Kind: ClauseSpread, Length: s.Jitter})
	}
	return cs
}

// mostTimes is how many times of day are listed one by one.
const mostTimes = 6

// clauses says when the spec is due: the times of the day, then the days.
func (s *cronSpec) clauses() (cs []Clause) {
	sec, minute, hour := s.set.Second&^cronStar, s.set.Minute&^cronStar, s.set.Hour&^cronStar
	var first Clause
	if s.fixedHour && bits.OnesCount64(sec)*bits.OnesCount64(minute)*bits.OnesCount64(hour) <= mostTimes {
		first = Clause{Kind: ClauseTimes, Times: timesOfDay(sec, minute, hour)}
	} else {
		first = Clause{Kind: ClauseClock, Seconds: unitsOf(sec, 59), Minutes: unitsOf(minute, 59), Hours: unitsOf(hour, 23)}
	}
	cs = append(cs, first)
	var days []MonthDay
	if set := s.set.Dom; set&cronStar == 0 {
		if set != 0 {
			cs = append(cs, Clause{Kind: ClauseDays, Values: members(set, 1, 31)})
		}
		days = s.month.listDates()
	}
	if set := s.set.Dow; set&cronStar == 0 {
		if set != 0 {
			set |= set & 1 << 7 // a week begins on Monday: Sunday is its day 7
			cs = append(cs, Clause{Kind: ClauseWeekdays, Values: members(set, 1, 7)})
		}
		days = append(days, s.month.listWeekdays()...)
	}
	if days != nil {
		cs = append(cs, Clause{Kind: ClauseMonthDays, MonthDays: days})
	}
	if len(cs) == 1 && s.fixedHour && first.named() {
		cs = append(cs, Clause{Kind: ClauseEveryDay})
	}
	if set := s.set.Month; set&cronStar == 0 {
		cs = append(cs, Clause{Kind: ClauseMonths, Values: members(set, 1, 12)})
	}
	return cs
}

// named reports whether the shortest unit that a clause of times speaks of is named,
// and does not repeat.
func (c *Clause) named() bool {
	switch {
	case c.Kind == ClauseTimes:
		return true
	case c.Seconds.onlyZero():
		return c.Minutes.Every == 0
	}
	return c.Seconds.Every == 0
}

func (u Units) onlyZero() bool { return u.Every == 0 && len(u.Values) == 1 && u.Values[0] == 0 }

func unitsOf(set uint64, max int) Units {
	if step := stepOf(set, max); step > 0 {
		return Units{Every: step}
	}
	return Units{Values: members(set, 0, max)}
}

// members lists the members of a set between lo and hi.
func members(set uint64, lo, hi int) (all []int) {
	for i := lo; i <= hi; i++ {
		if set>>i&1 == 1 {
			all = append(all, i)
		}
	}
	return all
}

// timesOfDay lists a few times of day, in seconds since midnight.
func timesOfDay(sec, minute, hour uint64) (all []int) {
	for _, h := range members(hour, 0, 23) {
		for _, m := range members(minute, 0, 59) {
			for _, s := range members(sec, 0, 59) {
				all = append(all, h*3600+m*60+s)
			}
		}
	}
	return all
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

// TimeOfDay writes a time of day, in seconds since midnight, as a clock shows it:
// "09:00", or "09:00:30" where the seconds are not 0.
func TimeOfDay(seconds int) string {
	layout := "15:04"
	if seconds%60 != 0 {
		layout = time.TimeOnly
	}
	return time.Unix(int64(seconds), 0).UTC().Format(layout)
}
