package transfer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// years from first to last, without a hole.
type years struct{ first, last int }

// sevenFields takes a cron expression of the original, which gorhill/cronexpr
// reads, apart:
//
//	second minute hour day-of-month month day-of-week year
//
// With 6 fields the second is missing, and with 5 the year too. The result is a
// cron expression of 6 fields, seconds first, which says the same here; and the
// years, nil for all.
func sevenFields(expr string) (cron string, in []years, err error) {
	if slices.Contains(cronexprWords, expr) {
		return expr, nil, nil
	}
	fs := strings.Fields(strings.ToUpper(expr))
	switch len(fs) {
	case 5:
		fs = slices.Concat([]string{"0"}, fs, []string{"*"})
	case 6:
		fs = append([]string{"0"}, fs...)
	case 7:
	default:
		return "", nil, fmt.Errorf("has %d fields; the original accepts 5 to 7", len(fs))
	}
	if in, err = readYears(fs[6]); err != nil {
		return "", nil, err
	}
	// Where both days are given either counts, here as there; but */1 is a given
	// one there, and here it is the same as *.
	for n, all := range map[int]string{3: "1-31", 5: "0-6"} {
		if fs[n] == "*/1" {
			fs[n] = all
		}
	}
	for _, n := range []int{4, 5} {
		fs[n] = shortNames(fs[n])
	}
	return strings.Join(fs[:6], " "), in, nil
}

// cronexprWords are the times that cronexpr has a word for; it knows no @every.
var cronexprWords = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"}

// shortNames turns JANUARY and MONDAY, which cronexpr takes, into JAN and MON.
func shortNames(field string) string {
	var b strings.Builder
	letters := 0
	for _, r := range field {
		if letters++; r < 'A' || r > 'Z' {
			letters = 0
		}
		if letters <= 3 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// The years that cronexpr knows.
const (
	firstYear = 1970
	lastYear  = 2099
)

// readYears reads the field of years: a list of *, n, a-b, each with /step.
func readYears(field string) (in []years, err error) {
	if field == "*" || field == "?" {
		return nil, nil
	}
	var set [lastYear + 2]bool
	for item := range strings.SplitSeq(field, ",") {
		first, last, step, err := readYearItem(item)
		if err != nil {
			return nil, err
		}
		for y := first; y <= last; y += step {
			set[y] = true
		}
	}
	for y := firstYear; y <= lastYear; y++ {
		switch {
		case set[y] && set[y-1]:
			in[len(in)-1].last = y
		case set[y]:
			in = append(in, years{y, y})
		}
	}
	if in == nil {
		return nil, errors.New("no year matches")
	}
	return in, nil
}

// readYearItem reads one of the items that commas part: 2027, 2027-2030, *, each with /step.
func readYearItem(item string) (first, last, step int, err error) {
	body, stepText, hasStep := strings.Cut(item, "/")
	step = 1
	if hasStep {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return 0, 0, 0, fmt.Errorf("years %q: the step is not a number", item)
		}
		step = min(step, lastYear) // which is beyond all of them
	}
	first, last = firstYear, lastYear
	if body != "*" {
		firstText, lastText, isRange := strings.Cut(body, "-")
		if first, err = strconv.Atoi(firstText); err != nil {
			return 0, 0, 0, fmt.Errorf("years %q: %q is no year", item, firstText)
		}
		switch {
		case isRange:
			if last, err = strconv.Atoi(lastText); err != nil {
				return 0, 0, 0, fmt.Errorf("years %q: %q is no year", item, lastText)
			}
		case !hasStep:
			last = first
		}
	}
	if first < firstYear || last > lastYear || first > last {
		return 0, 0, 0, fmt.Errorf("years %q: the range from %d to %d runs backwards", item, firstYear, lastYear)
	}
	return first, last, step, nil
}
