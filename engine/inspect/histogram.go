package inspect

import (
	"math/bits"
	"time"
)

// histogram counts durations, log-linear: 8 steps to each power of two of µs (an error
// of at most 6 %).
type histogram [8 * 30]uint32

func (h *histogram) add(d time.Duration) { h[stepOf(d)]++ }

func (h *histogram) merge(o *histogram) {
	for i, n := range o {
		h[i] += n
	}
}

func (h *histogram) count() (n int64) {
	for _, m := range h {
		n += int64(m)
	}
	return n
}

// quantiles are p50, p99, p99.9 in ms.
func (h *histogram) quantiles() [3]float64 {
	return [3]float64{h.quantile(0.5), h.quantile(0.99), h.quantile(0.999)}
}

// quantile is one of the durations in ms; 0 without any.
func (h *histogram) quantile(q float64) float64 {
	left := int64(q * float64(h.count()))
	for i, n := range h {
		if left -= int64(n); left < 0 {
			return float64(middleOf(i).Microseconds()) / 1000
		}
	}
	return 0
}

func stepOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 8 {
		return int(us)
	}
	n := bits.Len64(us) - 4 // us>>n is in 8…15
	return min(8*(n+1)+int(us>>n)-8, len(histogram{})-1)
}

// middleOf is the middle of a step.
func middleOf(step int) time.Duration {
	if step < 8 {
		return time.Duration(step) * time.Microsecond
	}
	n := step/8 - 1
	low := uint64(step%8+8) << n
	return time.Duration(low+(1<<n)/2) * time.Microsecond
}
