package resident

import (
	"math/rand/v2"
	"testing"
)

// TestLeaps: the watermark never stands within a span that was added, and goes back no farther
// than spans that overlap make it.
func TestLeaps(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s leaps
		within := map[int64]bool{}
		for range 1 + r.IntN(6) {
			after, n := r.Int64N(60), 1+r.Int64N(15)
			s = s.add(after, after+n)
			for w := after + 1; w < after+n; w++ {
				within[w] = true
			}
		}
		for w := range int64(80) {
			want := w
			for within[want] {
				want--
			}
			if got := s.before(w); got != want {
				t.Fatalf("seed %d: before(%d) is %d, want %d: %v", seed, w, got, want, s)
			}
		}
	}
}
