package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Key names one occurrence of a timer, for ever: whatever crashes, retries or
// is replayed, its attempts carry the same key.
type Key struct {
	Timer TimerID
	Due   int64 // Unix ms
}

// ParseKey reads what String wrote.
func ParseKey(s string) (Key, error) {
	id, due, ok := strings.Cut(s, "_")
	if ok {
		t, err1 := ParseTimerID(id)
		d, err2 := strconv.ParseInt(due, 10, 64)
		if err1 == nil && err2 == nil && d > 0 && d <= MaxDue && due[0] != '+' && due[0] != '0' {
			return Key{t, d}, nil
		}
	}
	return Key{}, fmt.Errorf("%q is not a task key", s)
}

func (k Key) String() string { return string(k.Append(nil)) }

// Compare orders keys by due, then by timer, as history is listed.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Due, o.Due), cmp.Compare(k.Timer, o.Timer))
}

// Append writes the key to b.
func (k Key) Append(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(k.Timer), 10)
	b = append(b, '_')
	return strconv.AppendInt(b, k.Due, 10)
}

// Task is one occurrence and what became of it: the record of history.
type Task struct {
	Key        Key
	App, Name  string
	Generation uint32
	Origin     Origin
	Status     TaskStatus
	Reason     string // why it was not called, or how it died
	// DueLast and Count: a run of consecutive skipped, missed or cancelled
	// dues is one record, from Key.Due to DueLast. Otherwise 0 and 0.
	DueLast int64
	Count   int64
	// Lateness of the first attempt: the request handed to the socket − due.
	// Negative only in a record of a task that was never sent.
	Lateness time.Duration
	Attempts []Attempt
	Holds    []Hold // what held it, at most MaxHolds
	// NotBefore: when the next attempt may start (Unix ms), while retrying.
	NotBefore int64
	// Ended: when it got its final status (Unix ms); 0 before.
	Ended int64
	// Base is the number of the last attempt before the last redrive, and Since
	// the instant (Unix ms) from which max_age counts: the due, or the redrive.
	Base  int
	Since int64
	// Dismissed: when somebody said that nothing is left to do about the failure (Unix ms),
	// 0: nobody did; and DismissedBy names the author, see WithAuthor.
	Dismissed   int64
	DismissedBy string
}

// Attempt is one HTTP call for a task.
type Attempt struct {
	N          int   // 1, 2, …; goes on over crashes and redrives
	Started    int64 // Unix µs: the request handed to the socket, or the dialling when it never was; not before the due
	Took       time.Duration
	Code       int    // HTTP status; 0 when there was none
	ErrorClass string // "" when the target took it: see Class
	Response   []byte // the first KiB of the answer; with SecretMissing, the name of the secret
	Phases     Phases // to the µs
	Batch      uint64 // names the call, of which it is a member; 0: it had a call of its own
	BatchSize  int    // members of the call
}

// LastAttempt is the number of the last attempt made, 0 before the first.
func (t *Task) LastAttempt() int {
	if len(t.Attempts) == 0 {
		return 0
	}
	return t.Attempts[len(t.Attempts)-1].N
}

// Origin is why there is a task.
type Origin uint8

// The origins of tasks.
const (
	FromSchedule Origin = iota
	FromManual
	FromRedrive
	FromCatchUp
)

// TaskStatus says where a task stands.
type TaskStatus uint8

// A task's statuses; all from Succeeded on are final.
const (
	Waiting TaskStatus = iota
	Running
	Retrying
	Succeeded
	Failed    // rejected by its target
	Dead      // attempts or max_age used up
	Skipped   // by overlap or misfire policy, or stale
	Missed    // older than the misfire window
	Cancelled // its timer was changed, disabled or deleted
	Unknown   // at_most_once, may have been sent
)

// Final reports whether nothing more will happen to the task by itself.
func (s TaskStatus) Final() bool { return s >= Succeeded }

// IsFailure reports whether somebody should look: failed, dead, unknown or missed.
// The tiers keep an index of these.
func (s TaskStatus) IsFailure() bool {
	switch s {
	case Failed, Dead, Unknown, Missed:
		return true
	}
	return false
}

// IsMisfire reports whether the task is of dues that were skipped as misfires. The tiers keep
// an index of these, too.
func (t *Task) IsMisfire() bool { return t.Status == Skipped && t.Reason == ReasonMisfire }

// Rank orders the records of one task: more attempts stand above fewer, of the same
// number the final one above one that is not, and one that was dismissed above both.
type Rank struct {
	Attempt          int
	Final, Dismissed bool
	Run              bool // it counts several dues, of which its key has the first
}

// RankOf is the rank of a record; the lowest for none.
func RankOf(t *Task) Rank {
	if t == nil {
		return Rank{}
	}
	return Rank{t.LastAttempt(), t.Status.Final(), t.Dismissed != 0, t.Count > 1}
}

// Below reports whether a record says less than another.
func (r Rank) Below(o Rank) bool {
	if r.Attempt != o.Attempt {
		return r.Attempt < o.Attempt
	}
	return o.Final && !r.Final || r.Final == o.Final && o.Dismissed && !r.Dismissed
}

var (
	originNames     = [...]string{"schedule", "manual", "redrive", "catch_up"}
	taskStatusNames = [...]string{
		"waiting", "running", "retrying", "succeeded", "failed", "dead", "skipped", "missed", "cancelled", "unknown",
	}
)

func (o Origin) String() string     { return originNames[o] }
func (s TaskStatus) String() string { return taskStatusNames[s] }

// ParseOrigin reads an origin's word.
func ParseOrigin(s string) (o Origin, ok bool) {
	i := slices.Index(originNames[:], s)
	return Origin(max(i, 0)), i >= 0
}

// ParseTaskStatus reads a task status's word.
func ParseTaskStatus(s string) (st TaskStatus, ok bool) {
	i := slices.Index(taskStatusNames[:], s)
	return TaskStatus(max(i, 0)), i >= 0
}

// Reasons of tasks that were not called, or not called to the end.
const (
	ReasonOverlap     = "overlap"
	ReasonMisfire     = "misfire"
	ReasonWindow      = "misfire_window"
	ReasonReplaced    = "replaced"
	ReasonDisabled    = "disabled"
	ReasonDeleted     = "deleted"
	ReasonQueueFull   = "overlap_queue_full"
	ReasonAttempts    = "max_attempts"
	ReasonAge         = "max_age"
	ReasonStale       = "stale"
	ReasonRejected    = "rejected"
	ReasonMayHaveBeen = "may_have_been_sent"
	ReasonCrashed     = "crashed"
	ReasonPaused      = "paused"
	ReasonClockReset  = "clock_reset"
)

// Reasons are the reasons of tasks that have ended.
var Reasons = []string{
	ReasonOverlap, ReasonMisfire, ReasonWindow, ReasonReplaced, ReasonDisabled, ReasonDeleted, ReasonQueueFull, ReasonAttempts,
	ReasonAge, ReasonStale, ReasonRejected, ReasonMayHaveBeen, ReasonCrashed, ReasonPaused, ReasonClockReset,
}

// Failure says in a word or two how the task's last attempt went wrong; "" when
// it did not.
func (t *Task) Failure() string {
	if len(t.Attempts) == 0 {
		return t.Reason
	}
	a := &t.Attempts[len(t.Attempts)-1]
	if a.ErrorClass == "status" {
		return "status " + strconv.Itoa(a.Code)
	}
	return a.ErrorClass
}
