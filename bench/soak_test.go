package bench

import (
	"slices"
	"testing"
	"time"
)

// TestSoak fires for long and looks at what grows: XTIMER_SOAK=3600 (seconds)
// XTIMER_RATE=1000 for an hour. One-shots come and go, intervals stay. Nothing is
// missing, early or repeated, and memory and goroutines of the last quarter are
// those of the second: what fills first (caches, memtables) has filled by then. In
// a short run memory is only told.
func TestSoak(t *testing.T) {
	beside(t)
	length := time.Duration(setting("XTIMER_SOAK", 10)) * time.Second
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 200), intervals: 50}
	tr.begin()
	const looks = 40
	var rss, goroutines []float64
	for range looks {
		time.Sleep(length / looks)
		rss = append(rss, float64(tr.p.rss())/(1<<20))
		goroutines = append(goroutines, tr.p.metric("go_goroutines"))
	}
	tr.finish()
	tr.check(false)

	quarter := func(xs []float64, n int) float64 { // the median: one look may fall into a collection
		xs = slices.Sorted(slices.Values(xs[n*looks/4 : (n+1)*looks/4]))
		return xs[len(xs)/2]
	}
	t.Logf("in quarters of %v: RSS %.0f %.0f %.0f %.0f MB, goroutines %.0f %.0f %.0f %.0f", length,
		quarter(rss, 0), quarter(rss, 1), quarter(rss, 2), quarter(rss, 3),
		quarter(goroutines, 0), quarter(goroutines, 1), quarter(goroutines, 2), quarter(goroutines, 3))
	if was, is := quarter(goroutines, 1), quarter(goroutines, 3); is > 1.5*was+100 {
		t.Errorf("%.0f goroutines became %.0f", was, is)
	}
	if was, is := quarter(rss, 1), quarter(rss, 3); length >= 10*time.Minute && is > 1.15*was+16 {
		t.Errorf("%.0f MB became %.0f", was, is)
	}
}
