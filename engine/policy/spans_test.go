package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrdered: spans of several sources, which may overlap, have after Ordered what one of them has.
func TestOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Spans
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			from := rapid.Int64Range(0, 40).Draw(t, "from")
			s = append(s, [2]int64{from, from + rapid.Int64Range(0, 12).Draw(t, "length")})
		}
		ordered := slices.Clone(s).Ordered()
		for at := range int64(60) {
			want := slices.ContainsFunc(s, func(x [2]int64) bool { return x[0] <= at && at <= x[1] })
			if ordered.Has(at) != want {
				t.Fatalf("%v of %v has %d: %v", ordered, s, at, !want)
			}
		}
	})
}
