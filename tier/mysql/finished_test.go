package mysql

import (
	"testing"

	"xtimer/engine"
)

// TestOwedIsNotLocked: whoever changes a timer that is owed is not in the way of a
// sweep that archives others.
func TestOwedIsNotLocked(t *testing.T) {
	s := opened(t)
	due := int64(benchNow)
	st := &engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: due}, NotBefore: due + dayMs}}}
	const n = 1000 // of a few rows MariaDB reads all, whatever is asked for
	var cs []*engine.Change
	for i := range n {
		x := shot(engine.TimerID(i+1), "")
		if x.At = due + dayMs; i < 2 {
			x.At = due
		}
		x.LastDue = x.At
		cs = append(cs, create(x))
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	for i := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: i, W: due})
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	other := holder(t, s)
	if _, err := other.Exec("SELECT id FROM timers WHERE id=1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), due, 0, 0); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Counts(t.Context()); err != nil || got != (engine.Counts{Enabled: n - 1, Finished: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
}
