package client

import "time"

// Definition is a timer as it is sent: what to call and when. A zero value means
// the server's default; where zero itself says something, the field is a
// pointer: new(0), or before Go 1.26 the address of a variable.
type Definition struct {
	App      string   `json:"app,omitempty"`
	Name     string   `json:"name,omitempty"` // unique within the app
	Schedule Schedule `json:"schedule"`
	Callback Callback `json:"callback"`
	Retry    Retry    `json:"retry,omitzero"`
	Misfire  Misfire  `json:"misfire,omitzero"`
	Overlap  string   `json:"overlap,omitempty"`  // allow, skip, queue
	Delivery string   `json:"delivery,omitempty"` // at_least_once, at_most_once
	Priority *int     `json:"priority,omitempty"` // 0…9
	// StaleAfter: no first attempt starts later than this after the due.
	StaleAfter Duration `json:"stale_after,omitzero"`
	// Flow names keys with limits, at most 4, each of which has to admit a call.
	Flow   []string          `json:"flow,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Schedule is when: exactly one of Cron, Every, At and Delay.
type Schedule struct {
	Cron     string         `json:"cron,omitempty"` // 5 fields, 6 with seconds first, @daily…
	TimeZone string         `json:"time_zone,omitempty"`
	Every    time.Duration  `json:"every,omitzero"`
	At       time.Time      `json:"at,omitzero"`
	Delay    *time.Duration `json:"delay,omitempty"` // by the server's clock
	StartAt  time.Time      `json:"start_at,omitzero"`
	EndAt    time.Time      `json:"end_at,omitzero"`
	MaxRuns  int64          `json:"max_runs,omitempty"`
	Jitter   time.Duration  `json:"jitter,omitzero"`
}

// Callback is the HTTP request of each attempt. At most one of the bodies is
// set; with none, the server sends {"task":…,"timer":…,"app":…,"name":…,
// "due":…,"attempt":…}.
type Callback struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// SecretHeaders are headers whose value is a secret of the app, by the secret's name.
	SecretHeaders map[string]string `json:"-"`
	// Body becomes JSON; read from an answer, it is a json.RawMessage.
	Body       any           `json:"body,omitempty"`
	BodyText   *string       `json:"body_text,omitempty"`
	BodyBase64 []byte        `json:"body_base64,omitzero"` // any bytes; not nil, though empty: an empty body
	Timeout    time.Duration `json:"timeout,omitzero"`
	Success    string        `json:"success,omitempty"` // codes and ranges: 2xx, or 200,202,300-399
	Batch      *Batch        `json:"batch,omitempty"`   // nil: each task has a call of its own
}

// Batch has tasks of timers called together whose callbacks differ in their bodies only.
type Batch struct {
	Max  int      `json:"max"`           // tasks in a call, 2 to 1,000
	Wait Duration `json:"wait,omitzero"` // for more tasks, after the first due; at most 1s
}

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	MaxAttempts int           `json:"max_attempts,omitempty"`
	Backoff     time.Duration `json:"backoff,omitzero"`
	Multiplier  float64       `json:"multiplier,omitempty"`
	MaxBackoff  time.Duration `json:"max_backoff,omitzero"`
	Jitter      *float64      `json:"jitter,omitempty"` // 0…1
	MaxAge      time.Duration `json:"max_age,omitzero"`
}

// Misfire says what becomes of dues that a start finds late.
type Misfire struct {
	Policy string         `json:"policy,omitempty"` // skip, latest, all
	Window *time.Duration `json:"window,omitempty"`
}

// Timer is a timer as the server has it. Its Definition has all defaults filled
// in.
type Timer struct {
	ID string `json:"id"`
	Definition
	Status        string    `json:"status"`            // Enabled, Disabled, Finished
	Deleted       bool      `json:"deleted,omitempty"` // it was deleted since: of a create that repeats an Idempotency-Key
	Reason        string    `json:"reason,omitempty"`  // why it is disabled
	DisabledUntil time.Time `json:"disabled_until,omitzero"`
	Version       int       `json:"version"` // counts every change; for IfMatch
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	UpdatedBy     string    `json:"updated_by,omitempty"` // the name of the token that made this version
	NextDue       time.Time `json:"next_due,omitzero"`
	LastTask      *Task     `json:"last_task,omitempty"`
}

// TimerFilter selects timers; fields that are not set select all.
type TimerFilter struct {
	App        string
	NamePrefix string
	Search     string // a part of the name; ASCII letters of either case are the same
	Status     string
	Label      string // team=a,env!=prod
	// All must be set for a bulk operation without another field.
	All bool
}

// TimerList is a page of timers. It may be short and still have a NextCursor.
type TimerList struct {
	Timers     []Timer `json:"timers"`
	NextCursor string  `json:"next_cursor,omitempty"`
	Total      *Total  `json:"total,omitempty"` // with WithTotal
	// Partial: a node of the cluster did not respond, and Status and LastTask of its timers may
	// be out of date.
	Partial bool `json:"partial,omitempty"`
}

// Total is how many entries a list has: so many, or at least so many.
type Total struct {
	Count int64 `json:"count"`
	Exact bool  `json:"exact"`
}

// PutResult is what a Put or Create did: Created, Updated or Unchanged. A DryRun
// has no Timer.
type PutResult struct {
	Result string `json:"result"`
	Timer  Timer  `json:"timer"` // zero in a dry run
	DryRun bool   `json:"dry_run,omitempty"`
	// Warnings of a dry run name the flow keys that no flow limits, and the secrets that the app does
	// not have.
	Warnings []Warning `json:"warnings,omitempty"`
}

// The words that answers use.
const (
	// Status of a timer.
	Enabled  = "enabled"
	Disabled = "disabled"
	Finished = "finished" // the result of a Delete, too: there was nothing left to cancel

	// Result of a Put.
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"

	// Result of a Delete, and status of a task.
	Cancelled = "cancelled" // no call is made any more
	InFlight  = "in_flight" // a call was running
	// Unknown: the first answer was lost, and now the timer is gone. Of a task
	// that is delivered at most once: it may have been sent.
	Unknown = "unknown"

	// Status of a task.
	Waiting   = "waiting"
	Running   = "running"
	Retrying  = "retrying"
	Succeeded = "succeeded"
	Failed    = "failed" // rejected by its target
	Dead      = "dead"   // attempts or age used up
	Skipped   = "skipped"
	Missed    = "missed"
)
