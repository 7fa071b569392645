package policy

import "xtimer/engine"

// Standing is what a tier holds before a change, with the changes made before it
// in the same commit. Judge asks only for what it needs: each answer may cost a
// read.
type Standing interface {
	// Named returns the timer that has the name, or nil if the name is free. The
	// name "" is always free.
	Named(app, name string) (*engine.Timer, error)
	// Used returns the last create made with the Idempotency-Key, expired or not,
	// or nil if there is none.
	Used(app, key string) (*Use, error)
	// Made returns the timer as it stands, its last version if it was deleted, or
	// nil if neither is kept.
	Made(id engine.TimerID) (*engine.Timer, error)
}

// Use is a create that was made with an Idempotency-Key.
type Use struct {
	Timer   engine.TimerID
	Body    [32]byte // SHA-256 of the request's body
	Expires int64    // Unix ms
}

// errKeyReused refuses a create whose Idempotency-Key belongs to another request.
var errKeyReused = &engine.Fault{
	Kind: engine.FaultInvalid, Code: "idempotency_key_reused",
	Detail: "the Idempotency-Key was already used with a different body",
}

// Judge decides whether a change can be made. old is the timer that stands under
// the id of the change, nil if there is none. The zero Applied means that the
// change is to be made; every other outcome means that nothing is to be written.
func Judge(c *engine.Change, old *engine.Timer, s Standing) engine.Applied {
	t, creates := c.Timer, c.Was == 0
	switch {
	case old == nil && (!creates || t == nil):
		return engine.Applied{Err: engine.ErrNotFound}
	case creates && t == nil, !creates && old.Version != c.Was:
		return engine.Applied{Err: engine.ErrConflict}
	case t == nil, !creates && t.App == old.App && t.Name == old.Name:
		return engine.Applied{}
	}
	if creates && c.Once != nil {
		u, err := s.Used(c.Once.App, c.Once.Key)
		if err != nil {
			return engine.Applied{Err: err}
		}
		if u != nil && u.Expires > t.CreatedAt { // a create happens at CreatedAt
			return repeat(c.Once, u, s)
		}
	}
	switch holder, err := s.Named(t.App, t.Name); {
	case err != nil:
		return engine.Applied{Err: err}
	case holder != nil:
		return engine.Applied{Existing: holder, Err: engine.ErrConflict}
	case creates && old != nil: // the id is taken
		return engine.Applied{Err: engine.ErrConflict}
	}
	return engine.Applied{}
}

// repeat answers a create whose Idempotency-Key was used before.
func repeat(o *engine.Once, u *Use, s Standing) engine.Applied {
	if u.Body != o.Body {
		return engine.Applied{Err: errKeyReused}
	}
	t, err := s.Made(u.Timer)
	if t == nil && err == nil {
		err = engine.ErrNotFound
	}
	return engine.Applied{Existing: t, Replayed: true, Err: err}
}

// SameDues reports whether a change from one version to the next leaves the
// timer's dues as they were, so that what a tier knows of the next one stays true.
func SameDues(from, to *engine.Timer) bool {
	return from.Status == to.Status && from.Schedule == to.Schedule && from.ValidFrom == to.ValidFrom && from.Generation == to.Generation
}
