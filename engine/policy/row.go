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
		PerhapsSent(t)
	}
	t.Status, t.Reason, t.Ended, t.NotBefore = engine.Cancelled, engine.ReasonReplaced, now, 0
	if def == nil {
		t.Reason = engine.ReasonDeleted
	} else if def.Status == engine.Disabled {
		t.Reason = engine.ReasonDisabled
	}
	return t
}

// PerhapsSent adds to a record the attempt that was begun before a crash. Nobody knows
// when it began: the record has the first instant at which it can have.
func PerhapsSent(t *engine.Task) {
	began := t.Key.Due * 1000
	if n := len(t.Attempts); n > 0 {
		last := &t.Attempts[n-1]
		began = max(began, last.Started+last.Took.Microseconds())
	}
	t.Attempts = append(slices.Clip(t.Attempts), engine.Attempt{
		N: t.LastAttempt() + 1, Started: began, ErrorClass: engine.ReasonCrashed,
	})
}
