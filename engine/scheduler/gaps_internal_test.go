package scheduler

import (
	"testing"

	"xtimer/engine"
)

// What is lost while a gap is being mended stays lost, wherever it is.
func TestLossWhileAGapIsMended(t *testing.T) {
	g := gaps{lost: map[int64]engine.Set{}}
	one, other := engine.SetOf(7), engine.SetOf(9)
	g.add(one, 1*minute, 1*minute+1)
	g.add(one, 10*minute, 10*minute+1)
	x, ok := g.next(5*minute, 20*minute)
	if !ok || x != (gap{one, 10 * minute, 11 * minute}) {
		t.Fatal(x, ok)
	}
	g.add(one, 7*minute, 7*minute+1)
	g.add(other, 10*minute, 10*minute+1)
	if g.has(1*minute) || !g.has(10*minute) {
		t.Error("what is before stays, or what is being mended is trusted")
	}
	for _, want := range []gap{{one, 7 * minute, 8 * minute}, {other, 10 * minute, 11 * minute}} {
		g.mended(true)
		if x, ok = g.next(5*minute, 20*minute); !ok || x != want || !g.has(x.from) {
			t.Errorf("next is %v, want %v", x, want)
		}
	}
	if g.mended(true); g.has(7*minute) || g.has(10*minute) {
		t.Error("they are not mended")
	}
}

// A gap is of minutes that are lost for the same shards, a slice at most. One that could not be
// mended is lost as before, and so is what was lost meanwhile.
func TestGapsOfShards(t *testing.T) {
	g := gaps{lost: map[int64]engine.Set{}}
	one, other := engine.SetOf(7), engine.SetOf(9)
	g.add(one, 0, 15*minute)
	g.add(other, 12*minute, 20*minute)
	for _, want := range []gap{{one, 0, 10 * minute}, {one, 10 * minute, 12 * minute}, {one.Union(other), 12 * minute, 15 * minute}, {other, 15 * minute, 16 * minute}} {
		x, ok := g.next(0, 16*minute)
		if !ok || x != want {
			t.Errorf("next is %v, want %v", x, want)
		}
		g.add(other, x.from, x.to)
		g.mended(false)
		if x, ok = g.next(0, x.to); !ok || x.of != want.of.Union(other) {
			t.Errorf("after a fill that failed next is %v", x)
		}
		g.mended(true)
	}
	if x, ok := g.next(0, 16*minute); ok || !g.has(16*minute) {
		t.Errorf("%v is lost, or what is beyond the end is not", x)
	}
}
