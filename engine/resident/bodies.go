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
	limit int64
	// lacking are the bytes that heads in the roster lack.
	lacking atomic.Int64
	// asks: somebody asks a cold tier that failed whether it answers.
	Asks atomic.Bool

	mu      sync.Mutex // guards all below
	kept    int64
	flying  int64
	shares  map[engine.Lane]*Share
	waiting []*bodyWait // for room, in the order of arrival
	closed  bool
}

// LightPayload is what any timer may have: up to there nothing is counted.
const lightPayload = 1 << 10

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

// define puts a definition into force: whole when its payload fits, else its head.
// The shard's mu is held.
func (b *Bodies) define(lv *Timer, t *engine.Timer) {
	if lv.def != nil {
		b.drop(lv.def)
	}
	heavy := t.Payload() > lightPayload
	lv.heavy.Store(heavy)
	if heavy {
		t = b.keep(t)
	}
	lv.def = t
}

// keep returns what the roster has of a heavy timer. Its head lies in memory of its
// own, for tasks that wait to be stored share its strings.
func (b *Bodies) keep(t *engine.Timer) *engine.Timer {
	h := t
	if t.Omitted == 0 {
		h = engine.Head(t)
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := int64(h.Omitted); b.kept+n <= b.limit/2 && n <= b.free() {
			b.kept += n
			h.Omitted, h.Labels = 0, t.Labels
			h.Callback.Headers, h.Callback.Body = t.Callback.Headers, t.Callback.Body
			return h
		}
	}
	b.lacking.Add(int64(h.Omitted))
	return h
}

// drop stops counting a definition of the roster.
func (b *Bodies) drop(t *engine.Timer) {
	n := int64(t.Payload())
	switch {
	case n <= lightPayload:
	case t.Omitted > 0:
		b.lacking.Add(-n)
	default:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.kept -= n
		b.grant()
	}
}

// leave drops the payload of a timer that leaves the roster: its tasks that wait to
// be stored need the head. The shard's mu is held.
func (b *Bodies) leave(lv *Timer) {
	if !lv.heavy.Load() {
		return
	}
	b.drop(lv.def)
	if lv.def.Omitted == 0 {
		lv.def = engine.Without(lv.def)
	}
}

// whole is the timer that a call is made with. That of a recurring timer which was
// read for it stays, if it fits now. The shard's mu is held.
func (b *Bodies) whole(sh *shard, lv *Timer, c *Body) *engine.Timer {
	if lv.def.Omitted == 0 {
		return lv.def
	}
	if !lv.plan.OneShot() && sh.timers[lv.def.ID] == lv {
		b.define(lv, c.Timer)
	}
	return c.Timer
}

// Bytes are those of the payloads that timers have in memory, and that calls have room for.
func (b *Bodies) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept + b.flying
}

// free is the room that is left. mu is held.
func (b *Bodies) free() int64 { return b.limit - b.kept - b.flying }

// ahead is how much more room the timers in the roster may yet take.
func (b *Bodies) ahead() int64 {
	lacking := b.lacking.Load()
	if lacking == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(min(2*lacking, b.free()), 0)
}

// Take waits for room; ok is false when the process ends.
func (b *Bodies) Take(k engine.Lane, bytes int64) (s *Share, ok bool) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, false
	}
	if s = b.shares[k]; s == nil {
		s = &Share{}
		b.shares[k] = s
	}
	s.users++
	w := &bodyWait{s, bytes, make(chan bool, 1)}
	b.waiting = append(b.waiting, w)
	b.grant()
	b.mu.Unlock()
	return s, <-w.has
}

// Try is Take without a wait: for who has room already, for which others may wait.
func (b *Bodies) Try(k engine.Lane, bytes int64) (s *Share, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = b.shares[k]
	if s == nil {
		s = &Share{}
	}
	if b.closed || len(b.waiting) > 0 || s.flying+bytes > b.free() {
		return nil, false
	}
	b.shares[k] = s
	s.users++
	b.flying += bytes
	s.flying += bytes
	return s, true
}

// grant gives room to those who wait, in order. Who has none goes before all who came
// later; who has some waits, while the others go on, until as much is free. A call
// that alone is larger than the limit is made alone. mu is held.
func (b *Bodies) grant() {
	rest := b.waiting[:0]
	for i, w := range b.waiting {
		free := b.free()
		switch {
		case w.share.flying+w.bytes <= free, w.share.flying == 0 && w.bytes <= free, b.flying == 0:
			b.flying += w.bytes
			w.share.flying += w.bytes
			w.has <- true
			continue
		case w.share.flying == 0:
			rest = append(rest, b.waiting[i:]...)
			clear(b.waiting[len(rest):])
			b.waiting = rest
			return
		}
		rest = append(rest, w)
	}
	clear(b.waiting[len(rest):])
	b.waiting = rest
}

// Release gives the room of a call back.
func (c *Body) Release() {
	b := c.Of
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying -= c.Bytes
	c.Share.flying -= c.Bytes
	if c.Share.users--; c.Share.users == 0 {
		delete(b.shares, c.Key)
	}
	b.grant()
}

// Close sends those away who wait, and who come.
func (b *Bodies) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, w := range b.waiting {
		w.has <- false
	}
	b.waiting = nil
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

// Payloads is what is known of the payloads in memory, for tests.
type Payloads struct {
	Held            int64 // the bytes that timers have, as they are
	Kept            int64 // … as they are counted
	Flying, Lacking int64
	Waiting, Shares int
}

// CountPayloads goes through all timers.
func (m *Memory) CountPayloads() (p Payloads) {
	for i := range m.shards {
		sh := m.lockShard(i)
		seen := map[*engine.Timer]bool{}
		add := func(t *engine.Timer) {
			if n := t.Payload() - int(t.Omitted); n > lightPayload && !seen[t] {
				seen[t] = true
				p.Held += int64(n)
			}
		}
		for _, lv := range sh.timers {
			add(lv.def)
		}
		for _, t := range sh.order {
			add(t.timer.def)
		}
		sh.mu.Unlock()
	}
	b := &m.Bodies
	b.mu.Lock()
	defer b.mu.Unlock()
	p.Kept, p.Flying, p.Lacking, p.Waiting, p.Shares = b.kept, b.flying, b.lacking.Load(), len(b.waiting), len(b.shares)
	return p
}
