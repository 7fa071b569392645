package engine

import (
	"slices"
	"testing"
)

// Ids rise whatever the clock does, and stand above what a store has told of.
func TestIDsRise(t *testing.T) {
	const now = 1_763_640_000_000
	var ids IDs
	last := TimerID(0)
	next := func(what string, at int64) {
		t.Helper()
		for range 3 * idPerMs {
			id := ids.Next(at, AllShards)
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

// Two nodes make no id twice, whatever their clocks show: each makes its own shards'.
func TestIDsOfTwoNodes(t *testing.T) {
	const now = 1_763_640_000_000
	var even, odd []int
	for i := range Shards {
		if i%2 == 0 {
			even = append(even, i)
		} else {
			odd = append(odd, i)
		}
	}
	of := []Set{SetOf(even...), SetOf(odd...), SetOf(7)}
	for i, s := range of {
		var ids IDs
		last, in := TimerID(0), map[int]bool{}
		for range 3 * idPerMs {
			id := ids.Next(now, s)
			if id <= last || !s.Has(id.Shard()) {
				t.Fatalf("node %d: %d, of shard %d, after %d", i, id, id.Shard(), last)
			}
			last, in[id.Shard()] = id, true
		}
		if n := len(slices.Collect(s.All())); len(in) != n {
			t.Errorf("node %d made ids in %d of its %d shards", i, len(in), n)
		}
	}
}
