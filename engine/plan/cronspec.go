package plan

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
)

// cronSpec is a parsed cron expression: when it is due by a clock on a wall
// that is never put forward or back.
//
// robfig/cron parses it and finds the next reading, behind guards: its parser
// panics, and its Next spins or hangs, on what some specs and zones ask for.
// Here a spec is checked by a grammar of our own first, and Next only ever sees
// UTC.
type cronSpec struct {
	set   *cron.SpecSchedule
	month monthDays
	// fixedHour tells that hours are named: such a spec is due once for every
	// time of day, whatever is done to the clock. Without it (* or */n, or all
	// 24) it follows elapsed time.
	fixedHour bool
}

const maxSpec = 128 // bytes

var cronParser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

var cronShorthands = map[string]string{
	"@hourly":   "0 0 * * * *",
	"@daily":    "0 0 0 * * *",
	"@midnight": "0 0 0 * * *",
	"@weekly":   "0 0 0 * * 0",
	"@monthly":  "0 0 0 1 * *",
	"@yearly":   "0 0 0 1 1 *",
	"@annually": "0 0 0 1 1 *",
}

// cronField is one of the six fields.
type cronField struct {
	name     string
	min, max int
	names    string // three letters each, from min on
}

var cronFields = [6]cronField{
	{"second", 0, 59, ""},
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of month", 1, 31, ""},
	{"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
	{"day of week", 0, 7, "SUNMONTUEWEDTHUFRISAT"},
}

// parseEvery reads the interval of "@every 1h30m"; is reports whether spec is one.
func parseEvery(spec string) (every time.Duration, is bool, err error) {
	const prefix = "@every"
	if len(spec) < len(prefix) || !strings.EqualFold(spec[:len(prefix)], prefix) {
		return 0, false, nil
	}
	every, err = time.ParseDuration(strings.TrimSpace(spec[len(prefix):]))
	if err != nil || len(spec) > maxSpec {
		return 0, true, errors.New(`@every must be followed by a duration, like "@every 1h30m"`)
	}
	return every, true, nil
}

// parseCron checks and parses a spec of 5 or 6 fields, or a shorthand.
func parseCron(spec string) (s cronSpec, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = cronSpec{}, fmt.Errorf("cannot be parsed: %v", p)
		}
	}()
	if len(spec) > maxSpec {
		return s, fmt.Errorf("has %d bytes; at most %d are allowed", len(spec), maxSpec)
	}
	fields, err := splitCron(spec)
	if err != nil {
		return s, err
	}
	var month monthDays
	for i, f := range cronFields {
		if fields[i], err = f.canonical(fields[i], &month); err != nil {
			return s, fmt.Errorf("%s field: %w", f.name, err)
		}
	}
	sched, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return s, err
	}
	set, ok := sched.(*cron.SpecSchedule)
	if !ok {
		return s, errors.New("is not a calendar expression")
	}
	set.Location = time.UTC
	for i, b := range [6]*uint64{3: &set.Dom, 5: &set.Dow} {
		if fields[i] == onlyMonthDays {
			*b = 0
		}
	}
	for i, b := range [6]uint64{set.Second, set.Minute, set.Hour, set.Dom, set.Month, set.Dow} {
		if b&^cronStar == 0 && fields[i] != onlyMonthDays {
			return s, fmt.Errorf("%s field: no value matches", cronFields[i].name)
		}
	}
	const allHours = 1<<24 - 1
	hour := fields[2]
	wild := !strings.Contains(hour, ",") && (hour[0] == '*' || hour[0] == '?')
	return cronSpec{set, month, !wild && set.Hour&allHours != allHours}, nil
}

// cronStar marks a field as "any" in robfig's bit sets.
const cronStar = 1 << 63

func splitCron(spec string) ([]string, error) {
	if strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ=") {
		return nil, errors.New("the time zone must be given in time_zone, not in the expression")
	}
	for _, c := range spec {
		if (c >= utf8.RuneSelf || !alnum(byte(c))) && !strings.ContainsRune("*?/,-@# \t", c) {
			return nil, fmt.Errorf("%q is not allowed in a cron expression", c)
		}
	}
	spec = strings.TrimSpace(spec)
	if strings.HasPrefix(spec, "@") {
		long, ok := cronShorthands[strings.ToLower(spec)]
		if !ok {
			return nil, fmt.Errorf("%q is not one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and @every", spec)
		}
		spec = long
	}
	fields := strings.Fields(spec)
	switch len(fields) {
	case 5:
		fields = append([]string{"0"}, fields...)
	case 6:
	default:
		return nil, fmt.Errorf("has %d fields; expected 5 (minute hour day-of-month month day-of-week), or 6 with seconds first", len(fields))
	}
	return fields, nil
}

// onlyMonthDays stands for a field that has nothing else.
const onlyMonthDays = "?,?"

// canonical checks a field and rewrites what robfig reads otherwise: Sunday as
// 7 becomes 0. Days that depend on the month are left out, and added to month.
func (f *cronField) canonical(text string, month *monthDays) (string, error) {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if is, err := month.take(f, strings.ToUpper(item)); err != nil {
			return "", err
		} else if is {
			continue
		}
		lo, hi, step, star, err := f.item(item)
		if err != nil {
			return "", err
		}
		if f.max != 7 || star || hi < 7 {
			items = append(items, item)
			continue
		}
		for d := lo; d <= hi; d += step {
			items = append(items, strconv.Itoa(d%7))
		}
	}
	if items == nil {
		return onlyMonthDays, nil
	}
	return strings.Join(items, ","), nil
}

// item takes apart one item of a list: *, n, a-b, each with an optional /step.
func (f *cronField) item(item string) (lo, hi, step int, star bool, err error) {
	fail := func(format string, args ...any) (int, int, int, bool, error) {
		return 0, 0, 0, false, fmt.Errorf(format, args...)
	}
	if item == "" {
		return fail("a list has an empty item")
	}
	body, stepText, hasStep := strings.Cut(item, "/")
	step = 1
	if hasStep {
		if step, err = atoi(stepText); err != nil || step < 1 || step > f.max-f.min {
			return fail("the step in %q must be a number from 1 to %d", item, f.max-f.min)
		}
	}
	if body == "*" || body == "?" {
		return f.min, f.max, step, true, nil
	}
	loText, hiText, isRange := strings.Cut(body, "-")
	if lo, err = f.value(loText); err != nil {
		return fail("%w", err)
	}
	hi = lo
	switch {
	case isRange:
		if hi, err = f.value(hiText); err != nil {
			return fail("%w", err)
		}
		if hi < lo {
			return fail("the range %q runs backwards", body)
		}
	case hasStep: // n/step is n-max/step; a week ends on Saturday, unless it is 7/step
		hi = max(lo, min(f.max, f.last()))
	}
	return lo, hi, step, false, nil
}

// last is the highest value of the field that is no second name of another.
func (f *cronField) last() int {
	if f.max == 7 {
		return 6
	}
	return f.max
}

func (f *cronField) value(s string) (int, error) {
	if len(s) == 3 && f.names != "" {
		if i := strings.Index(f.names, strings.ToUpper(s)); i >= 0 && i%3 == 0 {
			return f.min + i/3, nil
		}
	}
	n, err := atoi(s)
	switch {
	case err == nil && n >= f.min && n <= f.max:
		return n, nil
	case err == nil:
		return 0, fmt.Errorf("%d is not in the range %d to %d", n, f.min, f.max)
	case strings.ContainsAny(s, "LlWw#"):
		return 0, fmt.Errorf("%q: L, W and # stand for single days of a month, like L, L-3, 15W, LW, FRIL and FRI#2", s)
	case f.names != "":
		return 0, fmt.Errorf("%q is not a number or a name such as %s", s, f.names[:3])
	}
	return 0, fmt.Errorf("%q is not a number", s)
}

// atoi reads up to four digits and nothing else.
func atoi(s string) (int, error) {
	if s == "" || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

// never is later than every due: there is none.
const never = 1 << 60

// next is the first matching reading after w, or never. It looks 11 years
// ahead, more than the 8 that may lie between two leap days, the rarest there is.
func (s *cronSpec) next(w int64) int64 {
	if s.month != (monthDays{}) {
		return s.nextByMonth(w)
	}
	t := time.Unix(w, 0).UTC()
	n := s.set.Next(t)
	if n.IsZero() { // robfig gives up at the end of the 5th year
		n = s.set.Next(time.Date(t.Year()+6, 1, 1, 0, 0, -1, 0, time.UTC))
	}
	if n.IsZero() {
		return never
	}
	return n.Unix()
}

// block is what a spec does within a minute, an hour or a day that it is due
// in: how often, and how far into it first and last.
type block struct{ length, count, first, last int64 }

// blocks of the spec: day, hour and minute.
func (s *cronSpec) blocks() [3]block {
	var bs [3]block
	b := block{1, 1, 0, 0}
	for i, set := range [3]uint64{s.set.Second, s.set.Minute, s.set.Hour} {
		set &^= cronStar
		b.count *= int64(bits.OnesCount64(set))
		b.first += b.length * int64(bits.TrailingZeros64(set))
		b.last += b.length * int64(63-bits.LeadingZeros64(set))
		b.length *= [3]int64{60, 60, 24}[i]
		bs[2-i] = b
	}
	return bs
}
