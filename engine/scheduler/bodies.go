package scheduler

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// bodies bounds the memory of payloads (see engine.Head), whatever their size and
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
type bodies struct {
	limit int64
	// lacking are the bytes that heads in the roster lack.
	lacking atomic.Int64
	// asks: somebody asks a cold tier that failed whether it answers.
	asks atomic.Bool

	mu      sync.Mutex // guards all below
	kept    int64
	flying  int64
	shares  map[engine.Lane]*share
	waiting []*bodyWait // for room, in the order of arrival
	closed  bool
	trouble trouble
}

// lightPayload is what any timer may have: up to there nothing is counted.
const lightPayload = 1 << 10

// share is the room that the calls of one app to one target have.
type share struct {
	flying int64
	users  int // calls that have some or wait for some
}

type bodyWait struct {
	share *share
	bytes int64
	has   chan bool // false: the process ends
}

// body is what a call with a heavy payload has: room, and the timer.
type body struct {
	of      *bodies
	key     engine.Lane
	share   *share
	bytes   int64
	version uint32        // of the timer that it is for; 0: a light one needs nothing
	timer   *engine.Timer // whole; nil: the roster has it
}

// define puts a definition into force: whole when its payload fits, else its head.
// The shard's mu is held.
func (b *bodies) define(lv *live, t *engine.Timer) {
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
func (b *bodies) keep(t *engine.Timer) *engine.Timer {
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
func (b *bodies) drop(t *engine.Timer) {
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
func (b *bodies) leave(lv *live) {
	if !lv.heavy.Load() {
		return
	}
	b.drop(lv.def)
	if lv.def.Omitted == 0 {
		h := *lv.def
		h.Omitted = uint32(h.Payload())
		h.Callback.Headers, h.Callback.Body, h.Labels = nil, nil, nil
		lv.def = &h
	}
}

// whole is the timer that a call is made with. That of a recurring timer which was
// read for it stays, if it fits now. The shard's mu is held.
func (b *bodies) whole(sh *shard, lv *live, c *body) *engine.Timer {
	if lv.def.Omitted == 0 {
		return lv.def
	}
	if !lv.plan.OneShot() && sh.timers[lv.def.ID] == lv {
		b.define(lv, c.timer)
	}
	return c.timer
}

// free is the room that is left. mu is held.
func (b *bodies) free() int64 { return b.limit - b.kept - b.flying }

// ahead is how much more room the timers in the roster may yet take.
func (b *bodies) ahead() int64 {
	lacking := b.lacking.Load()
	if lacking == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(min(2*lacking, b.free()), 0)
}

// take waits for room; ok is false when the process ends.
func (b *bodies) take(k engine.Lane, bytes int64) (s *share, ok bool) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, false
	}
	if s = b.shares[k]; s == nil {
		s = &share{}
		b.shares[k] = s
	}
	s.users++
	w := &bodyWait{s, bytes, make(chan bool, 1)}
	b.waiting = append(b.waiting, w)
	b.grant()
	b.mu.Unlock()
	return s, <-w.has
}

// grant gives room to those who wait, in order. Who has none goes before all who came
// later; who has some waits, while the others go on, until as much is free. A call
// that alone is larger than the limit is made alone. mu is held.
func (b *bodies) grant() {
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

// release gives the room of a call back.
func (c *body) release() {
	b := c.of
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying -= c.bytes
	c.share.flying -= c.bytes
	if c.share.users--; c.share.users == 0 {
		delete(b.shares, c.key)
	}
	b.grant()
}

// close sends those away who wait, and who come.
func (b *bodies) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, w := range b.waiting {
		w.has <- false
	}
	b.waiting = nil
}

// ready gets what the call of a task needs, before it begins. ok is false when the
// task is put off, for the cold tier cannot be read, or the process ends.
func (e *Scheduler) ready(t *task) (b body, ok bool) {
	if !t.live.heavy.Load() {
		return body{}, true
	}
	sh := e.shardOf(t.Key.Timer)
	for {
		sh.mu.Lock()
		def, stands := t.live.def, t.state == isWaiting && !t.live.held
		sh.mu.Unlock()
		if !stands {
			return body{}, true // begin sets the task aside
		}
		if b, ok = e.room(def); !ok || def.Omitted == 0 {
			return b, ok
		}
		whole, err := e.whole(def.ID)
		if err == nil && whole.Version == def.Version {
			b.timer = whole
			return b, true
		}
		b.release()
		if err != nil {
			e.putOff(t, err)
			return body{}, false
		}
		sleep(e.life, time.Millisecond) // a change of it is being put into force
	}
}

// room waits for what a call of the timer takes: its request, and what is read for it.
func (e *Scheduler) room(def *engine.Timer) (b body, ok bool) {
	b = body{
		of: &e.bodies, key: def.Lane(),
		bytes: int64(def.Payload()) + int64(def.Omitted), version: def.Version,
	}
	if b.share, ok = e.bodies.take(b.key, b.bytes); !ok {
		return body{}, false
	}
	return b, true
}

var errSilent = errors.New("the cold tier did not answer")

// whole reads a timer. While the cold tier fails, one asks at a time.
func (e *Scheduler) whole(id engine.TimerID) (*engine.Timer, error) {
	failed := e.readsFail.Load()
	if failed {
		if !e.bodies.asks.CompareAndSwap(false, true) {
			return nil, errSilent
		}
		defer e.bodies.asks.Store(false)
	}
	t, err := e.cfg.Cold.Timer(e.life, id)
	if away := err != nil && !errors.Is(err, engine.ErrNotFound); away || failed {
		if !away {
			err = nil
		}
		e.heard(err)
	}
	return t, err
}

// putOff tries a task again in 1 to 5 s, all of one timer at once: no attempt of it
// has begun.
func (e *Scheduler) putOff(t *task, err error) {
	if errors.Is(err, context.Canceled) {
		return // the process ends, and the last settle leaves a row of it
	}
	e.bodies.mu.Lock()
	e.bodies.trouble.tell(e.log, "cannot read timers that are to be called; their calls wait", err)
	e.bodies.mu.Unlock()
	sh := e.shardOf(t.Key.Timer)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case t.state != isWaiting: // cancelled meanwhile
	case t.live.held:
		t.state = isHeld
	default:
		at, offset := e.now()+1000, int64(plan.Scatter(uint64(t.Key.Timer), 0)%4000)
		e.later(sh, t, at+(offset-at%4000+4000)%4000)
	}
}
