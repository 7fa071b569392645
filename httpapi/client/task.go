package client

import "time"

// Task is one occurrence of a timer and what became of it.
type Task struct {
	Key        string    `json:"key"` // <timer id>_<due in Unix ms>, for ever the same
	TimerID    string    `json:"timer_id"`
	App        string    `json:"app"`
	Name       string    `json:"name,omitempty"`
	Due        time.Time `json:"due"`
	DueLast    time.Time `json:"due_last,omitzero"` // of a record of several dues
	Count      int64     `json:"count,omitempty"`   // how many they are; 0: one
	Origin     string    `json:"origin"`            // schedule, manual, redrive, catch_up
	Status     string    `json:"status"`            // Waiting, Running … Unknown
	Reason     string    `json:"reason,omitempty"`
	LatenessMS *float64  `json:"lateness_ms,omitempty"` // nil: it was not sent
	// HeldMS is for how long it was held: by a pause, or by the limit of a key of its flow.
	// Holds has what held it.
	HeldMS float64 `json:"held_ms,omitempty"`
	Holds  []Hold  `json:"holds,omitempty"`
	// NextAttempt is set while it waits for one; while it is held, it is an estimate.
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`
	// Dismissed is when somebody said that nothing is left to do about the failure, and
	// DismissedBy the name of the token.
	Dismissed   time.Time `json:"dismissed,omitzero"`
	DismissedBy string    `json:"dismissed_by,omitempty"`
	// AttemptCount is how often it was called so far. Attempts has all of them where the
	// task was asked for by its key, and the last one in lists.
	AttemptCount int       `json:"attempt_count"`
	Attempts     []Attempt `json:"attempts"`
}

// Hold is what held a task that was due, and for how long.
type Hold struct {
	By   string  `json:"by"` // pause, quota, flow, cooldown, breaker
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

// Attempt is one HTTP call for a task.
type Attempt struct {
	N          int       `json:"n"`
	Started    time.Time `json:"started"`
	TookMS     float64   `json:"took_ms"`
	Code       int       `json:"code,omitempty"` // status of the answer; 0: there was none
	ErrorClass string    `json:"error_class,omitempty"`
	Secret     string    `json:"secret,omitempty"`     // of secret_missing: its name
	Response   string    `json:"response,omitempty"`   // the first KiB of the answer
	Batch      string    `json:"batch,omitempty"`      // the id of the batch that it was in
	BatchSize  int       `json:"batch_size,omitempty"` // how many tasks the batch had
	PhasesUS   *Phases   `json:"phases_us,omitempty"`
}

// Phases say where an attempt spent its time, in µs, one after the other. The
// last one that is not zero is the one in which it ended.
type Phases struct {
	Wheel     int64 `json:"wheel"`          // from its due, or its retry's time, until it left the wheel
	Hold      int64 `json:"hold,omitempty"` // for how long it was held
	Queue     int64 `json:"queue"`          // until a worker and a connection to its target were free
	Dial      int64 `json:"dial"`           // DNS and TCP; 0 on a kept connection
	TLS       int64 `json:"tls"`            // 0 on a kept connection, and without TLS
	Send      int64 `json:"send"`           // handing the request to the socket
	FirstByte int64 `json:"first_byte"`     // until the answer began
	Read      int64 `json:"read"`           // until the answer's end
}

// TaskFilter selects tasks; fields that are not set select all.
type TaskFilter struct {
	App      string
	TimerID  string
	Statuses []string
	From, To time.Time // From ≤ due < To
	Origin   string
	Code     string // of the last attempt: 503, 5xx, or an error class such as timeout
	Search   string // a part of the name or of the failure; ASCII letters of either case are the same
	// Dismissed selects tasks that were dismissed, or those that were not; nil: both, but
	// RetryAll and Failures leave out what was dismissed.
	Dismissed *bool
	// All must be set for a bulk operation without another field.
	All bool
}

// TaskList is a page of tasks. It may be short and still have a NextCursor.
type TaskList struct {
	Tasks      []Task `json:"tasks"`
	NextCursor string `json:"next_cursor,omitempty"`
	// Partial: a node of the cluster did not respond, and tasks in its memory may be missing.
	Partial bool `json:"partial,omitempty"`
}

// Failing reports whether the last thing known of the task is a failure: it ended as one,
// or it waits to be tried again after one.
func (t *Task) Failing() bool {
	switch t.Status {
	case Failed, Dead, Missed, Unknown, Retrying:
		return true
	}
	return false
}
