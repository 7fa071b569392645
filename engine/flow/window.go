package flow

import "time"

// windowSlots is how many parts of a window are counted: a call counts for so much of it
// longer than it should, which costs a 64th of the rate.
const windowSlots = 64

// window counts the calls of the last per, in slots.
type window struct {
	slot   time.Duration
	per    time.Duration
	most   int
	sum    int
	newest int64                   // the number of the newest slot
	counts [windowSlots + 2]uint32 // by slot number, modulo
}

func newWindow(rate int, per time.Duration) *window {
	return &window{slot: ceil(per, windowSlots), per: per, most: rate, newest: windowSlots + 2}
}

func (w *window) number(now time.Duration) int64 { return int64(now/w.slot) + windowSlots + 2 }

func (w *window) of(n int64) *uint32 { return &w.counts[n%int64(len(w.counts))] }

// until is the instant from which the calls of a slot do not count any more.
func (w *window) until(n int64) time.Duration {
	return time.Duration(n-windowSlots-2+1)*w.slot + w.per
}

// advance forgets the slots that do not count any more.
func (w *window) advance(now time.Duration) {
	n := w.number(now)
	for w.newest < n && w.sum > 0 {
		w.newest++
		w.sum -= int(*w.of(w.newest))
		*w.of(w.newest) = 0
	}
	w.newest = max(w.newest, n)
}

// next is the first instant, not before at, at which one more fits.
func (w *window) next(at time.Duration) time.Duration {
	w.advance(at)
	sum := w.sum
	for n := w.newest - windowSlots - 1; sum >= w.most && n <= w.newest; n++ {
		until := w.until(n)
		if c := int(*w.of(n)); c > 0 {
			sum -= c
			at = max(at, until)
		}
	}
	return at
}

func (w *window) add(now time.Duration) {
	w.advance(now)
	*w.of(w.newest)++
	w.sum++
}

// remove takes a call out that was just added.
func (w *window) remove(took time.Duration) {
	if n := w.number(took); n > w.newest-windowSlots-2 && *w.of(n) > 0 {
		*w.of(n)--
		w.sum--
	}
}
