package allot

import (
	"time"

	"xtimer/engine/flow"
)

// book is one key at its owner.
type book struct {
	fence  uint64 // that its shard was owned under when it was made
	limit  flow.Limit
	slots  flow.Slots
	takers map[uint64]*taker // by their lives
	turn   *uint64           // of the owner
	last   uint64            // the turn of the last call
	closed time.Duration     // until when answers have asked that the key be closed, since …
	opened int64             // … somebody has ended that, see flow.Rule
	// Of a slow key: what is stored counts in slots; or it was read, and will.
	known bool
	read  *flow.Kept
}

// taker is a life that asks for calls of a key.
type taker struct {
	number uint64        // of its last ask
	holds  int           // places that it has, and that it was granted
	calls  int           // it wants, each with a place if the key has places, …
	kept   int           // … and without one, for tasks that have kept theirs …
	asks   time.Duration // when it is to ask again …
	until  time.Duration // … and by when, or it wants nothing
	turn   uint64        // of the last call that it was granted
	since  time.Duration // it waits
	// What it was granted since its last answer. Instants are the owner's.
	runs   []run
	places int
}

const (
	// most calls of a key are granted to a node at once.
	most = 1000
	// grace is how much later than it was told a taker may ask again and not lose its turn.
	grace = 200 * time.Millisecond
	// soon is when a taker asks again that may get more at once.
	soon = 5 * time.Millisecond
	// One that waits for a place asks again after a quarter of the time that it has waited,
	// within these.
	blocked, mostBlocked = 10 * time.Millisecond, 160 * time.Millisecond
)

// set puts a limit into force. since is when the owner became it.
func (b *book) set(l *flow.Limit, since, now time.Duration) {
	if b.limit == *l {
		return
	}
	if b.slots.Set(l, now) {
		b.known, b.read = false, nil
	}
	if b.limit == (flow.Limit{}) && !l.IsSlow() { // of a slow key it is known what was granted
		b.slots.Owned(since)
	}
	b.limit = *l
	for _, t := range b.takers {
		t.drop()
		if l.Concurrency == 0 {
			t.holds = 0
		}
	}
}

// drop takes back what a taker was granted and not yet told of.
func (t *taker) drop() {
	t.holds -= t.places
	t.runs, t.places, t.calls, t.kept = nil, 0, 0, 0
}

// grant answers an ask. placed: all places that nodes have are known.
func (b *book) grant(life uint64, k *keyAsk, number uint64, placed bool, now time.Duration) (a keyAnswer) {
	t := b.takers[life]
	if t == nil {
		t = &taker{since: now}
		b.takers[life] = t
	}
	if number <= t.number {
		return keyAnswer{Elsewhere: true} // the life has asked again since
	}
	if now > t.until {
		t.drop()
	}
	if k.Unused != 0 && k.Unused == b.last {
		b.slots.Back()
	}
	if b.limit.Cooldown && k.Closed > 0 {
		b.closed = max(b.closed, now+min(k.Closed, flow.MaxCooldown))
	}
	granted := 0
	for _, r := range t.runs {
		granted += r.N
	}
	t.number, t.holds, t.asks, t.until = number, max(0, k.Holds)+t.places, now, now
	t.calls = max(0, min(k.Calls, most)-t.places)
	if t.kept = 0; b.limit.Concurrency == 0 {
		t.calls = max(0, min(k.Calls, most)-granted)
	} else if b.limit.Rate > 0 {
		t.kept = max(0, min(k.Kept, most)-(granted-t.places))
	}
	b.allot(placed, now)
	if len(t.runs) > 0 || t.calls+t.kept == 0 {
		t.since = now
	}
	a = keyAnswer{Places: t.places, For: flow.Validity(&b.limit), Closed: max(0, b.closed-now), Again: b.again(t, now)}
	for _, r := range t.runs {
		r.At -= now
		a.Runs = append(a.Runs, r)
	}
	t.runs, t.places, t.asks = nil, 0, now+a.Again
	t.until = t.asks + graceOf(&b.limit)
	return a
}

// allot grants what can be granted: each call to the node that waits and was granted one
// longest ago.
func (b *book) allot(placed bool, now time.Duration) {
	if !b.limit.IsShared() {
		return
	}
	free := 0
	if b.limit.Concurrency > 0 && placed {
		free = b.free(now)
	}
	for {
		at := max(b.slots.Next(now), b.closed)
		if at > now+flow.Lookahead {
			return
		}
		t := b.first(at, free, now)
		if t == nil {
			return
		}
		*b.turn++
		t.turn, b.last = *b.turn, *b.turn
		b.slots.Take(at)
		switch {
		case t.calls > 0 && b.limit.Concurrency == 0:
			t.calls--
		case t.calls > 0 && free > 0:
			t.calls--
			free--
			t.places++
			t.holds++
		default:
			t.kept--
		}
		t.add(at)
	}
}

// free is how many places are free.
func (b *book) free(now time.Duration) int {
	n := b.limit.Concurrency
	for _, t := range b.takers {
		if now > t.until {
			t.drop()
		}
		n -= t.holds
	}
	return n
}

// first is the taker that goes first of those that want what there is and ask again before a call
// for an instant lapses, nil if none does.
func (b *book) first(at time.Duration, free int, now time.Duration) (first *taker) {
	for _, t := range b.takers {
		if now > t.until || t.asks > at+flow.Validity(&b.limit)/2 || t.kept == 0 && (t.calls == 0 || b.limit.Concurrency > 0 && free <= 0) {
			continue
		}
		if first == nil || t.turn < first.turn {
			first = t
		}
	}
	return first
}

// add adds a call to those that are granted.
func (t *taker) add(at time.Duration) {
	if len(t.runs) > 0 {
		r := &t.runs[len(t.runs)-1]
		last := r.At + time.Duration(r.N-1)*r.Every
		if r.N == 1 || at-last == r.Every {
			r.Every, r.N, r.Last = at-last, r.N+1, t.turn
			return
		}
	}
	t.runs = append(t.runs, run{At: at, N: 1, Last: t.turn})
}

// again is how much later a taker is to ask that wants more.
func (b *book) again(t *taker, now time.Duration) time.Duration {
	next := max(b.slots.Next(now), b.closed)
	switch {
	case t.calls+t.kept == 0:
		return soon
	case next > now+flow.Lookahead:
		return next - now - flow.Lookahead/2
	}
	return min(max(blocked, (now-t.since)/4), mostBlocked)
}

// isIdle reports whether a new book would know the same.
func (b *book) isIdle(now time.Duration) bool {
	if b.closed > now || !b.slots.IsFull(now) {
		return false
	}
	for _, t := range b.takers {
		if t.holds > 0 || t.calls+t.kept > 0 && now <= t.until {
			return false
		}
	}
	return true
}
