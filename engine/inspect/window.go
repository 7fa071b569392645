package inspect

import (
	"sync"
	"time"

	"xtimer/engine"
)

// A window is what came to pass in the last so many slots of time. A slot takes memory
// when something is counted in it, about 1 KB.
type window struct {
	length int64 // of a slot, in ms
	slots  []*slot
}

type slot struct {
	number int64 // of its length since 1970
	counts [10]int64
	timed  histogram
}

// The windows of the last hour and of the last minute: the slot of now is not over.
func newHour() window   { return window{length: 10 * minute, slots: make([]*slot, 7)} }
func newMinute() window { return window{length: 10_000, slots: make([]*slot, 7)} }

// Recent is the lateness of the last minute.
type Recent struct {
	mu      sync.Mutex
	seconds window
}

func newRecent() Recent { return Recent{seconds: window{length: 1000, slots: make([]*slot, 60)}} }

// Add counts a call at now (Unix ms).
func (r *Recent) Add(now int64, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seconds.at(now).timed.add(late)
}

// Look sums the last minute up: fires per second, and p50, p99, p99.9 in ms.
func (r *Recent) Look(now int64) (perSecond float64, quantiles [3]float64) {
	r.mu.Lock()
	sum, began := r.seconds.sum(now)
	r.mu.Unlock()
	return float64(sum.timed.count()) / float64((now/1000*1000-began)/1000+1), sum.timed.quantiles()
}

// holds reports whether the window has a slot for an instant, as seen at now.
func (w *window) holds(at, now int64) bool { return at/w.length > now/w.length-int64(len(w.slots)) }

// at is the slot of an instant that the window holds.
func (w *window) at(now int64) *slot {
	n := now / w.length
	s := &w.slots[n%int64(len(w.slots))]
	if *s == nil {
		*s = &slot{}
	}
	if (*s).number != n {
		**s = slot{number: n}
	}
	return *s
}

// sum adds the slots up, and tells when the first of them began.
func (w *window) sum(now int64) (sum slot, began int64) {
	last := now / w.length
	first := last
	for _, s := range w.slots {
		if s == nil || s.number > last || s.number <= last-int64(len(w.slots)) {
			continue
		}
		first = min(first, s.number)
		for i, n := range s.counts {
			sum.counts[i] += n
		}
		sum.timed.merge(&s.timed)
	}
	return sum, first * w.length
}

// Outcomes are the tasks that ended in some time.
type Outcomes struct {
	Ended       [10]int64 // by final TaskStatus
	Called      int64     // first attempts
	FiresPerSec float64
	Lateness    [3]float64 // p50, p99, p99.9 in ms, of those that were called
}

// outcomes reads a window of tasks.
func (w *window) outcomes(now int64) (o Outcomes) {
	sum, began := w.sum(now)
	o.Ended, o.Called = sum.counts, sum.timed.count()
	o.FiresPerSec = float64(o.Called) / max(1, time.Duration((now-began)*int64(time.Millisecond)).Seconds())
	o.Lateness = sum.timed.quantiles()
	return o
}

// add adds what ended at another node. Of the lateness it keeps that of the worst node.
func (o *Outcomes) add(of *Outcomes) {
	for i, n := range of.Ended {
		o.Ended[i] += n
	}
	o.Called, o.FiresPerSec = o.Called+of.Called, o.FiresPerSec+of.FiresPerSec
	for i, late := range of.Lateness {
		o.Lateness[i] = max(o.Lateness[i], late)
	}
}

// SuccessRate is the share of the tasks that were called which succeeded; ok is false
// without any.
func (o *Outcomes) SuccessRate() (rate float64, ok bool) {
	good := o.Ended[engine.Succeeded]
	all := good + o.Ended[engine.Failed] + o.Ended[engine.Dead] + o.Ended[engine.Unknown]
	return float64(good) / float64(max(all, 1)), all > 0
}
