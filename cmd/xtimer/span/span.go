package span

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
)

// Value is the value of a flag or a setting.
type Value time.Duration

func (v *Value) String() string { return Format(time.Duration(*v)) }

func (v *Value) Type() string { return "duration" }

func (v *Value) Set(s string) error {
	d, err := Parse(s)
	if err == nil {
		*v = Value(d)
	}
	return err
}

const day = 24 * time.Hour

// Parse reads a Go duration that may begin with days: 7d, 1d12h, 90m.
func Parse(s string) (time.Duration, error) {
	d, ok := spanOf(s)
	if ok {
		return d, nil
	}
	// With one digit a number each is small enough: then only the form counts.
	if _, ok := spanOf(numbers.ReplaceAllString(s, "1")); ok {
		return 0, fmt.Errorf("%q is out of range: a duration is at most %dd, which is 292 years", s, maxDays)
	}
	return 0, fmt.Errorf("%q is not a duration such as 250ms, 30m or 7d", s)
}

var numbers = regexp.MustCompile("[0-9]+")

const maxDays = uint64(math.MaxInt64 / day)

func spanOf(s string) (d time.Duration, ok bool) {
	head, rest, days := strings.Cut(s, "d")
	if !days {
		head, rest = "", s
	}
	if days {
		n, err := strconv.ParseUint(head, 10, 64)
		if err != nil || n > maxDays {
			return 0, false
		}
		d = time.Duration(n) * day
	}
	if rest != "" {
		r, err := time.ParseDuration(rest)
		if err != nil || days && r < 0 || d+r < d && days {
			return 0, false
		}
		d += r
	}
	return d, s != ""
}

// Format writes whole days as such, all else as Go does without empty units.
func Format(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Away says how far off an instant is, in its two largest units.
func Away(d time.Duration) string {
	units := []struct {
		name string
		d    time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		if d < u.d && u.name != "s" {
			continue
		}
		s := fmt.Sprintf("in %d%s", d/u.d, u.name)
		if i+1 < len(units) {
			next := units[i+1]
			s += fmt.Sprintf(" %d%s", d%u.d/next.d, next.name)
		}
		return s
	}
	return ""
}

// Millis writes a duration in ms with the digits that matter.
func Millis(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	if v < 10 {
		return fmt.Sprintf("%.2f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

// CheckSeconds refuses a number that is a Unix time in seconds where it lies in 1973 or
// later: as ms it lies in 1970, and no timer is of then.
func CheckSeconds(s string) error {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && 1e8 <= n && n < 1e11 {
		return fmt.Errorf("%s is %s: numbers are Unix time in milliseconds; did you mean seconds? Then write %s000", s, engine.FormatInstant(n), s)
	}
	return nil
}

// Moment reads RFC 3339, Unix ms, or how long ago something was.
func Moment(s string, now time.Time) (int64, error) {
	if err := CheckSeconds(s); err != nil {
		return 0, err
	}
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms > 0 && ms <= engine.MaxDue {
		return ms, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UnixMilli(), nil
	}
	if ago, err := Parse(s); err == nil && ago >= 0 {
		return now.Add(-ago).UnixMilli(), nil
	}
	return 0, fmt.Errorf("%q is neither a time like 2026-11-20T17:00:00Z, nor Unix ms, nor how long ago, like 24h or 7d", s)
}
