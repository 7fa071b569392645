package engine

import (
	"errors"
	"fmt"
	"time"
)

// Fault is an error that the API reports to the client. Its Kind decides the HTTP
// status. Any error that is not a Fault is an internal error: 500.
type Fault struct {
	Kind   FaultKind
	Code   string // stable, for programs: "unsatisfiable_cron"
	Detail string // for people
	Fields []FieldFault
	Rate   *RateLimit // that a FaultTooMany is about; nil: none
}

// RateLimit is a limit of requests that is used up.
type RateLimit struct {
	Name   string
	Most   int // requests in any Window
	Window time.Duration
	Wait   time.Duration // until the next is allowed
}

// FieldFault describes the error of one field.
type FieldFault struct{ Field, Detail string }

// FaultKind classifies a Fault.
type FaultKind uint8

// The kinds of faults, with their HTTP statuses.
const (
	FaultMalformed    FaultKind = iota // 400
	FaultInvalid                       // 422: well-formed, but not valid
	FaultNotFound                      // 404
	FaultConflict                      // 409
	FaultPrecondition                  // 412
	FaultTooMany                       // 429: later the same request may be taken
	FaultExceeded                      // 429: something has to be deleted or to end first
	FaultUnavailable                   // 503: a tier that the response needs is unavailable
	FaultFull                          // 507: the disk is nearly full
)

func (f *Fault) Error() string {
	if len(f.Fields) == 1 {
		return f.Fields[0].Field + ": " + f.Fields[0].Detail
	}
	return f.Detail
}

// Invalid returns the FaultInvalid for one field of a request.
func Invalid(field, code, format string, args ...any) *Fault {
	d := fmt.Sprintf(format, args...)
	return &Fault{Kind: FaultInvalid, Code: code, Detail: field + ": " + d, Fields: []FieldFault{{field, d}}}
}

// Errors that tiers return and the engine understands; adapters wrap them.
var (
	ErrNotFound    = &Fault{Kind: FaultNotFound, Code: "not_found", Detail: "the requested object does not exist"}
	ErrConflict    = &Fault{Kind: FaultConflict, Code: "conflict", Detail: "another request changed the object in the meantime"}
	ErrUnavailable = &Fault{Kind: FaultUnavailable, Code: "tier_unavailable", Detail: "a tier that the response needs is unavailable"}
	// ErrBroken: the tier answers but cannot do the call, for example because a table is
	// missing or a right was revoked. The call changed nothing, and waiting does not help.
	ErrBroken     = &Fault{Kind: FaultUnavailable, Code: "tier_broken", Detail: "a tier that the response needs is broken; see the server's log"}
	ErrFull       = &Fault{Kind: FaultFull, Code: "disk_full", Detail: "the disk is nearly full: new work is refused until space is free again"}
	ErrMemoryFull = &Fault{Kind: FaultUnavailable, Code: "memory_full", Detail: "memory is nearly full: new work is refused until memory is free again"}
	// ErrElsewhere: the shard of the timer is not this node's.
	ErrElsewhere = &Fault{Kind: FaultUnavailable, Code: "elsewhere", Detail: "the timer belongs to another node"}
	// ErrFenced: another node owns the shard now.
	ErrFenced = errors.New("the shard has another owner")
	// ErrGap: a bucket lost entries and must be rebuilt from the cold tier.
	ErrGap = errors.New("the bucket is incomplete")
)
