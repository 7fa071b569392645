package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/cluster"
	"xtimer/httpapi/nodes"
)

// newLife is the life of a node among several, over the cold tier that they share; nil: the
// server is alone.
func newLife(s *settings.Settings, cold engine.Cold, warm engine.Warm, log *slog.Logger) *cluster.Config {
	if !s.Cluster {
		return nil
	}
	return &cluster.Config{
		Node: engine.Node{
			Name: s.Node, Life: 1 + rand.Uint64N(1<<64-1), // 0 is no life
			Journal: store.Journal(s.DataDir, log), Weight: s.Weight, Address: s.Advertise, Speaks: engine.Speaks,
		},
		Members: store.Members(cold),
		Mirror:  store.Mirror(warm),
		Times:   cluster.TimesOf(s.Lease),
		Boot:    bootClock(),
		After:   time.After,
		Wall:    time.Now,
		Log:     log,
	}
}

// bootClock reads a clock that does not stand still while the machine is suspended. Where the
// system has none, it reads one that does.
func bootClock() func() time.Duration {
	if _, err := sinceBoot(); err != nil {
		began := time.Now()
		return func() time.Duration { return time.Since(began) }
	}
	return func() time.Duration {
		d, _ := sinceBoot() // a clock that could be read once can be read
		return d
	}
}

// peers is what the API is told of the nodes: what the life has seen at its last look.
type peers struct{ *cluster.Member }

// newPeers is of a node among several; nil: the server is alone.
func newPeers(life *cluster.Member) nodes.Cluster {
	if life == nil {
		return nil
	}
	return peers{life}
}

// Owner implements nodes.Cluster.
func (p peers) Owner(shard int) (n nodes.Node, ok bool) {
	seen := p.Seen()
	if seen == nil || seen.Shards[shard].Holder == 0 {
		return n, false
	}
	for _, n := range p.Nodes() {
		if n.Life == seen.Shards[shard].Holder {
			return n, true
		}
	}
	return n, false
}

// Nodes implements nodes.Cluster.
func (p peers) Nodes() (ns []nodes.Node) {
	seen := p.Seen()
	if seen == nil {
		return nil
	}
	owned := map[uint64]int{}
	for i := range seen.Shards {
		owned[seen.Shards[i].Holder]++
	}
	for i := range seen.Nodes {
		if n := &seen.Nodes[i]; n.Life != 0 {
			ns = append(ns, nodes.Node{
				Name: n.Name, Address: n.Address, Own: n.Life == p.Node().Life, Life: n.Life,
				State: n.State, Wish: n.Wish, Weight: n.Weight, Shards: owned[n.Life], Skew: time.Duration(n.Skew) * time.Millisecond,
				Beaten: p.Unbeaten(n), Why: p.Why(n),
			})
		}
	}
	return ns
}

// Ask implements nodes.Cluster.
func (p peers) Ask(ctx context.Context, life uint64, w engine.Wish) error {
	return p.Wish(ctx, life, w)
}

// Secret implements nodes.Cluster.
func (p peers) Secret() []byte {
	seen := p.Seen()
	if seen == nil || seen.Secret == [nodes.SecretSize]byte{} {
		return nil
	}
	return seen.Secret[:]
}
