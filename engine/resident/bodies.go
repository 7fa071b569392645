package resident

import (
	"sync"
	"sync/atomic"

	"xtimer/engine"
)

// Bodies bounds the memory of payloads (see engine.Head), whatever their size and
// number. Of the limit
//
//	kept    are those of timers in the roster, half of it at most
//	flying  are those of calls: what was read for the call, and its request
//
// A timer whose payload does not fit is a head in the roster. The worker that is to
// make a call of it waits for room, and reads the timer from the cold tier.
//
// The calls of one app to one target together get no more room than they leave free.
// So n targets that do not answer leave the (n+1)th part of it to all others.
type Bodies struct {
	Limit int64
	// lacking are the bytes that heads in the roster lack.
	Lacking atomic.Int64
	// asks: somebody asks a cold tier that failed whether it answers.
	Asks atomic.Bool

	Mu      sync.Mutex // guards all below
	Kept    int64
	Flying  int64
	Shares  map[engine.Lane]*Share
	Waiting []*bodyWait // for room, in the order of arrival
	closed  bool
}

// LightPayload is what any timer may have: up to there nothing is counted.
const LightPayload = 1 << 10

// Share is the room that the calls of one app to one target have.
type Share struct {
	flying int64
	users  int // calls that have some or wait for some
}

type bodyWait struct {
	share *Share
	bytes int64
	has   chan bool // false: the process ends
}

// Body is what a call with a heavy payload has: room, and the timer.
type Body struct {
	Of      *Bodies
	Key     engine.Lane
	Share   *Share
	Bytes   int64
	Version uint32        // of the timer that it is for; 0: a light one needs nothing
	Timer   *engine.Timer // whole; nil: the roster has it
}

// Define puts a definition into force: whole when its payload fits, else its head.
// The shard's Mu is held.
func (b *Bodies) Define(lv *Timer, t *engine.Timer) {
	if lv.Def != nil {
		b.drop(lv.Def)
	}
	heavy := t.Payload() > LightPayload
	lv.Heavy.Store(heavy)
	if heavy {
		t = b.keep(t)
	}
	lv.Def = t
}

// keep returns what the roster has of a heavy timer. Its head lies in memory of its
// own, for tasks that wait to be stored share its strings.
func (b *Bodies) keep(t *engine.Timer) *engine.Timer {
	h := t
	if t.Omitted == 0 {
		h = engine.Head(t)
		b.Mu.Lock()
		defer b.Mu.Unlock()
		if n := int64(h.Omitted); b.Kept+n <= b.Limit/2 && n <= b.free() {
			b.Kept += n
			h.Omitted, h.Labels = 0, t.Labels
			h.Callback.Headers, h.Callback.Body = t.Callback.Headers, t.Callback.Body
			return h
		}
	}
	b.Lacking.Add(int64(h.Omitted))
	return h
}

// drop stops counting a definition of the roster.
func (b *Bodies) drop(t *engine.Timer) {
	n := int64(t.Payload())
	switch {
	case n <= LightPayload:
	case t.Omitted > 0:
		b.Lacking.Add(-n)
	default:
		b.Mu.Lock()
		defer b.Mu.Unlock()
		b.Kept -= n
		b.grant()
	}
}

// Leave drops the payload of a timer that leaves the roster: its tasks that wait to
// be stored need the head. The shard's Mu is held.
func (b *Bodies) Leave(lv *Timer) {
	if !lv.Heavy.Load() {
		return
	}
	b.drop(lv.Def)
	if lv.Def.Omitted == 0 {
		h := *lv.Def
		h.Omitted = uint32(h.Payload())
		h.Callback.Headers, h.Callback.Body, h.Labels = nil, nil, nil
		lv.Def = &h
	}
}

// whole is the timer that a call is made with. That of a recurring timer which was
// read for it stays, if it fits now. The shard's Mu is held.
func (b *Bodies) whole(sh *Shard, lv *Timer, c *Body) *engine.Timer {
	if lv.Def.Omitted == 0 {
		return lv.Def
	}
	if !lv.Plan.OneShot() && sh.Timers[lv.Def.ID] == lv {
		b.Define(lv, c.Timer)
	}
	return c.Timer
}

// free is the room that is left. Mu is held.
func (b *Bodies) free() int64 { return b.Limit - b.Kept - b.Flying }

// ahead is how much more room the timers in the roster may yet take.
func (b *Bodies) ahead() int64 {
	lacking := b.Lacking.Load()
	if lacking == 0 {
		return 0
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return max(min(2*lacking, b.free()), 0)
}

// Take waits for room; ok is false when the process ends.
func (b *Bodies) Take(k engine.Lane, bytes int64) (s *Share, ok bool) {
	b.Mu.Lock()
	if b.closed {
		b.Mu.Unlock()
		return nil, false
	}
	if s = b.Shares[k]; s == nil {
		s = &Share{}
		b.Shares[k] = s
	}
	s.users++
	w := &bodyWait{s, bytes, make(chan bool, 1)}
	b.Waiting = append(b.Waiting, w)
	b.grant()
	b.Mu.Unlock()
	return s, <-w.has
}

// grant gives room to those who wait, in order. Who has none goes before all who came
// later; who has some waits, while the others go on, until as much is free. A call
// that alone is larger than the limit is made alone. Mu is held.
func (b *Bodies) grant() {
	rest := b.Waiting[:0]
	for i, w := range b.Waiting {
		free := b.free()
		switch {
		case w.share.flying+w.bytes <= free, w.share.flying == 0 && w.bytes <= free, b.Flying == 0:
			b.Flying += w.bytes
			w.share.flying += w.bytes
			w.has <- true
			continue
		case w.share.flying == 0:
			rest = append(rest, b.Waiting[i:]...)
			clear(b.Waiting[len(rest):])
			b.Waiting = rest
			return
		}
		rest = append(rest, w)
	}
	clear(b.Waiting[len(rest):])
	b.Waiting = rest
}

// Release gives the room of a call back.
func (c *Body) Release() {
	b := c.Of
	if b == nil {
		return
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Flying -= c.Bytes
	c.Share.flying -= c.Bytes
	if c.Share.users--; c.Share.users == 0 {
		delete(b.Shares, c.Key)
	}
	b.grant()
}

// Close sends those away who wait, and who come.
func (b *Bodies) Close() {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.closed = true
	for _, w := range b.Waiting {
		w.has <- false
	}
	b.Waiting = nil
}

// attemptBytes is what a timer in the wheel may yet need: its task, an attempt that
// failed, and what settles them.
const attemptBytes = 1024

// IsFull tells that nothing new may be taken: all that is in the wheel may fail
// at once, and be called with payloads that are not in memory yet. 43,000 timers of a target that refused each of them were too much for a
// control group of 128 MiB, and the kernel ended the process.
func (m *Memory) IsFull() bool {
	return m.cfg.MemoryFull(attemptBytes*int64(m.Wheel.Len()) + m.Bodies.ahead())
}
