package policy

import (
	"slices"

	"xtimer/engine"
)

// CancelledRow is the record of a row whose timer has changed, or is gone (def is nil).
// former is the definition of the row's generation, nil when nobody knows it.
func CancelledRow(def, former *engine.Timer, o engine.Owed, now int64) *engine.Task {
	t := &engine.Task{}
	if o.Task != nil {
		*t = *o.Task
	} else {
		t.Key, t.Generation, t.Origin, t.Since, t.Lateness = o.Key, o.Generation, o.Origin, o.Key.Due, -1
	}
	if former == nil {
		former = def
	}
	if former != nil {
		t.App, t.Name = former.App, former.Name
	}
	if o.Begun {
		PerhapsSent(t, now)
	}
	t.Status, t.Reason, t.Ended, t.NotBefore = engine.Cancelled, engine.ReasonReplaced, now, 0
	if def == nil {
		t.Reason = engine.ReasonDeleted
	} else if def.Status == engine.Disabled {
		t.Reason = engine.ReasonDisabled
	}
	return t
}

// PerhapsSent adds to a record the attempt that was begun before a crash.
func PerhapsSent(t *engine.Task, now int64) {
	began := max(now, t.Key.Due) // nobody knows when; not before it was due
	t.Attempts = append(slices.Clip(t.Attempts), engine.Attempt{
		N: t.LastAttempt() + 1, Started: began * 1000, ErrorClass: engine.ReasonCrashed,
	})
}
