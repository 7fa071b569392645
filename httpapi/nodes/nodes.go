// Package nodes is how the API of one node of a cluster asks the API of another.
//
//	nodes.go      what a node knows of the others
//	signature.go  a request of a node says for whom it is made, and is signed
//	client.go     sends such a request
//
// A node asks for a client of its own: it has looked at the client's token, and signs what
// the token may do. So a token goes no further than the node that it was sent to.
package nodes

import (
	"context"
	"time"

	"xtimer/engine"
	"xtimer/engine/cluster"
)

// Cluster is what a node knows of the nodes that share its cold tier, itself included. Its
// methods may be called by many goroutines. Only Ask waits for the cold tier.
type Cluster interface {
	// Owner is the node that owns a shard, as far as this node knows; false: no node does.
	Owner(shard int) (Node, bool)
	// Nodes are the nodes that live, in the order of their names.
	Nodes() []Node
	// Secret is known to all nodes and to nobody else, SecretSize bytes; nil: this node does
	// not know it yet.
	Secret() []byte
	// Now is the time that this node goes by, and signs with: its wall clock may be wrong.
	Now() time.Time
	// Ask stores what is wished of the life of a node. engine.ErrConflict: the life is over.
	Ask(ctx context.Context, life uint64, w engine.Wish) error
	// Moves are the last moves of shards that this node has seen, the newest first.
	Moves() []cluster.Move
	// Times are those of this node.
	Times() cluster.Times
	// SlowestBeat is how long its slowest beat of the last minutes took; tooSlow: the lease is
	// too short for that.
	SlowestBeat() (took time.Duration, tooSlow bool)
}

// SecretSize is the length of Cluster.Secret, in bytes.
const SecretSize = 32

// Node is one of the nodes.
type Node struct {
	Name    string
	Address string // host:port, where its API is
	Own     bool   // the node that tells of it
	Life    uint64
	State   engine.NodeState
	Wish    engine.Wish // what an administrator wishes of it
	Weight  int
	Shards  int // how many it owns
	// Beaten is how long ago the last confirmed beat of this node began, and since when this
	// node has seen no new beat of another.
	Beaten time.Duration
	Why    cluster.Why   // it makes no calls, or gives its shards away
	Skew   time.Duration // its clock is ahead of the database's
}
