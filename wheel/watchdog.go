package wheel

import "time"

const (
	// step is how far the wall clock must run away from the monotonic one between two
	// looks to count as set. chrony may slew by a tenth, 25 ms in a poll.
	step = 50 * time.Millisecond

	// A clockwork that did not call in time has this long to call after all, then it
	// is thrown away. The time doubles with every clockwork that never called, so a
	// machine that wedges one after the other leaves few of them behind.
	minPatience = 100 * time.Millisecond
	maxPatience = time.Hour

	// goodbye is how long Run waits in the end for a clockwork to stop.
	goodbye = time.Second
)

// clocks reads both clocks. Between the two readings of the monotonic one the
// thread may have stood still; the offset is from the middle.
func (w *Wheel[V]) clocks() (wall time.Time, offset time.Duration) {
	wall, lo, hi := w.readings()
	return wall, (lo + hi) / 2
}

// readings returns the wall clock, and between what the offset lies.
func (w *Wheel[V]) readings() (wall time.Time, lo, hi time.Duration) {
	before := time.Since(w.start)
	wall = w.now()
	after := time.Since(w.start)
	at := wallSince(w.start, wall)
	return wall, at - after, at - before
}

// IsSet reports whether the wall clock was set since Run looked at it last: OnStep is still to come.
func (w *Wheel[V]) IsSet() bool {
	_, lo, hi := w.readings()
	known := time.Duration(w.known.Load())
	return lo > known+step || hi < known-step
}

// Looked is what the wall clock showed when Run looked at it last, most often within 250 ms; Unix ms.
func (w *Wheel[V]) Looked() int64 { return w.looked.Load() }

// wallSince is on the wall clock alone: Round(0) takes the monotonic reading off.
func wallSince(start, wall time.Time) time.Duration {
	return wall.Round(0).Sub(start.Round(0))
}

// watch looks at the clock for one round of the hand: was it set, has the clockwork
// stopped. It returns the wall clock.
func (w *Wheel[V]) watch() time.Time {
	h := &w.hand
	wall, lo, hi := w.readings()
	delta := (lo+hi)/2 - h.offset
	if lo > h.offset+step || hi < h.offset-step {
		h.offset += delta
		w.mu.Lock()
		w.stats.Steps++
		w.stats.LastStep = delta
		w.rewind()
		w.mu.Unlock()
		w.onStep(delta)
		w.known.Store(int64(h.offset))
		w.looked.Store(wall.UnixMilli())
		return w.now()
	}
	if hi-lo < step { // else the thread stood still in between, and the middle says nothing
		w.looked.Store(wall.UnixMilli())
		h.offset += delta
		w.known.Store(int64(h.offset))
	}
	if h.suspect != nil {
		w.judge()
	}
	return wall
}

// miss notes that the clockwork has not called although it had to, since calls were counted.
func (w *Wheel[V]) miss(calls uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls != calls {
		return
	}
	w.stats.Missed++
	if h := &w.hand; h.suspect == nil {
		h.suspect, h.missed, h.calls = w.works, time.Since(w.start), calls
	}
}

// judge decides on a clockwork that missed a call: any call since clears it, and
// silence condemns it.
func (w *Wheel[V]) judge() {
	h := &w.hand
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case h.suspect != w.works:
		h.suspect = nil
	case h.calls != w.calls:
		h.suspect, h.patience = nil, minPatience
	case time.Since(w.start)-h.missed >= h.patience:
		h.suspect, h.patience = nil, min(2*h.patience, maxPatience)
		w.stats.Rebuilds++
		w.rewind()
	}
}

// rewind throws the clockwork away and arms a new one from the drawers. What is
// still to come of the old one's calls is ignored. w.mu must be held.
func (w *Wheel[V]) rewind() {
	if !w.running {
		w.sweep()
		return
	}
	w.dropWorks()
	w.works = newClockwork(w.slots, w.now, w.called)
	w.sweep()
	now, wake := w.now(), false
	for _, d := range w.order {
		wake = w.call(d, d.earliest(), now) || wake
	}
	if wake {
		w.alarm.wake()
	}
}

// sweep forgets the drawers that are empty, and that the others were armed.
func (w *Wheel[V]) sweep() {
	for _, d := range w.drawers {
		d.armed = never
		if d.used == 0 {
			w.forget(d)
		}
	}
}

// dropWorks discards the clockwork, if there is one, and keeps an eye on those that
// have not ended. w.mu must be held.
func (w *Wheel[V]) dropWorks() {
	if w.works != nil {
		w.works.discard()
		w.dropped = append(w.dropped, w.works)
		w.works = nil
	}
	kept := w.dropped[:0]
	for _, c := range w.dropped {
		if !c.over() {
			kept = append(kept, c)
		}
	}
	clear(w.dropped[len(kept):])
	w.dropped = kept
}

// awaitEnd waits for discarded clockworks, except for wedged ones.
func awaitEnd(works []*clockwork) {
	limit := time.NewTimer(goodbye)
	defer limit.Stop()
	for _, c := range works {
		select {
		case <-c.ended:
		case <-limit.C:
			return
		}
	}
}
