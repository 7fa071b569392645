package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// monthDays are the days of a cron spec whose date depends on the month:
//
//	day of month   L      the last day of the month       L-3    three days before it
//	               15W    the weekday nearest to day 15, in the same month
//	               LW     the last weekday of the month
//	day of week    FRIL   the last Friday of the month    FRI#2  the second one
//
// A weekday here is a day from Monday to Friday. A month without day 31 has no 31W, and
// one without a fifth Friday no FRI#5. Days of the week count from 0, Sunday, as in cron
// and Spring: 5L is the last Friday. Quartz and XXL-JOB count from 1.
type monthDays struct {
	last        uint32   // bit n: n days before the last day
	nearest     uint32   // bit n: the weekday nearest to day n
	lastWeekday bool     // LW
	nth         [6]uint8 // days of the week (bit 0: Sunday), by n; those at 0 are the last ones
}

// mostBefore is the largest n of L-n: each month has at least 28 days.
const mostBefore = 27

// take reads one item of a field, in upper case; is reports whether it is a day of a month.
func (m *monthDays) take(f *cronField, item string) (is bool, err error) {
	switch f.name {
	case "day of month":
		return m.takeDate(item)
	case "day of week":
		return m.takeWeekday(f, item)
	}
	return false, nil
}

func (m *monthDays) takeDate(item string) (is bool, err error) {
	before, isLast := strings.CutPrefix(item, "L")
	day, isNearest := strings.CutSuffix(item, "W")
	switch {
	case item == "LW":
		m.lastWeekday = true
	case item == "L":
		m.last |= 1
	case isLast:
		n, err := atoi(strings.TrimPrefix(before, "-"))
		if err != nil || before[0] != '-' || n < 1 || n > mostBefore {
			return true, fmt.Errorf("%q must be L-n, n from 1 to %d", item, mostBefore)
		}
		m.last |= 1 << n
	case isNearest:
		n, err := atoi(day)
		if err != nil || n < 1 || n > 31 {
			return true, fmt.Errorf("%q must be nW, n from 1 to 31", item)
		}
		m.nearest |= 1 << n
	default:
		return false, nil
	}
	return true, nil
}

func (m *monthDays) takeWeekday(f *cronField, item string) (is bool, err error) {
	day, which, isNth := strings.Cut(item, "#")
	n := 0
	if !isNth {
		if day, is = strings.CutSuffix(item, "L"); !is {
			return false, nil
		}
		if day == "" {
			return true, fmt.Errorf(`"L" needs a day, like FRIL for the last Friday of the month`)
		}
	} else if n, err = atoi(which); err != nil || n < 1 || n > 5 {
		return true, fmt.Errorf("%q must be day#n, n from 1 to 5", item)
	}
	d, err := f.value(day)
	if err != nil {
		return true, err
	}
	m.nth[n] |= 1 << (d % 7)
	return true, nil
}

func (m *monthDays) isWeekday() bool { return m.nth != [6]uint8{} }

// daysOf are the days of a month on which the spec is due: bit n is day n.
func (s *cronSpec) daysOf(year int, month time.Month) (days uint64) {
	if s.set.Month>>month&1 == 0 {
		return 0
	}
	end := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	last := end.Day()
	sunday := (last-int(end.Weekday())+34)%7 + 1 // the first one
	all := uint64(1)<<(last+1) - 2
	dates, weekdays := s.set.Dom|s.month.dates(last, sunday), s.month.weekdays(last, sunday)
	for d := range 7 {
		if s.set.Dow>>d&1 == 1 {
			weekdays |= every7 << firstOf(d, sunday)
		}
	}
	if (s.set.Dom|s.set.Dow)&cronStar != 0 {
		return dates & weekdays & all
	}
	return (dates | weekdays) & all
}

// every7 has each seventh bit, from 0 on.
const every7 = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28

// firstOf is the first date of a day of the week in a month whose first Sunday is known.
func firstOf(weekday, sunday int) int { return (sunday+weekday-1)%7 + 1 }

func (m *monthDays) dates(last, sunday int) (days uint64) {
	// fromSunday is 0 on a Sunday and 6 on a Saturday.
	fromSunday := func(day int) int { return (day - sunday + 35) % 7 }
	for b := m.last; b != 0; b &= b - 1 {
		days |= 1 << (last - bits.TrailingZeros32(b))
	}
	for b := m.nearest; b != 0; b &= b - 1 {
		day := bits.TrailingZeros32(b)
		if day > last {
			break
		}
		switch at := fromSunday(day); {
		case at == 6 && day == 1:
			day = 3
		case at == 6:
			day--
		case at == 0 && day == last:
			day -= 2
		case at == 0:
			day++
		}
		days |= 1 << day
	}
	if m.lastWeekday {
		days |= 1 << (last - [7]int{2, 0, 0, 0, 0, 0, 1}[fromSunday(last)])
	}
	return days
}

func (m *monthDays) weekdays(last, sunday int) (days uint64) {
	for n, set := range m.nth {
		for d := range 7 {
			if set>>d&1 == 0 {
				continue
			}
			day := firstOf(d, sunday)
			if n == 0 {
				day += (last - day) / 7 * 7
			} else {
				day += 7 * (n - 1)
			}
			days |= 1 << day
		}
	}
	return days
}

// horizon is how many months nextByMonth looks ahead: between two fifth Fridays of
// February lie up to 40 years.
const horizon = 41 * 12

// nextByMonth is next for a spec with days that depend on the month.
func (s *cronSpec) nextByMonth(w int64) int64 {
	t := time.Unix(w, 0).UTC()
	year, month := t.Year(), t.Month()
	from := t.Day()
	for range horizon {
		if days := s.daysOf(year, month) >> from << from; days != 0 {
			set := *s.set
			set.Month, set.Dom, set.Dow = 1<<month, days, cronStar|1<<7-1
			start := max(w, time.Date(year, month, 1, 0, 0, -1, 0, time.UTC).Unix())
			n := set.Next(time.Unix(start, 0).UTC())
			if n.Year() == year && n.Month() == month {
				return n.Unix()
			}
		}
		from = 1
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return never
}

// MonthDay is a day whose date depends on the month.
type MonthDay struct {
	Kind MonthDayKind
	N    int // of BeforeLast, Nearest and Nth
	// Weekday of Nth and LastOf: 1 to 7, Monday is 1.
	Weekday int
}

// MonthDayKind says how a day of a month is found.
type MonthDayKind string

// The kinds of days of a month. A weekday without a name is a day from Monday to Friday.
const (
	MonthDayBeforeLast  MonthDayKind = "before_last"  // N days before the last day, from 0 on
	MonthDayNearest     MonthDayKind = "nearest"      // the weekday nearest to day N
	MonthDayLastWeekday MonthDayKind = "last_weekday" // the last weekday
	MonthDayNth         MonthDayKind = "nth"          // the N-th Weekday
	MonthDayLastOf      MonthDayKind = "last_of"      // the last Weekday
)

func (m *monthDays) listDates() (days []MonthDay) {
	for b := m.last; b != 0; b &= b - 1 {
		days = append(days, MonthDay{Kind: MonthDayBeforeLast, N: bits.TrailingZeros32(b)})
	}
	for b := m.nearest; b != 0; b &= b - 1 {
		days = append(days, MonthDay{Kind: MonthDayNearest, N: bits.TrailingZeros32(b)})
	}
	if m.lastWeekday {
		days = append(days, MonthDay{Kind: MonthDayLastWeekday})
	}
	return days
}

func (m *monthDays) listWeekdays() (days []MonthDay) {
	for _, n := range []int{1, 2, 3, 4, 5, 0} {
		kind := MonthDayNth
		if n == 0 {
			kind = MonthDayLastOf
		}
		for d := 1; d <= 7; d++ {
			if m.nth[n]>>(d%7)&1 == 1 {
				days = append(days, MonthDay{Kind: kind, N: n, Weekday: d})
			}
		}
	}
	return days
}

func (d MonthDay) english() string {
	switch d.Kind {
	case MonthDayBeforeLast:
		switch d.N {
		case 0:
			return "the last day of the month"
		case 1:
			return "the day before the last day of the month"
		}
		return "the day " + strconv.Itoa(d.N) + " days before the last day of the month"
	case MonthDayNearest:
		return "the weekday nearest to day " + strconv.Itoa(d.N) + " of the month"
	case MonthDayLastWeekday:
		return "the last weekday of the month"
	}
	which := [...]string{"last", "first", "second", "third", "fourth", "fifth"}[d.N]
	return "the " + which + " " + time.Weekday(d.Weekday%7).String() + " of the month"
}
