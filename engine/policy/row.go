package policy

import "xtimer/engine"

// CancelledRow is the record of a row whose timer is gone or has changed.
func CancelledRow(def *engine.Timer, o engine.Owed, now int64) *engine.Task {
	t := &engine.Task{}
	if o.Task != nil {
		*t = *o.Task
	} else {
		t.Key, t.Generation, t.Origin, t.Since, t.Lateness = o.Key, o.Generation, o.Origin, o.Key.Due, -1
	}
	t.Status, t.Reason, t.Ended, t.NotBefore = engine.Cancelled, engine.ReasonReplaced, now, 0
	if def == nil {
		t.Reason = engine.ReasonDeleted
	} else {
		t.App, t.Name = def.App, def.Name
		if def.Status == engine.Disabled {
			t.Reason = engine.ReasonDisabled
		}
	}
	return t
}
