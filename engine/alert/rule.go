package alert

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"xtimer/engine"
)

// The kinds of objects of this package.
const (
	ChannelKind = "alert_channel"
	RuleKind    = "alert_rule"
	MuteKind    = "alert_mute"

	incidentKind = "alert_incident" // made by the program
	cursorKind   = "alert_cursor"   // likewise
)

// Rule says which ends of tasks make an incident, and who is told.
type Rule struct {
	On        []string      `json:"on"` // failed, dead, unknown, missed
	Match     Match         `json:"match,omitzero"`
	After     int           `json:"after,omitempty"`  // so many within Within
	Within    time.Duration `json:"within,omitempty"` //
	Streak    int           `json:"streak,omitempty"` // or so many of a timer in a row
	By        string        `json:"by"`               // timer, target, app, rule: what has an incident of its own
	Channels  []string      `json:"channels"`
	Repeat    time.Duration `json:"repeat"` // 0: told once
	Recovered bool          `json:"recovered"`
	Severity  string        `json:"severity"` // critical, warning
}

// Match selects timers; empty fields select all.
type Match struct {
	NamePrefix string `json:"name_prefix,omitempty"`
	Label      string `json:"label,omitempty"`  // key=value
	Target     string `json:"target,omitempty"` // scheme://host:port
}

// Mute has incidents recorded and not sent until an instant.
type Mute struct {
	Match  Match  `json:"match,omitzero"`
	Until  int64  `json:"until"` // Unix ms
	Reason string `json:"reason,omitempty"`
}

// NewRule is a rule with every default filled in.
func NewRule() Rule {
	return Rule{After: 1, Within: 10 * time.Minute, By: "timer", Repeat: 4 * time.Hour, Recovered: true, Severity: "warning"}
}

var statuses = map[string]engine.TaskStatus{
	"failed": engine.Failed, "dead": engine.Dead, "unknown": engine.Unknown, "missed": engine.Missed,
}

// needsTimer reports whether the definition of a timer is needed to match.
func (m *Match) needsTimer() bool { return m.Label != "" || m.Target != "" }

// matches reports whether a timer is selected; t may be nil if the definition is not needed.
func (m *Match) matches(name string, t *engine.Timer) bool {
	if !strings.HasPrefix(name, m.NamePrefix) {
		return false
	}
	if !m.needsTimer() {
		return true
	}
	if t == nil {
		return false
	}
	key, value, _ := strings.Cut(m.Label, "=")
	return (m.Label == "" || t.Label(key) == value) && (m.Target == "" || engine.TargetOf(t.Callback.URL) == m.Target)
}

// Check returns an error for a rule that cannot be in force.
func (r *Rule) Check() error {
	between := func(d, low, high time.Duration) bool { return low <= d && d <= high }
	switch {
	case len(r.On) < 1 || len(r.On) > 10:
		return engine.Invalid("on", "out_of_range", "must have 1 to 10 words")
	case slices.ContainsFunc(r.On, func(w string) bool { _, ok := statuses[w]; return !ok }):
		return engine.Invalid("on", "unknown_value", "must have the words failed, dead, unknown and missed")
	case len(r.Channels) < 1 || len(r.Channels) > 10:
		return engine.Invalid("channels", "out_of_range", "must name 1 to 10 channels")
	case r.Streak != 0 && (r.Streak < 2 || r.Streak > 1000):
		return engine.Invalid("streak", "out_of_range", "must be between 2 and 1000")
	case r.Streak != 0 && r.By != "timer":
		return engine.Invalid("by", "out_of_range", "must be timer with a streak, which is of one timer")
	case r.After < 1 || r.After > 10_000:
		return engine.Invalid("after", "out_of_range", "must be between 1 and 10000")
	case !between(r.Within, 10*time.Second, 24*time.Hour):
		return engine.Invalid("within", "out_of_range", "must be between 10s and 24h")
	case r.Repeat != 0 && !between(r.Repeat, time.Minute, 7*24*time.Hour):
		return engine.Invalid("repeat", "out_of_range", "must be 0, or between 1m and 168h")
	case !slices.Contains([]string{"timer", "target", "app", "rule"}, r.By):
		return engine.Invalid("by", "unknown_value", "must be timer, target, app or rule")
	case r.Severity != "critical" && r.Severity != "warning":
		return engine.Invalid("severity", "unknown_value", "must be critical or warning")
	}
	return r.Match.check()
}

func (m *Match) check() error {
	if m.Label != "" && strings.Count(m.Label, "=") != 1 {
		return engine.Invalid("match.label", "out_of_range", "must be one term like team=a")
	}
	return nil
}

// maxMute is for how long a mute may be.
const maxMute = 30 * 24 * time.Hour

// Check returns an error for a mute that cannot be in force.
func (m *Mute) Check(now time.Time) error {
	if until := time.UnixMilli(m.Until); !until.After(now) || until.After(now.Add(maxMute)) {
		return engine.Invalid("until", "out_of_range", "must be a time within the next 30 days")
	}
	return m.Match.check()
}

// read decodes the body of an object; what does not decode is left out.
func read[T any](o *engine.Object) (v T, ok bool) {
	ok = json.Unmarshal(o.Body, &v) == nil
	return v, ok
}
