package limit

import (
	"cmp"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/object"
)

// EachApp is the app whose pause is that of all apps.
const EachApp = flow.EachApp

// AppKey is the key of an app's pause.
func AppKey(app string) engine.ObjectKey {
	return engine.ObjectKey{Kind: PauseKind, App: app, Name: "app"}
}

// Pause is a pause that is in force.
type Pause struct {
	Until  int64 // Unix ms; MaxDue: it has no end
	Reason string
	Since  int64  // Unix ms
	By     string // who has said so last
}

// Pause pauses from now on, until an instant (Unix ms), 0 for no end. Of a pause in force only
// the beginning stays.
func (x *Object) Pause(p Pause, now int64) {
	if x.PausedUntil <= now || x.PausedSince == 0 {
		x.PausedSince = now
	}
	x.PausedUntil, x.Reason, x.PausedBy = cmp.Or(p.Until, engine.MaxDue), p.Reason, p.By
}

// Resume ends a pause and a cooldown at an instant (Unix ms), also one that a response has asked for. backlog says which of the dues that
// were held until then are called.
func (x *Object) Resume(backlog string, now int64) {
	held := x.PausedUntil > now || x.CooldownUntil > now
	*x = Object{Limit: x.Limit, OpenedAt: now, SkippedTo: x.SkippedTo, LatestTo: x.LatestTo}
	switch {
	case held && backlog == engine.BacklogSkip:
		x.SkippedTo = now
	case held && backlog == engine.BacklogLatest:
		x.LatestTo = now
	}
}

// Paused is the pause in force of what an object is of, nil for none.
func (x *Object) Paused(o *engine.Object, now int64) *Pause {
	if x.PausedUntil <= now {
		return nil
	}
	p := &Pause{x.PausedUntil, x.Reason, x.PausedSince, x.PausedBy}
	if p.Since == 0 { // it is of a build that did not store this
		p.Since, p.By = o.UpdatedAt, o.UpdatedBy
	}
	return p
}

// PauseOf is the pause in force of an app, or of EachApp; nil for none.
func PauseOf(set *object.Set, app string, now int64) *Pause {
	o := set.Get(AppKey(app))
	if o == nil {
		return nil
	}
	x, err := Read(o)
	if err != nil {
		return nil // the book has logged it
	}
	return x.Paused(o, now)
}
