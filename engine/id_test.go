package engine

import "testing"

// Ids rise whatever the clock does, and stand above what a store has told of.
func TestIDsRise(t *testing.T) {
	const now = 1_763_640_000_000
	var ids IDs
	last := TimerID(0)
	next := func(what string, at int64) {
		t.Helper()
		for range 3 * idPerMs {
			id := ids.Next(at)
			if id <= last {
				t.Fatalf("%s: %d after %d", what, id, last)
			}
			last = id
		}
	}
	next("at first", now)
	next("a ms later", now+1)
	next("the clock was set back", now-3_600_000)

	ids, last = IDs{}, last+7 // a new process
	ids.Above(last)
	next("after a restart", now-7_200_000)
	ids.Above(5)
	next("above an old one", now-7_200_000)

	for _, imported := range []TimerID{last | 1<<idCountBits - 1, last + 3_600_000<<idCountBits, MaxStoredID} {
		ids.Above(imported)
		last = imported
		next("after an import", now)
	}
	if int64(last) < 0 {
		t.Errorf("%d has more than 63 bits", last)
	}
}
