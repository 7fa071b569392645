package alerts

import (
	"slices"
	"time"

	"xtimer/httpapi/client"
)

// Rule is a rule as the API has it: durations as they are written.
type Rule struct {
	App       string    `json:"app"`
	Name      string    `json:"name"`
	On        []string  `json:"on"`
	Match     Match     `json:"match"`
	After     int       `json:"after"`
	Within    string    `json:"within"`
	Streak    int       `json:"streak"`
	Late      string    `json:"late"`
	Over      int       `json:"over"`
	For       string    `json:"for"`
	By        string    `json:"by"`
	Channels  []string  `json:"channels"`
	Repeat    string    `json:"repeat"`
	Recovered bool      `json:"recovered"`
	Severity  string    `json:"severity"`
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`

	Preview *client.RulePreview `json:"-"` // nil: it is not known
}

// Match selects timers.
type Match struct {
	NamePrefix string `json:"name_prefix"`
	Label      string `json:"label"`
	Target     string `json:"target"`
}

// All reports whether all timers are selected.
func (m Match) All() bool { return m == Match{} }

// endings are the words of a rule that are final statuses of tasks.
var endings = []string{"failed", "dead", "unknown", "missed"}

// CountsTasks reports whether the rule is about tasks that ended badly, which a preview counts.
func (r *Rule) CountsTasks() bool {
	return slices.ContainsFunc(r.On, func(w string) bool { return slices.Contains(endings, w) })
}
