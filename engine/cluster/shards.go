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
	fence uint64
	state holds
}

type holds uint8

const (
	foreign holds = iota // another life's, or free
	owned
	ceded // the life does not call for it any more, and gives it away
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
// give it.
func (x *shards) see(life uint64, read *[engine.Shards]engine.Holding) (gained []Gained, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for s := range read {
		h, r := &x.held[s], &read[s]
		same := r.Holder == life && r.Fence == h.fence
		switch {
		case h.state == owned && !same:
			return nil, fmt.Errorf("shard %d is held by %x under fence %d: %w", s, r.Holder, r.Fence, engine.ErrFenced)
		case h.state != foreign && same:
		case r.Holder == life:
			*h = held{r.Fence, owned}
			gained = append(gained, Gained{Shard: s, Fence: r.Fence, Clean: r.Clean, Former: r.Former})
		default:
			*h = held{}
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
