package memory

import (
	"testing"

	"xtimer/engine"
)

// FuzzCursor: no cursor is taken but one that was given.
func FuzzCursor(f *testing.F) {
	f.Add("7354.00000000", uint64(7354))
	f.Add(makeCursor(7354)+".", uint64(1))
	f.Fuzz(func(t *testing.T, s string, n uint64) {
		if id, err := openCursor(s); err == nil && makeCursor(id) != s {
			t.Fatalf("%q is taken for %d", s, id)
		}
		id := engine.TimerID(n>>1 | 1)
		if got, err := openCursor(makeCursor(id)); err != nil || got != id {
			t.Fatalf("%d comes back as %d, %v", id, got, err)
		}
	})
}
