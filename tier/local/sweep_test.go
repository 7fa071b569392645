package local

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// TestBehindTheOwed: timers that are owed for long do not keep those behind them
// from being archived or removed, and are not walked through without an end.
func TestBehindTheOwed(t *testing.T) {
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const owed = sweepPiece * sweepPieces // as many as one call walks through
	st := &engine.Settlement{Owner: "n"}
	var cs []*engine.Change
	for i := range owed + 1 {
		x := benchTimer(i)
		x.At = benchNow + int64(i)
		x.LastDue, x.Schedule.At = x.At, x.At
		cs = append(cs, &engine.Change{Timer: x, ID: x.ID})
		if i < owed {
			st.Owe = append(st.Owe, engine.Owed{Key: engine.Key{Timer: x.ID, Due: x.At}, NotBefore: x.At + 86_400_000})
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
	rests(0, engine.Counts{Enabled: owed, Finished: 1})

	var paid []engine.Key
	for _, o := range st.Owe {
		paid = append(paid, o.Key)
	}
	settle(&engine.Settlement{Owner: "n", Pay: paid})
	rests(0, engine.Counts{Finished: owed + 1})
	settle(&engine.Settlement{Owner: "n", Owe: st.Owe}) // each is a redrive
	rests(benchNow+2*owed, engine.Counts{Finished: owed})
}
