package cluster

import (
	"cmp"
	"slices"

	"xtimer/engine"
)

// Nobody stands in a Plan for a shard that no node can own.
const Nobody = -1

// Plan has for each shard the node that should own it, as an index into the nodes that
// MakePlan was called with, or Nobody.
type Plan [engine.Shards]int16

// MakePlan divides the shards among the nodes that have a life. Each node computes the
// plan from the rows that all nodes read. The order of the nodes does not matter.
//
// A node has a quota: its part of the shards by weight, rounded down. What remains goes
// one by one, first to nodes that own more than that. A node above its quota gives, a node
// below takes. So as few shards move as possible: a join moves the newcomer's quota, and a
// death only what the dead node owned. A node that drains has the quota 0. A node that is
// unfit has the quota 0 while a node serves. If no node has a quota, every shard stays.
//
// A plan that is carried out in part, in any order, remains the plan.
func MakePlan(nodes []engine.Node, shards *[engine.Shards]engine.Holding) Plan {
	var p Plan
	shares := make([]share, len(nodes))
	lives := make(map[uint64]int16, len(nodes))
	for i := range nodes {
		shares[i].hash = hashName(nodes[i].Name)
		if nodes[i].Life != 0 {
			lives[nodes[i].Life] = int16(i)
		}
	}
	for s := range shards {
		p[s] = Nobody
		if i, ok := lives[shards[s].Holder]; ok {
			p[s] = i
			shares[i].owned++
		}
	}
	if allot(nodes, shares) {
		given := p.give(shares)
		p.take(nodes, shards, shares, given)
	}
	return p
}

// share is what one node owns by the plan so far, and what it should own.
type share struct {
	hash         uint64
	owned, quota int
}

// wants reports whether the node should own more.
func (s *share) wants() bool { return s.owned < s.quota }

// allot sets the quotas. It reports whether any node has one.
func allot(nodes []engine.Node, shares []share) bool {
	state := engine.Unfit
	for i := range nodes {
		if nodes[i].Life != 0 && nodes[i].State == engine.Serving {
			state = engine.Serving
		}
	}
	able := make([]int16, 0, len(nodes))
	weights := 0
	for i := range nodes {
		if nodes[i].Life != 0 && nodes[i].State == state {
			able = append(able, int16(i))
			weights += max(nodes[i].Weight, 1)
		}
	}
	rest := engine.Shards
	for _, i := range able {
		shares[i].quota = engine.Shards * max(nodes[i].Weight, 1) / weights
		rest -= shares[i].quota
	}
	// By name, not by how much a node owns: that changes while the plan is carried out.
	slices.SortFunc(able, func(a, b int16) int {
		if above := shares[a].owned > shares[a].quota; above != (shares[b].owned > shares[b].quota) {
			if above {
				return -1
			}
			return 1
		}
		return cmp.Compare(nodes[a].Name, nodes[b].Name)
	})
	for _, i := range able[:min(rest, len(able))] {
		shares[i].quota++
	}
	return len(able) > 0
}

// give takes from the nodes above their quotas the shards that rank lowest there.
func (p *Plan) give(shares []share) (given [engine.Shards]bool) {
	type owned struct {
		rank  uint64
		shard int
	}
	var all [engine.Shards]owned
	n := 0
	for s, i := range p {
		if i != Nobody && shares[i].owned > shares[i].quota {
			all[n] = owned{rank(s, shares[i].hash), s}
			n++
		}
	}
	slices.SortFunc(all[:n], func(a, b owned) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.shard, b.shard))
	})
	for _, o := range all[:n] {
		if of := &shares[p[o.shard]]; of.owned > of.quota {
			of.owned--
			p[o.shard], given[o.shard] = Nobody, true
		}
	}
	return given
}

// take hands the shards that nobody owns to nodes below their quotas: first the free ones
// that were given to a node, then the other free ones, then those that are to be given.
func (p *Plan) take(nodes []engine.Node, shards *[engine.Shards]engine.Holding, shares []share, given [engine.Shards]bool) {
	for s := range p {
		if p[s] != Nobody || given[s] || shards[s].Heir == "" {
			continue
		}
		for i := range nodes {
			if nodes[i].Name == shards[s].Heir && shares[i].wants() {
				p[s] = int16(i)
				shares[i].owned++
			}
		}
	}
	for _, now := range []bool{false, true} {
		for s := range p {
			if p[s] == Nobody && given[s] == now {
				p.assign(s, shares)
			}
		}
	}
}

// assign hands a shard to the node below its quota where the shard ranks highest.
func (p *Plan) assign(shard int, shares []share) {
	highest := uint64(0)
	for i := range shares {
		if !shares[i].wants() {
			continue
		}
		if r := rank(shard, shares[i].hash); p[shard] == Nobody || r > highest {
			p[shard], highest = int16(i), r
		}
	}
	if i := p[shard]; i != Nobody {
		shares[i].owned++
	}
}

// hashName is FNV-1a.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// rank of a shard at a node: the finalizer of SplitMix64 over both, so that shards rank
// differently at nodes with similar names.
func rank(shard int, node uint64) uint64 {
	h := node + uint64(shard+1)*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
