package wheel

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	never = math.MaxInt64

	// What lies outside the years 1 to 9999 is moved to their edge, so that no sum
	// with a due overflows.
	minDue = -62135596800000
	maxDue = 253402300799999
)

// Config tells how a wheel is to run. The zero value is right outside of tests.
type Config struct {
	// Now reads the wall clock. Defaults to time.Now. Tests of clock steps put
	// another one here; it must run at the speed of the real one between steps.
	Now func() time.Time

	// OnStep is called when the wall clock was set, with how far, from the goroutine
	// that calls fire and before it fires what a step forward has made due. It is
	// called once a step; changes below 50 ms are not told from slewing. It may use
	// the wheel, and Looked then tells of the look before the step. Defaults to nothing.
	OnStep func(delta time.Duration)

	// OnLate is called, from the goroutine that calls fire, with true before each batch while
	// values are more than 20 ms late, and with false when no value is. Values of a crowd, a
	// tick with more than a batch, do not count: other values take turns with a crowd. OnLate
	// may use the wheel. Defaults to nothing.
	OnLate func(late bool)
}

// Handle names a value in the wheel. The zero Handle names nothing, and a handle
// whose value is gone never names another one.
type Handle struct {
	seq  uint64
	slot uint32
}

// Wheel holds values of type V until their time comes. All methods may be called
// from any goroutine, and from fire.
type Wheel[V any] struct {
	fire   func(due int64, batch []V)
	now    func() time.Time
	onStep func(time.Duration)
	onLate func(bool)
	alarm  alarmClock
	slots  int64        // of a clockwork; tests use few
	hand   hand         // touched by Run only
	start  time.Time    // of the monotonic clock
	known  atomic.Int64 // wall less monotonic clock, as Run has seen it
	looked atomic.Int64 // the wall clock then, Unix ms

	mu      sync.Mutex
	slab    slab[V]
	drawers map[int64]*drawer // all of them, also empty ones still armed
	recent  *drawer           // the last one used, or nil: adds come in neighbourhoods
	order   order             // those that hold something
	len     int
	firing  int64      // due of the batch that fire has now, or never
	crowd   int64      // the earliest tick, when a batch of it was fired and not all; else anything
	last    int64      // the tick behind the crowd that had the last turn, or the crowd
	spare   int        // values that those behind have before its next turn
	looks   int64      // when the hand looks up by itself; minDue when it is awake or woken
	works   *clockwork // nil unless Run runs
	calls   uint64     // of this clockwork
	dropped []*clockwork
	running bool
	stats   Stats
}

// New returns a wheel that hands what is due to fire. Nothing fires before Run.
//
// fire gets the values of one tick in batches of at most 1,024, in increasing
// order of due except for those added late; what became due behind a tick of more than
// a batch takes turns with the rest of it. Its calls come one after another; the
// batch is the wheel's again when it returns. It is never called with a due that
// the wall clock has not reached.
func New[V any](cfg Config, fire func(due int64, batch []V)) *Wheel[V] {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnStep == nil {
		cfg.OnStep = func(time.Duration) {}
	}
	if cfg.OnLate == nil {
		cfg.OnLate = func(bool) {}
	}
	w := &Wheel[V]{
		fire:    fire,
		now:     cfg.Now,
		onStep:  cfg.OnStep,
		onLate:  cfg.OnLate,
		slots:   slots,
		drawers: make(map[int64]*drawer),
		firing:  never,
		crowd:   never,
		looks:   minDue,
		start:   time.Now(),
	}
	_, offset := w.clocks()
	w.known.Store(int64(offset))
	w.alarm.init()
	return w
}

// Now reads the wall clock as the wheel does.
func (w *Wheel[V]) Now() time.Time { return w.now() }

// Add holds v until due, in Unix milliseconds, and then has it fired; at once when
// due is past. A due outside the years 1 to 9999 is moved to their edge.
func (w *Wheel[V]) Add(due int64, v V) Handle {
	due = min(max(due, minDue), maxDue)
	w.mu.Lock()
	slot, n := w.slab.take(due, v)
	h := Handle{n.seq, slot}
	d := w.open(keyOf(due))
	w.slab.link(d, slot, n)
	w.len++
	if d.place < 0 {
		w.order.enter(d)
	}
	wake := false
	if due < w.looks || due < d.armed && due == d.earliest() {
		wake = w.call(d, due, w.now())
	}
	w.mu.Unlock()
	if wake {
		w.alarm.wake()
	}
	return h
}

// Remove takes a value back before it is fired. It says false when that is too
// late: the value was handed to fire, or removed before.
func (w *Wheel[V]) Remove(h Handle) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.slab.find(h)
	if n == nil {
		return false
	}
	d := w.open(keyOf(n.due))
	w.slab.unlink(d, h.slot, n)
	w.slab.give(h.slot)
	w.len--
	w.close(d)
	return true
}

// Len counts the values that wait.
func (w *Wheel[V]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.len
}

// Low says how far all is done: every value added so far with a due of at most Low
// has been handed to a fire that has returned, or was removed. It is never later
// than now. A late Add takes it back below its due until that is fired too.
func (w *Wheel[V]) Low() int64 { return w.LowUpTo(w.now().UnixMilli()) }

// LowUpTo is Low up to another instant than now: one that was reached before the clock was
// set back.
func (w *Wheel[V]) LowUpTo(limit int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	low := min(limit, maxDue)
	if len(w.order) > 0 {
		low = min(low, w.order[0].earliest()-1)
	}
	return min(low, w.firing-1)
}

// Earliest returns the due that comes next, of the values that wait.
func (w *Wheel[V]) Earliest() (due int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return 0, false
	}
	return w.order[0].earliest(), true
}

// open returns the drawer of a key, a new one if there is none. w.mu must be held.
func (w *Wheel[V]) open(key int64) *drawer {
	if w.recent != nil && w.recent.key == key {
		return w.recent
	}
	d := w.drawers[key]
	if d == nil {
		d = &drawer{key: key, armed: never, place: -1}
		w.drawers[key] = d
	}
	w.recent = d
	return d
}

// close takes an empty drawer out of the order, and forgets it unless the clockwork
// will still call for it: then it stays, so that it is not armed a second time. Too
// many of those, and the clockwork is made anew without them. w.mu must be held.
func (w *Wheel[V]) close(d *drawer) {
	if d.used != 0 {
		return
	}
	w.order.leave(d)
	if d.armed == never {
		w.forget(d)
	} else if len(w.drawers) > 4096+2*len(w.order) {
		w.rewind()
	}
}

func (w *Wheel[V]) forget(d *drawer) {
	delete(w.drawers, d.key)
	if w.recent == d {
		w.recent = nil
	}
}

// call sees to it that somebody minds a drawer's first tick: the hand, which has to
// be woken when call returns true, for what is near; the clockwork for the rest.
// w.mu must be held.
func (w *Wheel[V]) call(d *drawer, due int64, now time.Time) (wake bool) {
	if until(due, now) <= near {
		wake = due < w.looks
		if wake {
			w.looks = minDue
		}
		return wake
	}
	if due < d.armed && w.works != nil {
		d.armed = due
		w.works.arm(d.key, due)
	}
	return false
}
