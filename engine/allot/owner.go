package allot

import (
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
	// Limit is the limit of a key that the rules of this node say; nil: none.
	Limit func(flow.Name) *flow.Limit
	Now   func() time.Duration
}

// Owner grants calls of the keys that this node owns.
type Owner struct {
	cfg OwnerConfig

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
		cfg: cfg, lives: map[uint64]*asker{}, books: map[flow.Name]*book{}, prune: fewBooks,
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
func (o *Owner) answer(q *ask) (a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.cfg.Now() // before it is looked at whether the shards are owned: see DESIGN.md
	o.look(now)
	x := o.lives[q.Life]
	if x == nil || x.gone != 0 {
		return answer{Stranger: true}
	}
	x.told = max(x.told, q.Told)
	for i := range q.Keys {
		a.Keys = append(a.Keys, o.grant(q, &q.Keys[i], now))
	}
	return a
}

func (o *Owner) grant(q *ask, k *keyAsk, now time.Duration) keyAnswer {
	n := k.name()
	shard := Shard(n)
	x := &o.shards[shard]
	if fence, ok := o.cfg.Owns(shard); !ok || x.fence == 0 || fence != x.fence {
		return keyAnswer{Elsewhere: true}
	}
	b := o.books[n]
	if b == nil || b.fence != x.fence {
		b = &book{fence: x.fence, turn: &o.turn, takers: map[uint64]*taker{}}
		o.books[n] = b
	}
	l := o.cfg.Limit(n)
	if !l.IsShared() {
		l = &flow.Limit{}
	}
	b.set(l, x.since, now)
	a := b.grant(q.Life, k, q.Number, o.placed(x, l, now), now)
	if !l.IsShared() {
		a.Again = unknownLimit
	}
	return a
}
