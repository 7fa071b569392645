package mysql

import (
	"testing"

	"xtimer/engine"
)

// TestBehindTheOwed: timers that are owed for long do not keep those behind them
// from being archived or removed, and are not walked through without an end.
func TestBehindTheOwed(t *testing.T) {
	s := opened(t)
	const owed = sweepPiece * sweepPieces // as many as one call walks through
	var cs []*engine.Change
	st := &engine.Settlement{Owner: "n"}
	for i := range owed + 1 {
		x := shot(engine.TimerID(i+1), "")
		x.At = benchNow + int64(i)
		x.LastDue = x.At
		cs = append(cs, create(x))
		if i < owed {
			st.Owe = append(st.Owe, engine.Owed{Key: engine.Key{Timer: x.ID, Due: x.At}, NotBefore: x.At + dayMs})
		}
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	for i := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: i, W: benchNow + owed})
	}
	settle := func(st *engine.Settlement) {
		t.Helper()
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	// rests sweeps until there is no more to do, in few calls.
	rests := func(finishedBefore int64, want engine.Counts) {
		t.Helper()
		for range 5 {
			more, err := s.Sweep(t.Context(), benchNow+owed, finishedBefore, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				if got, err := s.Counts(t.Context()); err != nil || got != want {
					t.Fatalf("%+v, %v, want %+v", got, err, want)
				}
				return
			}
		}
		t.Fatal("it finds no rest")
	}
	settle(st)
	other, err := s.db.Begin() // whoever changes one that is owed is not in its way, nor it in theirs
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback() }()
	if _, err := other.Exec("SELECT id FROM timers WHERE id=1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	rests(0, engine.Counts{Enabled: owed, Finished: 1})
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}

	var paid []engine.Key
	for _, o := range st.Owe {
		paid = append(paid, o.Key)
	}
	settle(&engine.Settlement{Pay: paid})
	rests(0, engine.Counts{Finished: owed + 1})
	settle(&engine.Settlement{Owe: st.Owe}) // each is a redrive
	rests(benchNow+2*owed, engine.Counts{Finished: owed})
}
