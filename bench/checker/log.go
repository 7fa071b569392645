package checker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of a saved run, one JSON object a line.
const (
	AskedFile   = "asked.jsonl"
	ArrivedFile = "arrived.jsonl"
	BrokenFile  = "broken.jsonl"
)

// Logs are what is known of a run, written by those who were there: who asked,
// who was called, and who broke things. All times are of their clock, which is the
// service's until a fault sets that. Dues, and what the service tells of its timers
// and tasks, are of the service's clock.
type Logs struct {
	Asked   []Asked
	Arrived []Arrived
	Broken  []Broken
}

// What can be asked.
const (
	Run     = "run"     // the first line: how the run is to be judged
	Create  = "create"  // also a change, by another version of the definition
	Change  = "change"  //
	Delete  = "delete"  //
	Disable = "disable" //
	Enable  = "enable"  //
	Trigger = "trigger" // a manual task
	Get     = "get"     // one timer
	List    = "list"    // at the end: the ids of all timers that there are
	Task    = "task"    // at the end: a task, or a run of them, that did not succeed
	Audit   = "audit"   // at the end: violations that the auditor has counted
	Limits  = "limit"   // the limit of a flow key, or of all that match a pattern; none: it is removed
	Pause   = "pause"   // of a flow key, of all that match a pattern, or of an app
	Resume  = "resume"  // likewise
)

// Asked is a request and its answer.
type Asked struct {
	Op       string `json:"op"`
	Invoked  int64  `json:"invoked,omitempty"`  // Unix ms
	Answered int64  `json:"answered,omitempty"` // Unix ms
	// OK: a 2xx. Failed: a definite no. Neither: nobody knows what became of it.
	OK     bool `json:"ok,omitempty"`
	Failed bool `json:"failed,omitempty"`
	Status int  `json:"status,omitempty"`

	Timer   string `json:"timer,omitempty"` // the id
	App     string `json:"app,omitempty"`
	Name    string `json:"name,omitempty"`
	Version int64  `json:"version,omitempty"` // of a get
	// From is the instant from which the definition's dues count (its
	// updated_at, or until), and Anchor that of an interval (created_at).
	From       int64       `json:"from,omitempty"`
	Anchor     int64       `json:"anchor,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
	Result     string      `json:"result,omitempty"` // of a delete: cancelled, in_flight or finished

	IDs        []string   `json:"ids,omitempty"`        // of a list
	Final      *Final     `json:"final,omitempty"`      // of a task
	Violations int64      `json:"violations,omitempty"` // of an audit
	Conditions *Condition `json:"conditions,omitempty"` // of a run

	Flow  string `json:"flow,omitempty"`  // the key, or the pattern; "" of a pause: the app
	Limit *Limit `json:"limit,omitempty"` // of a flow
	Until int64  `json:"until,omitempty"` // Unix ms: of a pause; 0: it has no end
}

// Limit is what a flow key allows. Zero fields limit nothing.
type Limit struct {
	Rate        int    `json:"rate,omitempty"`
	Per         int64  `json:"per,omitempty"` // ms
	Burst       int    `json:"burst,omitempty"`
	Concurrency int    `json:"concurrency,omitempty"`
	Hold        string `json:"hold,omitempty"` // task: see L15
}

// Definition is what of a timer's definition can be judged.
type Definition struct {
	Schedule Schedule `json:"schedule"`
	// RequestSHA is of what the owner said of the request: method, headers, body.
	RequestSHA string `json:"request_sha,omitempty"`
	// Policies; "" and 0 are the defaults of API.md.
	Delivery      string `json:"delivery,omitempty"`
	Overlap       string `json:"overlap,omitempty"`
	Misfire       string `json:"misfire,omitempty"`
	MisfireWindow int64  `json:"misfire_window,omitempty"` // ms
	Timeout       int64  `json:"timeout,omitempty"`        // ms
	StaleAfter    int64  `json:"stale_after,omitempty"`    // ms; 0: max_age alone
	// Flow has the flow keys, with a space between two of them.
	Flow  string `json:"flow,omitempty"`
	Retry Retry  `json:"retry"`
}

// Schedule says when. Jitter is not judged: it is the service's own secret.
type Schedule struct {
	Cron     string `json:"cron,omitempty"`
	TimeZone string `json:"time_zone,omitempty"`
	Every    int64  `json:"every,omitempty"` // ms
	At       int64  `json:"at,omitempty"`    // Unix ms
	MaxRuns  int64  `json:"max_runs,omitempty"`
	StartAt  int64  `json:"start_at,omitempty"`
	EndAt    int64  `json:"end_at,omitempty"`
}

// Retry is the policy of repeated attempts; zeros are the defaults, a Jitter of 0 is none.
type Retry struct {
	MaxAttempts int     `json:"max_attempts,omitempty"`
	Backoff     int64   `json:"backoff,omitempty"` // ms
	Multiplier  float64 `json:"multiplier,omitempty"`
	MaxBackoff  int64   `json:"max_backoff,omitempty"` // ms
	Jitter      float64 `json:"jitter,omitempty"`      // share
	MaxAge      int64   `json:"max_age,omitempty"`     // ms
}

// Final is a task, or a run of them, as history tells it at the end.
type Final struct {
	Due      int64  `json:"due"`
	DueLast  int64  `json:"due_last,omitempty"`
	Status   string `json:"status"`
	Reason   string `json:"reason,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	Base     int    `json:"base,omitempty"`  // attempts before it was asked for again
	Since    int64  `json:"since,omitempty"` // Unix ms: from when it waited; 0: its due
	Ended    int64  `json:"ended,omitempty"` // Unix ms
	// Generation of the timer that it is of; 0: not known.
	Generation uint32 `json:"generation,omitempty"`
}

// Condition says how a run is to be judged.
type Condition struct {
	Ended   int64 `json:"ended"`    // Unix ms: what is due later is not asked for
	InCall  int   `json:"in_call"`  // the most calls that may be in flight
	MinRate int   `json:"min_rate"` // arrivals in the second before each fault, or the run is invalid
	MinOpen int   `json:"min_open"` // calls due or arriving in the 100 ms before each fault, or it is invalid
	Recover int64 `json:"recover"`  // ms: what a fault made late has arrived so long after it
	// MinFull is how many calls of flow keys have to have come as soon as the rate allows, or
	// the run is invalid: see L14.
	MinFull int `json:"min_full,omitempty"`
	// Lateness outside faults (µs), at p50, p99 and the most; 0: not judged. Calm
	// is how long (ms) after a fault it counts as outside; 0: Recover.
	P50, P99, Max int64 `json:",omitempty"`
	Calm          int64 `json:"calm,omitempty"`
	// Settled: lateness is judged of what is due later (Unix ms); 0: of all.
	Settled int64 `json:"settled,omitempty"`
	// Unsynced is how long before a crash (ms) a call may have been answered without its
	// outcome being durable, and OnTheWay how long (ms) a call that was allowed may take
	// until it arrives. 0: 2 s and 1 s, on a machine with more to do than it has cores.
	Unsynced int64 `json:"unsynced,omitempty"`
	OnTheWay int64 `json:"on_the_way,omitempty"`
	// Waits is how long (ms) a call that was handed out may wait for the journal until it is
	// begun. It is looked at where Begun is known.
	Waits int64 `json:"waits,omitempty"`
}

// Arrived is a call that reached the receiver.
type Arrived struct {
	Timer       string `json:"timer"`
	Due         int64  `json:"due"` // Unix ms
	App         string `json:"app"`
	Name        string `json:"name,omitempty"`
	Attempt     int    `json:"attempt"`
	Redelivered bool   `json:"redelivered,omitempty"`
	RequestSHA  string `json:"request_sha,omitempty"`
	At          int64  `json:"at"`   // Unix µs
	Done        int64  `json:"done"` // Unix µs: the earliest that the caller may know of the end; 0: it never did
	// Code that was answered; 0: the receiver dropped it, or never answered.
	Code int `json:"code,omitempty"`
	// What only those know who see the inside; 0: not known. Begun is when the service
	// decided to make the call (Unix µs), Life the process that made it, and Generation
	// that of the timer.
	Begun      int64  `json:"begun,omitempty"`
	Life       int    `json:"life,omitempty"`
	Generation uint32 `json:"generation,omitempty"`
}

// ok reports whether the receiver took the call.
func (a *Arrived) ok() bool { return a.Code >= 200 && a.Code < 300 }

// retryable reports whether the answer asks for another attempt.
func (a *Arrived) retryable() bool {
	return a.Code == 0 || a.Code == 408 || a.Code == 425 || a.Code == 429 || a.Code >= 500
}

// Faults that are told apart; a log may name others.
const (
	Kill      = "kill"      // the process died
	Terminate = "terminate" // it was told to end
	Receiver  = "receiver"  // the receiver was away
	Start     = "start"     // a process looks what is late
	Clock     = "clock"     // the service's clock was set
)

// Broken is a fault: the process was away, or something that it needs.
type Broken struct {
	Fault  string `json:"fault"`
	From   int64  `json:"from"`             // Unix ms
	To     int64  `json:"to"`               // Unix ms: healed, and ready
	Life   int    `json:"life,omitempty"`   // the process that it ended; 0: not known
	Looked int64  `json:"looked,omitempty"` // of a start: what the service's clock showed (Unix ms)
	By     int64  `json:"by,omitempty"`     // ms that the clock was set ahead
}

// Write saves a run to a folder.
func (l *Logs) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return firstError(
		writeLines(filepath.Join(dir, AskedFile), l.Asked),
		writeLines(filepath.Join(dir, ArrivedFile), l.Arrived),
		writeLines(filepath.Join(dir, BrokenFile), l.Broken),
	)
}

// Read reads a run that was saved.
func Read(dir string) (*Logs, error) {
	l := &Logs{}
	return l, firstError(
		readLines(filepath.Join(dir, AskedFile), &l.Asked),
		readLines(filepath.Join(dir, ArrivedFile), &l.Arrived),
		readLines(filepath.Join(dir, BrokenFile), &l.Broken),
	)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func writeLines[T any](name string, lines []T) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range lines {
		if err = json.NewEncoder(w).Encode(&lines[i]); err != nil {
			break
		}
	}
	return firstError(err, w.Flush(), f.Close())
}

func readLines[T any](name string, lines *[]T) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for d, n := json.NewDecoder(in), 1; ; n++ {
		var line T
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: record %d: %w", name, n, err)
		}
		*lines = append(*lines, line)
	}
}
