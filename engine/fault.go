package engine

import (
	"errors"
	"fmt"
)

// Fault is an error with an owner: whose fault it is decides what the edge
// answers. Anything that is not a Fault is ours: a 500.
type Fault struct {
	Kind   FaultKind
	Code   string // stable, for programs: "unsatisfiable_cron"
	Detail string // for people
	Fields []FieldFault
}

// FieldFault is what is wrong with one field.
type FieldFault struct{ Field, Detail string }

// FaultKind is whose fault an error is, and of which sort.
type FaultKind uint8

// The kinds of faults with the HTTP status that the edge gives them.
const (
	FaultMalformed    FaultKind = iota // 400
	FaultInvalid                       // 422: well-formed, cannot be done
	FaultNotFound                      // 404
	FaultConflict                      // 409
	FaultPrecondition                  // 412
	FaultTooMany                       // 429
	FaultUnavailable                   // 503: a tier that the answer needs is away
	FaultFull                          // 507: the disk is nearly full
)

func (f *Fault) Error() string {
	if len(f.Fields) == 1 {
		return f.Fields[0].Field + ": " + f.Fields[0].Detail
	}
	return f.Detail
}

// Invalid is the fault of one field of a request.
func Invalid(field, code, format string, args ...any) *Fault {
	d := fmt.Sprintf(format, args...)
	return &Fault{Kind: FaultInvalid, Code: code, Detail: field + ": " + d, Fields: []FieldFault{{field, d}}}
}

// Errors that tiers return and the engine understands; adapters wrap them.
var (
	ErrNotFound    = &Fault{Kind: FaultNotFound, Code: "not_found", Detail: "the requested object does not exist"}
	ErrConflict    = &Fault{Kind: FaultConflict, Code: "conflict", Detail: "another request changed the object in the meantime"}
	ErrUnavailable = &Fault{Kind: FaultUnavailable, Code: "tier_unavailable", Detail: "a tier that the response needs is unavailable"}
	// ErrBroken: the tier answers, and is not what it has to be: a table is missing, a
	// right was taken away. Nothing of the call was done, and waiting mends nothing.
	ErrBroken     = &Fault{Kind: FaultUnavailable, Code: "tier_broken", Detail: "a tier that the response needs is broken; see the server's log"}
	ErrFull       = &Fault{Kind: FaultFull, Code: "disk_full", Detail: "the disk is nearly full: new work is refused until space is free again"}
	ErrMemoryFull = &Fault{Kind: FaultUnavailable, Code: "memory_full", Detail: "memory is nearly full: new work is refused until memory is free again"}
	// ErrFenced: another node owns the shard now.
	ErrFenced = errors.New("the shard has another owner")
	// ErrGap: a bucket is not what was put there; it has to be built anew from the cold tier.
	ErrGap = errors.New("the bucket is incomplete")
)
