package scheduler

import (
	"math/bits"
	"sync"
	"time"
)

// recent is the lateness of the last minute: a ring of one histogram a second,
// log-linear, 8 steps to each power of two of µs (an error of at most 6 %).
type recent struct {
	mu      sync.Mutex
	seconds [60]latenessSecond
}

type latenessSecond struct {
	at    int64 // Unix s
	count int64
	steps [latenessSteps]uint32
}

const latenessSteps = 8 * 30

func latenessStep(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 8 {
		return int(us)
	}
	n := bits.Len64(us) - 4 // us>>n is in 8…15
	return min(8*(n+1)+int(us>>n)-8, latenessSteps-1)
}

// latenessOf is the middle of a step.
func latenessOf(step int) time.Duration {
	if step < 8 {
		return time.Duration(step) * time.Microsecond
	}
	n := step/8 - 1
	low := uint64(step%8+8) << n
	return time.Duration(low+(1<<n)/2) * time.Microsecond
}

func (r *recent) add(now int64, d time.Duration) {
	s := now / 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &r.seconds[s%60]
	if x.at != s {
		*x = latenessSecond{at: s}
	}
	x.count++
	x.steps[latenessStep(d)]++
}

// look sums the last minute up: fires per second, and p50, p99, p99.9 in ms.
func (r *recent) look(now int64) (perSecond float64, quantiles [3]float64) {
	var steps [latenessSteps]int64
	var count int64
	s := now / 1000
	oldest := s
	r.mu.Lock()
	for i := range r.seconds {
		x := &r.seconds[i]
		if x.at <= s-60 || x.at > s || x.count == 0 {
			continue
		}
		oldest = min(oldest, x.at)
		count += x.count
		for j, n := range x.steps {
			steps[j] += int64(n)
		}
	}
	r.mu.Unlock()
	if count == 0 {
		return 0, quantiles
	}
	for i, q := range [3]float64{0.5, 0.99, 0.999} {
		left := int64(q * float64(count))
		for j, n := range steps {
			if left -= n; left < 0 {
				quantiles[i] = float64(latenessOf(j).Microseconds()) / 1000
				break
			}
		}
	}
	return float64(count) / float64(s-oldest+1), quantiles
}
