package wheel

import (
	"context"
	"errors"
	"math/bits"
	"time"
)

const (
	batchLen = 1024

	// near is what the hand sleeps towards exactly. It is more than ahead, so that a
	// clockwork which calls a tick early is still in time.
	near = 5 * time.Millisecond

	// late is when the hand stops waiting for the clockwork's call: this long before
	// due, which the exact sleep then fills.
	late = 1 * time.Millisecond

	// tooLate is by how much a value is late before OnLate is called.
	tooLate = 20 // ms

	// poll is how long the hand sleeps at most: a clock step is noticed within it.
	poll = 250 * time.Millisecond
)

// hand is what the running goroutine keeps between two looks at the clock.
type hand struct {
	offset   time.Duration // wall less monotonic clock at the last look
	suspect  *clockwork    // has missed a call, or nil
	missed   time.Duration // when, on the monotonic clock
	calls    uint64        // counted then
	patience time.Duration // how long a suspect has to call after all
	late     bool          // what OnLate was told
}

// Run fires what is due until ctx ends, then returns nil, when nothing it started
// runs any more except for clockworks that have wedged (see Stats.Stuck). What has not
// been fired stays in the wheel. Run fails only when it runs already.
func (w *Wheel[V]) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.running {
		w.mu.Unlock()
		return errors.New("wheel: already running")
	}
	w.running = true
	w.hand = hand{patience: minPatience}
	w.alarm.probe()
	w.rewind()
	w.mu.Unlock()

	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(woken); w.alarm.wake() })
	var now time.Time
	now, w.hand.offset = w.clocks()
	w.looked.Store(now.UnixMilli())
	w.known.Store(int64(w.hand.offset))
	batch := make([]V, 0, batchLen)
	for ctx.Err() == nil {
		now := w.watch()
		due, late := w.collect(now, &batch)
		if late || w.hand.late {
			w.hand.late = late
			w.onLate(late)
		}
		if len(batch) == 0 {
			w.wait(now)
			continue
		}
		w.fire(due, batch)
		clear(batch) // do not keep alive what V points to
		batch = batch[:0]
	}
	if w.hand.late {
		w.onLate(false)
	}
	if !stop() {
		<-woken
	}

	w.mu.Lock()
	w.firing = never
	w.dropWorks()
	dropped := w.dropped
	w.running = false
	w.mu.Unlock()
	awaitEnd(dropped)
	return nil
}

// collect moves the values of a tick, or the first 1,024 of them, into batch, if the
// wall clock has reached it. late reports whether the first
// value that is not of a crowd is too late.
func (w *Wheel[V]) collect(now time.Time, batch *[]V) (due int64, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.firing = never
	w.looks = minDue
	if len(w.order) == 0 {
		return 0, false
	}
	d, due := w.turn(now.UnixMilli())
	if d == nil {
		return 0, false
	}
	i := tickOf(due)
	for d.used&(1<<i) != 0 && len(*batch) < batchLen {
		slot := d.first[i]
		n := w.slab.at(slot)
		*batch = append(*batch, n.v)
		w.slab.unlink(d, slot, n)
		w.slab.give(slot)
	}
	w.len -= len(*batch)
	w.firing = due
	w.stats.Batches++
	w.stats.Fired += uint64(len(*batch))
	if d.used&(1<<i) == 0 {
		w.stats.Ticks++
	}
	if due == w.crowd || due == w.order[0].earliest() && d.used&(1<<i) != 0 {
		if w.crowd != due {
			w.crowd, w.last = due, due
		}
		w.spare = batchLen
	} else {
		w.last = max(w.last, due) // one that was added late lies before the crowd
		w.spare -= len(*batch)
	}
	first := due
	if due == w.crowd {
		_, first = w.behind(due)
	}
	w.close(d)
	return due, now.UnixMilli()-first > tooLate
}

// turn is the tick whose values are fired next; nil: none is due. It is the earliest;
// but between two batches of a crowd, a tick with more than one, those that are due
// behind it have their turns, in order, until they had as many values as a batch: all
// of them at once would starve a crowd where they are more than fire can take. w.mu
// must be held, and the wheel not be empty.
func (w *Wheel[V]) turn(now int64) (*drawer, int64) {
	earliest := w.order[0].earliest()
	if earliest > now {
		return nil, 0
	}
	if earliest == w.crowd && w.spare > 0 {
		if d, due := w.behind(w.last); due <= now {
			return d, due
		}
		w.last = w.crowd // all had their turn
	}
	return w.order[0], earliest
}

// behind is the first occupied tick after the instant, never when there is none.
// w.mu must be held.
func (w *Wheel[V]) behind(at int64) (first *drawer, due int64) {
	key, due := keyOf(at), int64(never)
	for _, d := range w.order {
		used := d.used
		if d.key == key {
			used &^= 1<<(tickOf(at)+1) - 1
		}
		if d.key >= key && used != 0 && d.key*drawerLen < due {
			first, due = d, d.key*drawerLen+int64(bits.TrailingZeros64(used))
		}
	}
	return first, due
}

// wait sleeps until the earliest tick is due, or for a while, or until it is woken.
// What is near it sleeps towards exactly. What is not, the clockwork calls for; the
// hand gets up by itself a moment later than that, call or no call.
func (w *Wheel[V]) wait(now time.Time) {
	w.mu.Lock()
	nap, exact, expect := poll, false, false
	if len(w.order) > 0 {
		d := w.order[0]
		due := d.earliest()
		gap := until(due, now)
		switch {
		case gap <= 0: // added since collect looked
			w.mu.Unlock()
			return
		case gap <= near:
			nap, exact = gap, true
		default:
			w.call(d, due, now)
			if gap-late < poll {
				nap, expect = gap-late, true
			}
		}
	}
	w.looks = now.Add(nap + time.Millisecond - 1).UnixMilli() // rounded up
	calls := w.calls
	w.mu.Unlock()

	if exact {
		if over, full := w.alarm.sleep(nap); full {
			w.mu.Lock()
			w.stats.Oversleep = over
			w.stats.OversleepMax = max(w.stats.OversleepMax, over)
			w.mu.Unlock()
		}
		return
	}
	if full := w.alarm.nap(nap); full && expect {
		w.miss(calls)
	}
}

// called is what the clockwork calls: the drawer of this key is about to be due.
func (w *Wheel[V]) called(c *clockwork, key int64) {
	w.mu.Lock()
	d := w.drawers[key]
	if c != w.works || d == nil {
		w.mu.Unlock()
		return
	}
	w.calls++
	d.armed = never
	wake := false
	if d.used == 0 {
		w.forget(d)
	} else {
		wake = w.call(d, d.earliest(), w.now())
	}
	w.mu.Unlock()
	if wake {
		w.alarm.wake()
	}
}
