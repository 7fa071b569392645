package checker

import (
	"strconv"
	"strings"
	"time"
)

// monthDays parts the items of a field that depend on the month from the others.
func monthDays(text string) (rest string, days []string) {
	var others []string
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		if strings.HasPrefix(item, "L") || strings.HasSuffix(item, "L") || strings.Contains(item, "#") ||
			strings.HasSuffix(item, "W") && !strings.HasPrefix(item, "W") {
			days = append(days, item)
		} else {
			others = append(others, item)
		}
	}
	return strings.Join(others, ","), days
}

// onMonthDay reports whether a reading is on the day that an item names, by the
// definition of the item:
//
//	L      tomorrow is another month          L-3  three days later is the month's last day
//	15W    no other weekday of the month is nearer to day 15
//	LW     a weekday, and none follows in the month
//	5L     a Friday, and none follows         5#2  the Friday of the second seven days
func onMonthDay(item string, at time.Time) bool {
	day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	inMonth := func(t time.Time) bool { return t.Month() == day.Month() }
	works := func(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }
	later := func(n int) time.Time { return day.AddDate(0, 0, n) }
	named := func(text string) bool {
		if n, err := strconv.Atoi(text); err == nil {
			return int(day.Weekday()) == n%7
		}
		return strings.EqualFold(day.Weekday().String()[:3], text)
	}
	switch {
	case item == "LW":
		for n := 1; inMonth(later(n)); n++ {
			if works(later(n)) {
				return false
			}
		}
		return works(day)
	case strings.HasPrefix(item, "L"):
		n, _ := strconv.Atoi(strings.TrimPrefix(item[1:], "-"))
		return inMonth(later(n)) && !inMonth(later(n+1))
	case strings.HasSuffix(item, "W"):
		n, _ := strconv.Atoi(item[:len(item)-1])
		date := time.Date(day.Year(), day.Month(), n, 0, 0, 0, 0, time.UTC)
		far := day.Sub(date).Abs()
		if !inMonth(date) || !works(day) {
			return false
		}
		for d := date.Add(-far + 24*time.Hour); d.Before(date.Add(far)); d = d.AddDate(0, 0, 1) {
			if inMonth(d) && works(d) {
				return false
			}
		}
		return true
	case strings.HasSuffix(item, "L"):
		return named(item[:len(item)-1]) && !inMonth(later(7))
	}
	name, n, _ := strings.Cut(item, "#")
	return named(name) && strconv.Itoa((day.Day()-1)/7+1) == n
}
