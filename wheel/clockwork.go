package wheel

import (
	"sync"
	"time"

	"github.com/RussellLuo/timingwheel"
)

const (
	// slots of the clockwork's first hand. Its known self-deadlock (issues #53, #54)
	// needs an adder that stalls for a whole turn: with 4,096 slots of 1 ms, four seconds.
	slots = 4096

	// hop bounds how far ahead the clockwork is asked to call, so that it never grows
	// a third hand and its nanoseconds never overflow (they would in 2262). What is
	// further away is called for in hops.
	hop = 4 * time.Hour

	// turning is for how long hand 2 moves calls to hand 1 when it turns, which is at each
	// whole turn of hand 1.
	turning = 5 * time.Millisecond

	// ahead of a drawer's first tick the clockwork is asked to call.
	ahead = 4 * time.Millisecond
)

// clockwork calls when a drawer is about to be due. It is a timing wheel nobody
// trusts: it may call early, late, or never again, and it may never return from
// a call to it. So only the winder, a goroutine of its own, touches it, and when
// it is discarded nobody waits for it.
type clockwork struct {
	turn  time.Duration                 // of hand 1
	call  func(c *clockwork, key int64) // on a goroutine of the library's, once per arm
	now   func() time.Time
	works *timingwheel.TimingWheel
	kick  chan struct{} // something was armed
	quit  chan struct{}
	ended chan struct{} // closed by the winder when nothing of this clockwork runs any more

	mu      sync.Mutex // never held while the library is called
	pending []alarm    // armed, and not yet taken over by the winder
}

type alarm struct {
	key  int64
	tick int64
}

func newClockwork(slots int64, now func() time.Time, call func(*clockwork, int64)) *clockwork {
	c := &clockwork{
		turn:  time.Duration(slots) * time.Millisecond,
		call:  call,
		now:   now,
		works: timingwheel.NewTimingWheel(time.Millisecond, slots),
		kick:  make(chan struct{}, 1),
		quit:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	c.works.Start()
	go c.wind()
	return c
}

// arm asks for a call a little ahead of tick. It never blocks.
func (c *clockwork) arm(key, tick int64) {
	c.mu.Lock()
	c.pending = append(c.pending, alarm{key, tick})
	c.mu.Unlock()
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// wind hands what was armed to the library, and at the end stops it. Stopping comes
// after the last AfterFunc: one that runs while the library's poller leaves would
// block for ever (issue #31).
func (c *clockwork) wind() {
	defer close(c.ended)
	var batch []alarm
	for {
		select {
		case <-c.quit:
			c.stop()
			return
		case <-c.kick:
		}
		c.mu.Lock()
		batch, c.pending = c.pending, batch[:0]
		c.mu.Unlock()
		for _, a := range batch {
			select {
			case <-c.quit:
				c.stop()
				return
			default:
			}
			key := a.key
			c.works.AfterFunc(min(until(a.tick, c.now())-ahead, hop), func() { c.call(c, key) })
		}
		if cap(batch) > 4096 {
			batch = nil
		}
	}
}

// stop stops the library, but not while hand 2 turns: if the poller leaves meanwhile, the
// goroutine that moves the calls waits for the poller for ever. A call that was armed last may also be
// moved at once: after a turn without a call hand 1 is behind, and the library puts the call on hand 2.
func (c *clockwork) stop() {
	time.Sleep(turning)
	time.Sleep(turning - time.Duration(time.Now().UnixNano())%c.turn)
	c.works.Stop()
}

// discard ends a clockwork without waiting for it: ended says when it is over.
// A wedged one never ends; it keeps at most three goroutines (the winder, the
// library's two) and its buckets, about 0.5 MB.
func (c *clockwork) discard() { close(c.quit) }

func (c *clockwork) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// until says how long it is from now to a tick. Durations end at 292 years; what is
// further away is that far.
func until(tick int64, now time.Time) time.Duration {
	return time.UnixMilli(tick).Sub(now)
}
