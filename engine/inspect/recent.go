package inspect

import (
	"sync"
	"time"
)

// Recent is the lateness of the last minute: a ring of one histogram a second.
type Recent struct {
	mu      sync.Mutex
	seconds [60]latenessSecond
}

type latenessSecond struct {
	at    int64 // Unix s
	count int64
	late  histogram
}

// Add counts a call at now (Unix ms).
func (r *Recent) Add(now int64, late time.Duration) {
	s := now / 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &r.seconds[s%60]
	if x.at != s {
		*x = latenessSecond{at: s}
	}
	x.count++
	x.late.add(late)
}

// Look sums the last minute up: fires per second, and p50, p99, p99.9 in ms.
func (r *Recent) Look(now int64) (perSecond float64, quantiles [3]float64) {
	var sum histogram
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
		sum.merge(&x.late)
	}
	r.mu.Unlock()
	if count == 0 {
		return 0, quantiles
	}
	for i, q := range [3]float64{0.5, 0.99, 0.999} {
		quantiles[i] = sum.quantile(q)
	}
	return float64(count) / float64(s-oldest+1), quantiles
}
