package cluster

import (
	"fmt"
	"sync"
	"time"

	"xtimer/engine"
)

// Gained is a shard that a life has become the holder of.
type Gained struct {
	Shard int
	Fence uint64
	Clean bool // see engine.Holding
	// Kept: the former life of the node held it until this life joined, so no other life has
	// had it since, and the node's journal tells of it.
	Kept bool
	// Former is the life whose mirror tells of it, see engine.Holding; 0 for none.
	Former uint64
}

// shards is what one life holds. Only looks add to it and remove from it. A hand-over
// only marks: a shard that the life began to give it never owns again under that fence,
// because a Give in doubt may be carried out at any time.
type shards struct {
	mu   sync.Mutex
	held [engine.Shards]held
}

type held struct {
	fence uint64 // also of a shard that the life has given: the last one
	state holds
	gone  int // of a given one: how many looks have shown the shard as the life's since
}

type holds uint8

const (
	foreign holds = iota // another life's, or free
	owned
	ceded // the life does not call for it any more, and gives it away
	given // … and the table has said that the shard is given
)

// owns reports whether the life owns a shard, and under which fence.
func (x *shards) owns(shard int) (fence uint64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.held[shard]
	return h.fence, h.state == owned
}

// see brings the shards in line with what a look read. A Take in doubt that was carried
// out shows here too. ErrFenced: a shard is not the life's any more, and the life did not
// give it; or it is the life's again under the fence under which the life has given it, so
// the table has gone back to an earlier state, and what it says of the shard is not true of
// what the life has called since.
func (x *shards) see(life uint64, read *[engine.Shards]engine.Holding) (gained []Gained, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for s := range read {
		h, r := &x.held[s], &read[s]
		same := r.Holder == life && r.Fence == h.fence
		if h.gone++; h.state != given || !same {
			h.gone = 0
		}
		switch {
		case h.gone > 1: // the look that was under way when the shard was given may have read that it was not
			return nil, fmt.Errorf("shard %d was given, and is not: the table has gone back: %w", s, engine.ErrFenced)
		case h.state == owned && !same:
			return nil, fmt.Errorf("shard %d is held by %x under fence %d: %w", s, r.Holder, r.Fence, engine.ErrFenced)
		case h.state != foreign && same:
		case r.Holder == life && r.Fence <= h.fence:
			return nil, fmt.Errorf("shard %d was given under fence %d and is held under fence %d: the table has gone back: %w", s, h.fence, r.Fence, engine.ErrFenced)
		case r.Holder == life:
			*h = held{fence: r.Fence, state: owned}
			gained = append(gained, Gained{Shard: s, Fence: r.Fence, Clean: r.Clean, Former: r.Former})
		default:
			h.state = foreign
		}
	}
	return gained, nil
}

// cede marks up to n of the owned shards that a plan has for other nodes, in order. heir
// reports whether a node may be given any.
func (x *shards) cede(nodes []engine.Node, p *Plan, me, n int, heir func(name string) bool) (given []engine.Handover) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for s := range x.held {
		h, to := &x.held[s], int(p[s])
		if h.state == owned && to != Nobody && to != me && len(given) < n && heir(nodes[to].Name) {
			h.state = ceded
			given = append(given, engine.Handover{Shard: s, Fence: h.fence, Heir: nodes[to].Name})
		}
	}
	return given
}

// gave notes that the table has said that shards are given.
func (x *shards) gave(list []engine.Handover) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list {
		if h := &x.held[list[i].Shard]; h.state == ceded && h.fence == list[i].Fence {
			h.state = given
		}
	}
}

// free is since when a looker has seen each shard free.
type free [engine.Shards]struct {
	yes   bool
	fence uint64
	since time.Duration
}

// see notes what a look read at an instant.
func (f *free) see(now time.Duration, read *[engine.Shards]engine.Holding) {
	for s := range read {
		x, is := &f[s], read[s].Holder == 0
		if is && !(x.yes && x.fence == read[s].Fence) {
			x.since = now
		}
		x.yes, x.fence = is, read[s].Fence
	}
}

// planned lists the free shards that the plan has for a node.
func (f *free) planned(p *Plan, me int) (shards []int) {
	for s := range f {
		if f[s].yes && int(p[s]) == me {
			shards = append(shards, s)
		}
	}
	return shards
}

// spared lists the free shards that the nodes of the plan have not taken for longer than a
// time.
func (f *free) spared(now, longer time.Duration, p *Plan, me int) (shards []int) {
	for s := range f {
		if f[s].yes && int(p[s]) != me && now-f[s].since >= longer {
			shards = append(shards, s)
		}
	}
	return shards
}
