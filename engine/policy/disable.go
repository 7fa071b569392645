package policy

import (
	"cmp"

	"xtimer/engine"
)

// Disable makes a timer disabled since an instant (Unix ms); until another one, or, if
// until is 0, until it is enabled. Dues up to since, or to until, are over.
func Disable(t *engine.Timer, reason string, since, until int64) {
	t.Status, t.Reason, t.ValidFrom = engine.Disabled, DisableReason(reason), since
	if until != 0 {
		t.Status, t.ValidFrom = engine.Enabled, until
	}
}

// DisableReason is the reason that is stored: the given one, or a default.
func DisableReason(given string) string { return cmp.Or(given, engine.ReasonDisabled) }
