package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"xtimer/engine"
)

// Limits of a definition.
const (
	maxApp        = 64
	maxName       = 256
	maxLabels     = 32
	maxLabelKey   = 64
	maxLabelValue = 128
	minTimeout    = 10 * time.Millisecond
	maxTimeout    = 10 * time.Minute
	maxAttempts   = 100
	maxMultiplier = 100
	maxBackoff    = 24 * time.Hour
	maxMaxAge     = 30 * 24 * time.Hour
	minStaleAfter = 10 * time.Millisecond
	maxStaleAfter = 24 * time.Hour
	maxWindow     = 366 * 24 * time.Hour
	maxPriority   = 9
	maxFlow       = 4
	maxFlowKey    = 128
)

// checks collects what is wrong with a definition.
type checks struct {
	faults []engine.FieldFault
	code   string // of the fault; "": invalid_timer
}

// want notes a fault of a field unless ok.
func (c *checks) want(ok bool, field, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, engine.FieldFault{Field: field, Detail: fmt.Sprintf(format, args...)})
	}
}

func (c *checks) err(field string, err error) {
	if err != nil {
		c.want(false, field, "%v", err)
	}
}

func (c *checks) between(v, lo, hi time.Duration, field string) {
	c.want(lo <= v && v <= hi, field, "%v is not in the range %v to %v", v, lo, hi)
}

func (c *checks) fault() error {
	if len(c.faults) == 0 {
		return nil
	}
	f := &engine.Fault{Kind: engine.FaultInvalid, Code: cmp.Or(c.code, "invalid_timer"), Fields: c.faults}
	f.Detail = c.faults[0].Field + ": " + c.faults[0].Detail
	if n := len(c.faults) - 1; n > 0 {
		f.Detail += fmt.Sprintf(" (and %d more)", n)
	}
	return f
}

// Validate checks all of a definition that can be judged without knowing the
// time: nil, or a *Fault with everything that is wrong, field by field. What is
// valid may still have nothing due: see Resolve.
func Validate(d *engine.Definition) error {
	var c checks
	c.names(d)
	c.schedule(&d.Schedule)
	c.callback(&d.Callback)

	r := &d.Retry
	c.want(1 <= r.MaxAttempts && r.MaxAttempts <= maxAttempts, "retry.max_attempts", "%d is not in the range 1 to %d", r.MaxAttempts, maxAttempts)
	c.between(r.Backoff, time.Millisecond, maxBackoff, "retry.backoff")
	c.want(1 <= r.Multiplier && r.Multiplier <= maxMultiplier, "retry.multiplier", "%v is not in the range 1 to %d", r.Multiplier, maxMultiplier)
	c.between(r.MaxBackoff, max(time.Millisecond, min(r.Backoff, maxBackoff)), maxBackoff, "retry.max_backoff")
	c.want(0 <= r.Jitter && r.Jitter <= 1, "retry.jitter", "%v is not in the range 0 to 1", r.Jitter)
	c.between(r.MaxAge, time.Millisecond, maxMaxAge, "retry.max_age")
	if d.StaleAfter != 0 {
		c.between(d.StaleAfter, minStaleAfter, maxStaleAfter, "stale_after")
	}

	c.want(d.Misfire.Policy <= engine.MisfireAll, "misfire.policy", "must be latest, skip or all")
	c.between(d.Misfire.Window, 0, maxWindow, "misfire.window")
	c.want(d.Overlap <= engine.OverlapQueue, "overlap", "must be allow, skip or queue")
	c.want(d.Delivery <= engine.AtMostOnce, "delivery", "must be at_least_once or at_most_once")
	c.flow(d.Flow.Keys())
	c.want(0 <= d.Priority && d.Priority <= maxPriority, "priority", "%d is not in the range 0 to %d", d.Priority, maxPriority)
	return c.fault()
}

// CheckFlow is Validate of the flow keys of a definition.
func CheckFlow(f engine.Flow) error {
	var c checks
	c.flow(f.Keys())
	return c.fault()
}

func (c *checks) flow(keys []string) {
	if len(keys) > maxFlow {
		c.code = "too_many_flows"
	}
	c.want(len(keys) <= maxFlow, "flow", "has %d keys; at most %d are allowed", len(keys), maxFlow)
	for i, k := range keys {
		c.want(word(k, maxFlowKey, "._:/-"), "flow", "a key must be 1 to %d letters, digits or characters from ._:/-", maxFlowKey)
		c.want(!slices.Contains(keys[:i], k), "flow", "has %q twice", k)
	}
}

var errRequired = errors.New("is required")

func (c *checks) names(d *engine.Definition) {
	const path = "must not be %q: it is a reserved path segment"
	c.want(d.App != "", "app", "%v", errRequired)
	c.want(d.Name != "", "name", "%v", errRequired)
	c.want(!dots(d.App), "app", path, d.App)
	c.want(!dots(d.Name), "name", path, d.Name)
	c.want(d.App == "" || word(d.App, maxApp, "._:-"), "app", "must be 1 to %d letters, digits or characters from ._:-", maxApp)
	c.want(len(d.Name) <= maxName && text(d.Name) && d.Name == strings.TrimSpace(d.Name), "name",
		"must be 1 to %d bytes of UTF-8 without control characters and without leading or trailing space", maxName)

	c.want(len(d.Labels) <= maxLabels, "labels", "has %d entries; at most %d are allowed", len(d.Labels), maxLabels)
	if len(d.Labels) > maxLabels {
		return
	}
	for i, l := range d.Labels {
		field := fieldOf("labels", l.Key)
		c.want(word(l.Key, maxLabelKey, "._/-"), field, "a key must be 1 to %d letters, digits or characters from ._/-", maxLabelKey)
		c.want(len(l.Value) <= maxLabelValue && text(l.Value) && !strings.Contains(l.Value, ","), field,
			"a value must be at most %d bytes of UTF-8 without control characters or commas", maxLabelValue)
		c.want(i == 0 || d.Labels[i-1].Key < l.Key, field, "keys must be unique and sorted")
	}
}

func (c *checks) schedule(s *engine.Schedule) {
	n := 0
	for _, set := range [...]bool{s.Cron != "", s.Every != 0, s.At != 0, s.HasDelay} {
		if set {
			n++
		}
	}
	c.want(n > 0, "schedule", "must have cron, every, at or delay")
	c.want(n <= 1, "schedule", "must have only one of cron, every, at and delay; %d are set", n)

	_, zoneErr := zoneOf(s.TimeZone)
	c.err("schedule.time_zone", zoneErr)
	every, is, err := parseEvery(s.Cron)
	switch {
	case is && err == nil:
		c.every(every, "schedule.cron")
	case is || s.Cron == "":
	case zoneErr == nil: // it will be needed
		_, err = calendarOf(s.Cron, s.TimeZone)
	default:
		_, err = parseCron(s.Cron)
	}
	c.err("schedule.cron", err)
	if s.Every != 0 {
		c.every(s.Every, "schedule.every")
	}
	c.instant(s.At, "schedule.at")
	if s.HasDelay {
		c.want(s.Delay >= 0, "schedule.delay", "%v is in the past", s.Delay)
		c.wholeMs(s.Delay, "schedule.delay")
	}

	c.instant(s.StartAt, "schedule.start_at")
	c.instant(s.EndAt, "schedule.end_at")
	if s.OneShot() {
		const d = "applies to repeating schedules only; this schedule has a single due"
		c.want(s.StartAt == 0, "schedule.start_at", d)
		c.want(s.EndAt == 0, "schedule.end_at", d)
	} else {
		c.want(s.StartAt == 0 || s.EndAt == 0 || s.StartAt < s.EndAt, "schedule.end_at", "must be later than start_at")
	}
	c.want(0 <= s.MaxRuns && s.MaxRuns <= maxRuns, "schedule.max_runs", "%d is not in the range 1 to %d; 0 means no limit", s.MaxRuns, maxRuns)
	c.between(s.Jitter, 0, maxJitter, "schedule.jitter")
	c.wholeMs(s.Jitter, "schedule.jitter")
}

func (c *checks) every(v time.Duration, field string) {
	c.between(v, minEvery, maxEvery, field)
	c.wholeMs(v, field)
}

func (c *checks) wholeMs(v time.Duration, field string) {
	c.want(v%time.Millisecond == 0, field, "%v is not a whole number of milliseconds", v)
}

// instant checks an instant; 0 is none.
func (c *checks) instant(ms int64, field string) {
	c.want(0 <= ms && ms <= engine.MaxDue, field, "%d ms is not between 1970 and the year 9999", ms)
}

// word reports whether s is 1 to n letters, digits and the other characters given.
func word(s string, n int, others string) bool {
	if s == "" || len(s) > n {
		return false
	}
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte(others, s[i]) < 0 {
			return false
		}
	}
	return true
}

// text reports whether s is UTF-8 without control characters.
func text(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// dots reports whether a name would lead elsewhere in a path.
func dots(s string) bool { return s == "." || s == ".." }

// fieldOf names a field within another; what is no plain key is quoted.
func fieldOf(parent, key string) string {
	if word(key, maxLabelKey, "._/-") {
		return parent + "." + key
	}
	return fmt.Sprintf("%s.%.80q", parent, key)
}
