package resident

import (
	"errors"
	"testing"

	"xtimer/engine"
)

// A timer of a shard that is another's is not changed here, and its shard says nothing of
// the progress.
func TestOwned(t *testing.T) {
	mine := engine.TimerID(1)
	other := mine + 1
	if mine.Shard() == other.Shard() {
		t.Fatal("both lie in one shard: the test tests nothing")
	}
	m := New(Config{Owned: engine.SetOf(mine.Shard())})
	if lowest, highest := m.Watermarks(); lowest != 0 || highest != 0 {
		t.Errorf("watermarks before the start: %d, %d", lowest, highest)
	}
	m.Mark(mine.Shard(), 1000, 0, false)
	if lowest, highest := m.Watermarks(); lowest != 1000 || highest != 1000 {
		t.Errorf("watermarks: %d, %d", lowest, highest)
	}
	for _, claim := range []func() (func(), error){
		func() (func(), error) { return m.Claim(t.Context(), other) },
		func() (func(), error) { return m.ClaimRows(t.Context(), other) },
	} {
		if _, err := claim(); !errors.Is(err, engine.ErrElsewhere) {
			t.Errorf("a timer of another node can be changed: %v", err)
		}
	}
	release, err := m.Claim(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
