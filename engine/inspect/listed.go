package inspect

import (
	"bytes"
	"slices"
	"strings"

	"xtimer/engine"
)

// Listed is a copy of a task for a list: of the attempts it has the last only, and it
// keeps no memory of the others. A task may have had hundreds, of 1 KiB each.
func Listed(t *engine.Task) *engine.Task {
	c := *t
	c.App, c.Name, c.Reason = strings.Clone(t.App), strings.Clone(t.Name), strings.Clone(t.Reason)
	c.Attempts = slices.Clone(t.Attempts[max(0, len(t.Attempts)-1):])
	for i := range c.Attempts {
		a := &c.Attempts[i]
		a.ErrorClass, a.Response = strings.Clone(a.ErrorClass), bytes.Clone(a.Response)
	}
	return &c
}
