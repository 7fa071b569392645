package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSet: a set has the shards that it was made of, in order, and no other.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfDistinct(rapid.IntRange(0, Shards-1), rapid.ID).Draw(t, "shards")
		s := SetOf(in...)
		for i := range Shards {
			if s.Has(i) != slices.Contains(in, i) {
				t.Fatalf("shard %d: %v", i, s.Has(i))
			}
		}
		half := len(in) / 2
		if u := SetOf(in[:half]...).Union(SetOf(in[half:]...)); u != s {
			t.Fatalf("the union of both halves is %v, want %v", u, s)
		}
		slices.Sort(in)
		if got := slices.Collect(s.All()); !slices.Equal(got, in) {
			t.Fatalf("%v, want %v", got, in)
		}
		for i := range s.All() {
			if i != in[0] {
				t.Fatalf("the first is %d, want %d", i, in[0])
			}
			break
		}
	})
}

func TestAllShards(t *testing.T) {
	var all []int
	for i := range Shards {
		all = append(all, i)
	}
	if SetOf(all...) != AllShards {
		t.Fatal("a shard is missing")
	}
}
