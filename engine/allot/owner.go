package allot

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// OwnerConfig is what an owner works with. Instants are by Now.
type OwnerConfig struct {
	Life uint64 // of this node
	// Owns reports whether the life owns a shard now, and under which fence.
	Owns func(shard int) (fence uint64, ok bool)
	// Seen is what the life has last seen of the nodes; nil: nothing yet.
	Seen func() *engine.Membership
	// Rule is what the rules of this node say of a key.
	Rule  func(flow.Name) flow.Rule
	Now   func() time.Duration
	Store Store
	// Clock is between which instants (Unix ms) a clock is now that all owners have; false: it is
	// not known.
	Clock func() (earliest, latest int64, ok bool)
	Log   *slog.Logger
}

// Owner grants calls of the keys that this node owns.
type Owner struct {
	cfg OwnerConfig

	slow    chan struct{} // has room for one: held while calls of slow keys are granted and stored
	trouble bool          // the store has failed; guarded by slow

	mu     sync.Mutex // guards all below
	seen   *engine.Membership
	shards [engine.Shards]owned
	lives  map[uint64]*asker
	books  map[flow.Name]*book
	prune  int    // at so many books it is looked for those that know nothing
	turn   uint64 // the number of the last call that was granted, of any key
}

// owned is a shard.
type owned struct {
	fence uint64        // that the life owns it under; 0: it does not
	since time.Duration // since when, at the latest
	moves uint64        // a number of moves at which it was the life's
}

// asker is a life that may ask.
type asker struct {
	first time.Duration // when it was first seen
	gone  time.Duration // when it was seen no more; 0: it lives
	told  uint64        // see ask
}

const (
	// outlives is for how long the places of a life count that is over.
	outlives = 5 * time.Second
	// unknownLimit is when a node asks again for calls of a key whose limit this node does not
	// know yet, or the other has not seen removed.
	unknownLimit = 100 * time.Millisecond
	fewBooks     = 1000
)

// NewOwner makes an owner.
func NewOwner(cfg OwnerConfig) *Owner {
	return &Owner{
		cfg: cfg, lives: map[uint64]*asker{}, books: map[flow.Name]*book{}, prune: fewBooks, slow: make(chan struct{}, 1),
		turn: cfg.Life << 24, // so that no two owners give calls of a key the same number
	}
}

// Look sees which shards the life has gained or lost, and which lives are over.
func (o *Owner) Look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look(o.cfg.Now())
}

func (o *Owner) look(now time.Duration) {
	if seen := o.cfg.Seen(); seen != nil && seen != o.seen && seen.Shards != nil {
		o.see(seen, now)
	}
	for life, a := range o.lives {
		if a.gone > 0 && now-a.gone > outlives {
			delete(o.lives, life)
			for _, b := range o.books {
				delete(b.takers, life)
			}
		}
	}
	if len(o.books) > o.prune {
		for n, b := range o.books {
			if b.isIdle(now) {
				delete(o.books, n)
			}
		}
		o.prune = max(fewBooks, 2*len(o.books))
	}
}

func (o *Owner) see(seen *engine.Membership, now time.Duration) {
	o.seen = seen
	for s := range seen.Shards {
		h, x := &seen.Shards[s], &o.shards[s]
		switch {
		case h.Holder != o.cfg.Life:
			*x = owned{}
		case h.Fence != x.fence:
			*x = owned{fence: h.Fence, since: now, moves: seen.Moves}
		}
	}
	living := map[uint64]bool{}
	for i := range seen.Nodes {
		if life := seen.Nodes[i].Life; life != 0 {
			living[life] = true
			if o.lives[life] == nil {
				o.lives[life] = &asker{first: now}
			}
		}
	}
	for life, a := range o.lives {
		switch {
		case living[life]:
			a.gone = 0
		case a.gone == 0:
			a.gone = max(now, 1)
		}
	}
}

// placed reports whether all places are known that lives have at a key of a shard. Who takes
// timers over tells of the tasks that keep a place when it has read them.
func (o *Owner) placed(x *owned, l *flow.Limit, now time.Duration) bool {
	switch had := now - x.since; {
	case had >= flow.LongestStart:
		return true
	case l.HoldTask && had < outlives:
		return false
	}
	for _, a := range o.lives {
		if a.gone == 0 && a.first <= x.since && a.told < x.moves {
			return false
		}
	}
	return true
}

// answer grants what a life asks for.
func (o *Owner) answer(ctx context.Context, q *ask) answer {
	if slices.ContainsFunc(q.Keys, func(k keyAsk) bool { return o.cfg.Rule(k.name()).Limit.IsSlow() }) {
		return o.answerSlow(ctx, q)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.grantAll(q, func(*book, flow.Name, time.Duration, func() keyAnswer) keyAnswer {
		return keyAnswer{Elsewhere: true} // the limit was changed
	})
}

// grantAll grants what a life asks for, of slow keys as slow does. mu is held.
func (o *Owner) grantAll(q *ask, slow func(b *book, n flow.Name, now time.Duration, grant func() keyAnswer) keyAnswer) (a answer) {
	now := o.cfg.Now() // before it is looked at whether the shards are owned: see DESIGN.md
	o.look(now)
	x := o.lives[q.Life]
	if x == nil || x.gone != 0 {
		return answer{Stranger: true}
	}
	x.told = max(x.told, q.Told)
	for i := range q.Keys {
		k := &q.Keys[i]
		n := k.name()
		b, l := o.book(n, now)
		if b == nil {
			a.Keys = append(a.Keys, keyAnswer{Elsewhere: true})
			continue
		}
		grant := func() keyAnswer { return b.grant(q.Life, k, q.Number, o.placed(&o.shards[Shard(n)], l, now), now) }
		switch {
		case l.IsSlow():
			a.Keys = append(a.Keys, slow(b, n, now, grant))
		case l.IsShared():
			a.Keys = append(a.Keys, grant())
		default:
			k := grant()
			k.Again = unknownLimit
			a.Keys = append(a.Keys, k)
		}
	}
	return a
}

// book is that of a key, with the limit in force; nil: this node does not own the key. mu is held.
func (o *Owner) book(n flow.Name, now time.Duration) (*book, *flow.Limit) {
	shard := Shard(n)
	x := &o.shards[shard]
	if fence, ok := o.cfg.Owns(shard); !ok || x.fence == 0 || fence != x.fence {
		return nil, nil
	}
	b := o.books[n]
	if b == nil || b.fence != x.fence {
		b = &book{fence: x.fence, turn: &o.turn, takers: map[uint64]*taker{}}
		o.books[n] = b
	}
	r := o.cfg.Rule(n)
	l := r.Limit
	if !l.IsShared() {
		l = &flow.Limit{}
	}
	b.set(l, x.since, now)
	if r.Opened > b.opened {
		b.opened, b.closed = r.Opened, 0
	}
	return b, l
}
