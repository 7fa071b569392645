package mysql

import (
	"errors"
	"testing"

	"xtimer/engine"
)

// TestHorizon: with its marks a node leaves word up to where it has loaded, of the
// shards that are marked, and only while they are its own.
func TestHorizon(t *testing.T) {
	s := opened(t)
	horizon := func(shard int) (h int64) {
		t.Helper()
		if err := s.db.QueryRow("SELECT horizon FROM shards WHERE shard=?", shard).Scan(&h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	marks := []engine.Mark{{Shard: 3, W: benchNow}, {Shard: 9, W: benchNow}}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Marks: marks, Horizon: benchNow + 60_000}); err != nil {
		t.Fatal(err)
	}
	if a, b, other := horizon(3), horizon(9), horizon(4); a != benchNow+60_000 || b != a || other != 0 {
		t.Errorf("horizons %d, %d; of a shard without a mark %d", a, b, other)
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Marks: marks}); err != nil { // as at a start
		t.Fatal(err)
	}
	marks[0].Fence = 7
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Marks: marks, Horizon: benchNow + 120_000}); !errors.Is(err, engine.ErrFenced) {
		t.Fatal(err)
	}
	if h := horizon(9); h != benchNow+60_000 {
		t.Errorf("horizon %d of a node that was taken over", h)
	}
}
