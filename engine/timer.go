package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Shards is the number of shards that timers are spread over, for ever: a
// timer belongs to one of them for life, and a shard is what a node owns.
const Shards = 256

// MaxDue is the last instant that can be scheduled, in Unix ms: the end of the
// year 9999, the last that RFC 3339 can write.
const MaxDue int64 = 253402300799999

// TimerID names a timer for ever. Ids are positive, 63 bits and ordered by the
// time of creation; in JSON they are strings, for a float64 would round them.
type TimerID uint64

// ParseTimerID reads what String wrote.
func ParseTimerID(s string) (TimerID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || s[0] == '+' || s[0] == '0' {
		return 0, fmt.Errorf("%q is not a timer id", s)
	}
	return TimerID(n), nil
}

func (id TimerID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Shard is the shard that the timer lives in: the top byte of a Fibonacci
// hash, so that neighbouring ids are spread evenly.
func (id TimerID) Shard() int { return int(uint64(id) * 0x9E3779B97F4A7C15 >> 56) }

// Timer is what to call and when, with its place in the system.
//
// A Timer is never changed once it is shared: a change makes a new one.
type Timer struct {
	Definition

	ID TimerID
	// Status as stored. What a reader sees is StatusAt, for the end of a
	// timer is derived, not written.
	Status Status
	// Reason given when it was disabled.
	Reason string
	// Version counts every change, from 1; it is the ETag.
	Version uint32
	// Generation counts the changes that alter which dues there are (schedule,
	// enable, disable): a task of a former generation is cancelled, not sent.
	Generation uint32
	// ValidFrom: only dues later than this instant count (Unix ms). It lies in
	// the future while a timer is disabled with "until", and after the clock was
	// set back, until it is where it was.
	ValidFrom int64
	// Anchor of an "every" schedule, Unix ms.
	Anchor int64
	// At is the due of a one-shot ("at" or "delay" resolved), Unix ms, before
	// jitter; 0 for a recurring timer.
	At int64
	// LastDue is the last due that end_at and max_runs leave (Unix ms, jitter
	// included); 0 when there is no end.
	LastDue int64

	CreatedAt, UpdatedAt int64 // Unix ms
	// UpdatedBy names the author of this version (see WithAuthor); "" for versions
	// that were made before authors had names.
	UpdatedBy string

	// Omitted: this is a Head, which lacks so many bytes of the timer; 0: it is whole.
	Omitted uint32
}

// Definition is the part of a timer that its owner writes. Sameness of two
// requests is equality of their Definitions: as sent, a delay against a delay.
type Definition struct {
	App, Name string
	Schedule  Schedule
	Callback  Callback
	Retry     Retry
	Misfire   Misfire
	Overlap   Overlap
	Delivery  Delivery
	Priority  int // 0…9, counts only when calls have to wait
	Labels    []Label
	// StaleAfter: no first attempt starts later than this after its due; 0: see Retry.MaxAge.
	StaleAfter time.Duration
	// Flow names keys with limits, each of which has to admit a call.
	Flow Flow
}

// Schedule says when. Exactly one of Cron, Every, At and Delay is set.
type Schedule struct {
	Cron     string        // 5 fields, 6 with seconds first, or @daily…
	TimeZone string        // IANA name; empty is UTC
	Every    time.Duration // ≥ 10 ms, whole ms
	At       int64         // Unix ms, as sent
	Delay    time.Duration // whole ms, ≥ 0; valid when HasDelay
	HasDelay bool          // a delay of 0 is a schedule too

	StartAt, EndAt int64 // Unix ms; 0: none
	MaxRuns        int64 // 0: no end
	Jitter         time.Duration
}

// OneShot reports whether the schedule has a single due.
func (s *Schedule) OneShot() bool { return s.At != 0 || s.HasDelay }

// Callback is the HTTP request of each attempt.
type Callback struct {
	URL     string
	Method  string // GET, POST, PUT, PATCH or DELETE
	Headers []Header
	Body    []byte // nil: the default envelope
	HasBody bool
	// BodyKind remembers how the body was sent, for the answer: "body" (JSON),
	// "body_text" or "body_base64".
	BodyKind BodyKind
	Timeout  time.Duration
	Success  string // codes and ranges: "2xx", "200,202,300-399"
	Batch    *Batch // nil: each task has a call of its own
}

// BodyKind is the field in which a body was given.
type BodyKind uint8

// The fields that can carry a body.
const (
	BodyNone BodyKind = iota
	BodyJSON
	BodyText
	BodyBase64
)

// Header is one header of a callback. If Secret is set, each attempt sends the value that the
// secret of this name, of the timer's app, has then; Value is "".
type Header struct{ Name, Value, Secret string }

// Label is one key=value of a timer; a timer's labels are sorted by key.
type Label struct{ Key, Value string }

// Retry is the policy for attempts that failed and may be repeated.
type Retry struct {
	MaxAttempts int
	Backoff     time.Duration
	Multiplier  float64
	MaxBackoff  time.Duration
	Jitter      float64 // 0…1: a wait is spread by ± this share
	// MaxAge: no attempt starts that a task has waited longer for, counted from its due,
	// or from when it was asked for: by hand, by a start, by an enable that catches up.
	MaxAge time.Duration
}

// Misfire is what becomes of dues that a start, a takeover or a forward step of
// the clock found more than 10 s late.
type Misfire struct {
	Policy MisfirePolicy
	Window time.Duration
}

// MisfirePolicy of a recurring timer; a one-shot fires unless it is older than
// the window.
type MisfirePolicy uint8

// The misfire policies: the latest missed due (the default), none, or all.
const (
	MisfireLatest MisfirePolicy = iota
	MisfireSkip
	MisfireAll
)

// Overlap is what happens when a due comes while a task of the same timer is
// still busy: from its first attempt to its final status.
type Overlap uint8

// The overlap policies.
const (
	OverlapAllow Overlap = iota
	OverlapSkip
	OverlapQueue
)

// CatchUp says what an enable does with the dues that passed while it was disabled.
type CatchUp uint8

// Catch nothing up (the default), the latest due, or all of them (≤ 1,000).
const (
	CatchUpNone CatchUp = iota
	CatchUpLatest
	CatchUpAll
)

// Delivery is the promise about repeats.
type Delivery uint8

// The delivery promises.
const (
	AtLeastOnce Delivery = iota
	AtMostOnce
)

// Status of a timer.
type Status uint8

// A timer's statuses.
const (
	Enabled Status = iota
	Disabled
	Finished
)

var (
	misfireNames  = [...]string{"latest", "skip", "all"}
	overlapNames  = [...]string{"allow", "skip", "queue"}
	deliveryNames = [...]string{"at_least_once", "at_most_once"}
	statusNames   = [...]string{"enabled", "disabled", "finished"}
)

func (p MisfirePolicy) String() string { return misfireNames[p] }
func (o Overlap) String() string       { return overlapNames[o] }
func (d Delivery) String() string      { return deliveryNames[d] }
func (s Status) String() string        { return statusNames[s] }

// ParseMisfirePolicy, ParseOverlap, ParseDelivery and ParseStatus read what
// String wrote; ok is false for any other word.
func ParseMisfirePolicy(s string) (p MisfirePolicy, ok bool) {
	i := slices.Index(misfireNames[:], s)
	return MisfirePolicy(max(i, 0)), i >= 0
}

// ParseOverlap reads an overlap policy's word.
func ParseOverlap(s string) (o Overlap, ok bool) {
	i := slices.Index(overlapNames[:], s)
	return Overlap(max(i, 0)), i >= 0
}

// ParseDelivery reads a delivery promise's word.
func ParseDelivery(s string) (d Delivery, ok bool) {
	i := slices.Index(deliveryNames[:], s)
	return Delivery(max(i, 0)), i >= 0
}

// ParseStatus reads a status's word.
func ParseStatus(s string) (st Status, ok bool) {
	i := slices.Index(statusNames[:], s)
	return Status(max(i, 0)), i >= 0
}

// Defaults of a definition, as API.md states them.
const (
	DefaultTimeout       = 15 * time.Second
	DefaultSuccess       = "2xx"
	DefaultMaxAttempts   = 4
	DefaultBackoff       = time.Second
	DefaultMultiplier    = 4.0
	DefaultMaxBackoff    = 5 * time.Minute
	DefaultRetryJitter   = 0.2
	DefaultMaxAge        = 24 * time.Hour
	DefaultMisfireWindow = 24 * time.Hour
	DefaultPriority      = 5
)

// NewDefinition is a definition with every default filled in: the edge decodes
// a request over it.
func NewDefinition() Definition {
	return Definition{
		Callback: Callback{Method: "POST", Timeout: DefaultTimeout, Success: DefaultSuccess},
		Retry: Retry{
			MaxAttempts: DefaultMaxAttempts, Backoff: DefaultBackoff, Multiplier: DefaultMultiplier,
			MaxBackoff: DefaultMaxBackoff, Jitter: DefaultRetryJitter, MaxAge: DefaultMaxAge,
		},
		Misfire:  Misfire{Policy: MisfireLatest, Window: DefaultMisfireWindow},
		Priority: DefaultPriority,
	}
}

// SortLabels turns a map of labels into the sorted form that a Definition holds.
func SortLabels(m map[string]string) []Label {
	if len(m) == 0 {
		return nil
	}
	ls := make([]Label, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		ls = append(ls, Label{k, m[k]})
	}
	return ls
}

// Label is the value of a label, "" when there is none.
func (d *Definition) Label(key string) string {
	for _, l := range d.Labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// Equal reports whether two requests said the same.
func (d *Definition) Equal(o *Definition) bool {
	return d.App == o.App && d.Name == o.Name && d.Schedule == o.Schedule &&
		d.Callback.equal(&o.Callback) && d.Retry == o.Retry && d.Misfire == o.Misfire &&
		d.Overlap == o.Overlap && d.Delivery == o.Delivery && d.Priority == o.Priority && d.StaleAfter == o.StaleAfter && d.Flow == o.Flow &&
		slices.Equal(d.Labels, o.Labels)
}

func (c *Callback) hasSecrets() bool {
	return slices.ContainsFunc(c.Headers, func(h Header) bool { return h.Secret != "" })
}

func (c *Callback) equal(o *Callback) bool {
	return c.URL == o.URL && c.Method == o.Method && slices.Equal(c.Headers, o.Headers) &&
		c.HasBody == o.HasBody && c.BodyKind == o.BodyKind && string(c.Body) == string(o.Body) &&
		c.Timeout == o.Timeout && c.Success == o.Success && c.Batch.equal(o.Batch)
}

// StatusAt is the status that a reader sees. done tells that nothing of the
// timer is unfinished: the watermark of its shard, and no task owed or open.
func (t *Timer) StatusAt(now int64, done bool) Status {
	switch {
	case t.DisabledUntil(now) != 0:
		return Disabled
	case t.Status == Enabled && t.LastDue != 0 && t.LastDue <= now && done:
		return Finished
	}
	return t.Status
}

// DisabledUntil is the instant (Unix ms) at which a timer that is disabled at now
// becomes enabled by itself; 0 if it does not.
func (t *Timer) DisabledUntil(now int64) int64 {
	if t.Status == Enabled && t.Reason != "" && t.ValidFrom > now {
		return t.ValidFrom
	}
	return 0
}

// FormatInstant writes an instant (Unix ms) for people: RFC 3339 in UTC with ms.
func FormatInstant(ms int64) string {
	if ms < math.MinInt32 || ms > MaxDue {
		return "an instant out of range"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
