package scheduler

import "testing"

// What is lost while a gap is being mended stays lost, wherever it is.
func TestLossWhileAGapIsMended(t *testing.T) {
	g := gaps{minutes: map[int64]uint64{}}
	g.add(1*minute, 1*minute+1)
	g.add(10*minute, 10*minute+1)
	at, losses, ok := g.next(5*minute, 20*minute)
	if !ok || at != 10*minute {
		t.Fatal(at, ok)
	}
	g.add(7*minute, 7*minute+1)
	g.add(10*minute, 10*minute+1)
	g.mended(11*minute, losses)
	if g.has(1*minute) || !g.has(7*minute) || !g.has(10*minute) {
		t.Errorf("a gap of before stays: %v; of the first that came later: %v; of the second: %v", g.has(1*minute), g.has(7*minute), g.has(10*minute))
	}
	if g.mended(11*minute, 4); g.has(7*minute) || g.has(10*minute) {
		t.Error("they are not mended")
	}
}
