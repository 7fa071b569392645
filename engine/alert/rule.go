package alert

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
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
	On        []string      `json:"on"` // see words
	Match     Match         `json:"match,omitzero"`
	After     int           `json:"after,omitempty"`  // so many within Within
	Within    time.Duration `json:"within,omitempty"` //
	Streak    int           `json:"streak,omitempty"` // or so many of a timer in a row
	Late      time.Duration `json:"late,omitempty"`   // of late: a first attempt is later than this
	Over      int           `json:"over,omitempty"`   // of backlog: more tasks are overdue
	For       time.Duration `json:"for,omitempty"`    // likewise: for so long
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

// NewRule is a rule with every default filled in.
func NewRule() Rule {
	return Rule{
		After: 1, Within: 10 * time.Minute, Late: time.Second, Over: 1000, For: time.Minute,
		By: "timer", Repeat: 4 * time.Hour, Recovered: true, Severity: "warning",
	}
}

// words are what a rule may be about: bits of a wordSet. The first are the final statuses of
// tasks, then a first attempt that is late; the rest are states.
var words = map[string]int{
	"failed": int(engine.Failed), "dead": int(engine.Dead), "unknown": int(engine.Unknown), "missed": int(engine.Missed),
	"late":    int(firstAttempt),
	"backlog": 16, "breaker": 17, "paused": 18, "quota": 19,
	"channel": 22, "tier": 23, "clock": 24, "disk": 25, "memory": 26, "early": 27, "audit": 28, "verify": 29,
}

// Sets of words.
const (
	allStates    wordSet = 0x3fff_0000
	systemStates wordSet = 0x3fc0_0000 // of the app "*" only
	stays        wordSet = 7 << 27     // early, audit, verify: what was found does not end by itself
)

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
	return (m.Label == "" || t.Label(key) == value) && (m.Target == "" || flow.TargetOf(t.Callback.URL) == flow.TargetOf(m.Target))
}

func setOf(on []string) (set wordSet) {
	for _, w := range on {
		set |= 1 << words[w]
	}
	return set
}

func between(d, low, high time.Duration) bool { return low <= d && d <= high }

// checkWords returns an error for words that a rule of the app cannot have.
func (r *Rule) checkWords(app string) error {
	if len(r.On) < 1 || len(r.On) > 10 {
		return engine.Invalid("on", "out_of_range", "must have 1 to 10 words")
	}
	for _, w := range r.On {
		if _, ok := words[w]; !ok {
			return engine.Invalid("on", "unknown_value", "must have words from failed, dead, unknown, missed, late, backlog, breaker, paused, quota; and, in the app *, channel, tier, clock, disk, memory, early, audit, verify")
		}
	}
	set := setOf(r.On)
	switch {
	case set&systemStates != 0 && app != "*":
		return engine.Invalid("on", "system_event", "must not have channel, tier, clock, disk, memory, early, audit or verify: these are of the service, and for rules of the app *")
	case r.Streak != 0 && set&(allStates|1<<firstAttempt) != 0:
		return engine.Invalid("streak", "out_of_range", "must be given only with failed, dead, unknown and missed")
	case set.has(firstAttempt) && !between(r.Late, time.Millisecond, time.Hour):
		return engine.Invalid("late", "out_of_range", "must be between 1ms and 1h")
	case r.Over < 1:
		return engine.Invalid("over", "out_of_range", "must be at least 1")
	case !between(r.For, 10*time.Second, time.Hour):
		return engine.Invalid("for", "out_of_range", "must be between 10s and 1h")
	}
	return nil
}

// Check returns an error for a rule that cannot be in force in an app.
func (r *Rule) Check(app string) error {
	if err := r.checkWords(app); err != nil {
		return err
	}
	switch {
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
	if scheme, host, _ := strings.Cut(flow.TargetOf(m.Target), "://"); m.Target != "" && (scheme != "http" && scheme != "https" || strings.HasPrefix(host, ":")) {
		return engine.Invalid("match.target", "bad_url", "must be like https://api.example.com:443")
	}
	return nil
}

// read decodes the body of an object; what does not decode is left out.
func read[T any](o *engine.Object) (v T, ok bool) {
	ok = json.Unmarshal(o.Body, &v) == nil
	return v, ok
}

// rulesOf are the rules that name a channel.
func (a *Alerter) rulesOf(channel engine.ObjectKey) (users []string) {
	for _, o := range a.cfg.Objects.List(RuleKind, channel.App) {
		if r, _ := read[Rule](o); slices.Contains(r.Channels, channel.Name) {
			users = append(users, "rule "+o.Name)
		}
	}
	return users
}
