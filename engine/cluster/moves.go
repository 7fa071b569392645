package cluster

import (
	"slices"
	"sync"
	"time"

	"xtimer/engine"
)

// How says how shards came to their owner.
type How string

// The ways.
const (
	Started    How = "start"    // no node is known to have owned them, or the next life of their node kept them
	HandedOver How = "handover" // their former owner gave them
	TakenOver  How = "takeover" // the life of their former owner was over, and had not given them
	Evicted    How = "eviction" // likewise, and an administrator had ended it
)

// Ways are all of them.
var Ways = [...]How{Started, HandedOver, TakenOver, Evicted}

// Move is shards that went from one node to another in one way, each once, as a looker has
// seen it.
type Move struct {
	Shards   engine.Set
	From, To string // From is "" if no node is known to have owned them
	How      How
	At       int64 // when the last of them was seen to have its owner, Unix ms by the table's clock
	// Gap is for how long one of them had no owner, at most.
	Gap time.Duration
}

// moves are those that the looks of a life have shown. It knows of none before the first one.
type moves struct {
	mu     sync.Mutex // guards all below
	looked time.Duration
	of     [engine.Shards]tenure
	lives  map[uint64]sign // as the last look read them
	recent []Move          // the oldest first
	own    map[How]int64   // how many shards came to the life's node
}

// tenure is who owns a shard, or owned it last.
type tenure struct {
	life  uint64 // 0: nobody does
	node  string
	how   How           // it lost the shard
	since time.Duration // from when on it did not own the shard, at the earliest
}

// sign is what a look has read of a life, and since when its beat is that.
type sign struct {
	engine.Pulse
	wish  engine.Wish
	since time.Duration
}

const (
	mostMoves = 256  // that are remembered
	oneMove   = 5000 // ms: what follows a move within that, between the same nodes and in the same way, is of the same move
)

// see compares what a look has read with what the one before read. now is an instant after it.
func (x *moves) see(now time.Duration, own string, seen *engine.Membership) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.lives
	x.lives = make(map[uint64]sign, len(seen.Nodes))
	ended := map[string]bool{} // the nodes whose last life an administrator ended
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if n.Life == 0 {
			ended[n.Name] = n.Wish == engine.WishEnd
			continue
		}
		s := sign{n.Pulse(), n.Wish, now}
		if before, ok := was[n.Life]; ok && before.Pulse == s.Pulse {
			s.since = before.since
		}
		x.lives[n.Life] = s
	}
	for s := range seen.Shards {
		h, t := &seen.Shards[s], &x.of[s]
		if was == nil {
			*t = tenure{life: h.Holder, node: x.lives[h.Holder].Node, since: now}
			continue
		}
		if h.Holder == t.life {
			continue
		}
		if t.life != 0 {
			t.how, t.since = TakenOver, x.looked
			last, knew := was[t.life]
			_, lives := x.lives[t.life]
			switch {
			case lives || h.Heir != "" || h.Holder != 0 && h.Clean:
				t.how = HandedOver
			case knew && (last.wish == engine.WishEnd || ended[t.node]):
				t.how = Evicted
			case knew:
				t.since = last.since
			}
			t.life = 0
		}
		if h.Holder != 0 {
			x.add(Move{
				Shards: engine.SetOf(s), From: t.node, To: x.lives[h.Holder].Node, How: t.how, At: seen.Now, Gap: now - t.since,
			}, own)
			*t = tenure{life: h.Holder, node: x.lives[h.Holder].Node}
		}
	}
	x.looked = now
}

// add notes a move of one shard. mu is held.
func (x *moves) add(m Move, own string) {
	if m.From == "" || m.From == m.To {
		m.How = Started
	}
	if m.To == own {
		if x.own == nil {
			x.own = map[How]int64{}
		}
		x.own[m.How]++
	}
	for i := range slices.Backward(x.recent) {
		r := &x.recent[i]
		if m.At-r.At > oneMove {
			break
		}
		if r.From == m.From && r.To == m.To && r.How == m.How && r.Shards.Without(m.Shards) == r.Shards {
			r.Shards, r.At, r.Gap = r.Shards.Union(m.Shards), m.At, max(r.Gap, m.Gap)
			return
		}
	}
	if len(x.recent) == mostMoves {
		x.recent = slices.Delete(x.recent, 0, 1)
	}
	x.recent = append(x.recent, m)
}

// Moves are the last moves of shards that the life has seen, the newest first.
func (m *Member) Moves() []Move {
	m.moves.mu.Lock()
	defer m.moves.mu.Unlock()
	all := slices.Clone(m.moves.recent)
	slices.SortStableFunc(all, func(a, b Move) int { return int(b.At - a.At) })
	return all
}

// Taken is how many shards have come to the life's node in a way.
func (m *Member) Taken(how How) int64 {
	m.moves.mu.Lock()
	defer m.moves.mu.Unlock()
	return m.moves.own[how]
}
