package change

import (
	"strconv"
	"testing"
)

// TestOperationsKept: an operation that goes on can be looked up, whatever ends meanwhile.
func TestOperationsKept(t *testing.T) {
	o := operations{byID: map[string]*Operation{}}
	o.enter(Operation{ID: "long"})
	for i := range 3 * operationsKept {
		o.enter(Operation{ID: strconv.Itoa(i), Ended: true})
	}
	if o.byID["long"] == nil || len(o.order) != operationsKept || len(o.byID) != operationsKept {
		t.Errorf("%d operations are kept, and the one that goes on is among them: %v", len(o.order), o.byID["long"] != nil)
	}
}
