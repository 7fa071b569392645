package plan

import (
	_ "embed"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// monthDayDues are dues by other implementations: the first line names them.
//
//go:embed testdata/monthdays.tsv
var monthDayDues string

func TestMonthDaysAsOthersHaveThem(t *testing.T) {
	for line := range strings.Lines(monthDayDues) {
		spec, dues, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		c, err := calendarOf(spec, "UTC")
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		first := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC).UnixMilli()
		at, n := first, int64(0)
		for due := range strings.FieldsSeq(dues) {
			at = c.next(at)
			n++
			if got := time.UnixMilli(at).UTC().Format("2006-01-02T15:04"); got != due {
				t.Errorf("%q: due %d is %s, want %s", spec, n, got, due)
				break
			}
		}
		if got := c.count(first, at); got != n {
			t.Errorf("%q: counts %d dues, has %d", spec, got, n)
		}
	}
}

// A day of a month by its definition, by looking at each day.
func isMonthDay(item string, day time.Time) bool {
	last := time.Date(day.Year(), day.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	isWeekday := func(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }
	switch {
	case item == "L":
		return day.Equal(last)
	case item == "LW":
		for !isWeekday(last) {
			last = last.AddDate(0, 0, -1)
		}
		return day.Equal(last)
	case strings.HasPrefix(item, "L-"):
		n, _ := strconv.Atoi(item[2:])
		return day.Equal(last.AddDate(0, 0, -n))
	case strings.HasSuffix(item, "W"):
		n, _ := strconv.Atoi(item[:len(item)-1])
		if n > last.Day() {
			return false
		}
		target := time.Date(day.Year(), day.Month(), n, 0, 0, 0, 0, time.UTC)
		for distance := range 3 { // no two weekdays are equally near
			for _, d := range []int{-distance, distance} {
				if at := target.AddDate(0, 0, d); at.Month() == day.Month() && isWeekday(at) {
					return day.Equal(at)
				}
			}
		}
	case strings.HasSuffix(item, "L"):
		return strconv.Itoa(int(day.Weekday())) == item[:1] && day.AddDate(0, 0, 7).Month() != day.Month()
	case item[1] == '#':
		return strconv.Itoa(int(day.Weekday())) == item[:1] && strconv.Itoa((day.Day()+6)/7) == item[2:]
	}
	return false
}

// Each day of 28 years, after which the days of the week come again on the same dates, and
// what is counted over them.
func TestMonthDays(t *testing.T) {
	var items []string
	for n := 1; n <= 31; n++ {
		items = append(items, strconv.Itoa(n)+"W")
	}
	for n := 1; n <= mostBefore; n++ {
		items = append(items, "L-"+strconv.Itoa(n))
	}
	items = append(items, "L", "LW")
	dates := len(items)
	for d := range 7 {
		items = append(items, strconv.Itoa(d)+"L")
		for n := 1; n <= 5; n++ {
			items = append(items, strconv.Itoa(d)+"#"+strconv.Itoa(n))
		}
	}
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, item := range items {
		spec := "30 12 " + item + " * *"
		if i >= dates {
			spec = "30 12 * * " + item
		}
		c, err := calendarOf(spec, "UTC")
		if err != nil {
			t.Fatalf("%q: %v", spec, err)
		}
		r := rand.New(rand.NewPCG(1, uint64(i)))
		due, counted, n := from.UnixMilli(), int64(0), int64(0)
		for day := from; day.Year() < 2048; day = day.AddDate(0, 0, 1) {
			if !isMonthDay(item, day) {
				continue
			}
			n++
			if due = c.next(due); due != day.UnixMilli()+12*3_600_000+1_800_000 {
				t.Fatalf("%q: has %s, want %s", spec, time.UnixMilli(due).UTC(), day.Format(time.DateOnly))
			}
			if r.IntN(50) == 0 {
				if counted = c.count(from.UnixMilli(), due); counted != n {
					t.Fatalf("%q: counts %d up to %s, want %d", spec, counted, day.Format(time.DateOnly), n)
				}
			}
		}
	}
}

func TestMonthDaysInWords(t *testing.T) {
	for spec, want := range map[string]string{
		"0 9 L * *":           "At 09:00, on the last day of the month, UTC",
		"0 9 L-3 1 *":         "At 09:00, on the day 3 days before the last day of the month, in January, UTC",
		"0 9 1,LW * *":        "At 09:00, on day 1 of the month, and besides on the last weekday of the month, UTC",
		"0 9 15W * *":         "At 09:00, on the weekday nearest to day 15 of the month, UTC",
		"0 9 * * FRIL":        "At 09:00, on the last Friday of the month, UTC",
		"0 9 * * mon#1,wed#3": "At 09:00, on the first Monday of the month and the third Wednesday of the month, UTC",
		"0 9 * * TUE,5L":      "At 09:00, Tuesday, and besides on the last Friday of the month, UTC",
		"0 9 13 * 5L":         "At 09:00, on day 13 of the month, and besides on the last Friday of the month, UTC",
	} {
		if got := Describe(&engine.Schedule{Cron: spec}); got != want {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
	for spec, code := range map[string]string{
		"0 9 31W * *": "short_months", "0 9 * * FRI#5": "short_months", "0 9 29W 2 *": "leap_day", "0 9 31,L * *": "", "0 9 LW * *": "", "0 9 * * FRI#4": "",
		"0 9 L * FRI": "day_or_weekday",
	} {
		v, err := PreviewSchedule(engine.Schedule{Cron: spec}, 3, time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC).UnixMilli())
		if err != nil || len(v.Warnings) != min(len(code), 1) || code != "" && v.Warnings[0].Code != code {
			t.Errorf("%q: %+v, %v, want %q", spec, v.Warnings, err, code)
		}
	}
}

func TestMonthDaysRefuse(t *testing.T) {
	for spec, want := range map[string]string{
		"0 0 * * L":       "FRIL",
		"0 0 L-0 * *":     "1 to 27",
		"0 0 L-28 * *":    "1 to 27",
		"0 0 L3 * *":      "1 to 27",
		"0 0 32W * *":     "1 to 31",
		"0 0 W * *":       "1 to 31",
		"0 0 LW-3 * *":    "1 to 27",
		"0 0 1-L * *":     "single days",
		"0 0 L/2 * *":     "1 to 27",
		"0 0 * * 5#6":     "1 to 5",
		"0 0 * * 5#":      "1 to 5",
		"0 0 * * 8L":      "0 to 7",
		"0 0 * * FRI#2/2": "1 to 5",
		"0 L * * *":       "single days",
		"0 0 5L * *":      "single days",
		"0 0 * * 15W":     "single days",
		"0 0 * FEBL *":    "single days",
	} {
		if _, err := parseCron(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want … %s …", spec, err, want)
		}
	}
}
