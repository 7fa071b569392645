package engine

import (
	"context"
	"time"
)

// Members is the table of the nodes that share a cold tier: which of them live, and which
// life holds which shard. tier/memory and tier/mysql implement Members; tier/tiertest tests
// its promises. Each process has one, beside its cold tier: what that one stores after a Join
// is stored under the life.
//
// All methods may be called by many goroutines of many processes. Each call is one
// transaction. What a call did is seen by every Look that begins after the call has
// returned. A call that returns another error than those named here is in doubt: it has
// done everything or nothing, or will do it later. Every call can be repeated.
//
// ErrFenced from a call of a life means that the life is over: nothing that it writes is
// stored any more, by a settle neither.
type Members interface {
	// Join begins the life n.Life of the node n.Name. The rows of nodes that have had no life
	// for NodeKept may be removed. was is the pulse of the node, as a Look
	// showed it, or zero if the node had no row. The former life is over, and its shards are
	// the new life's, with fences moved on; they are not clean. ErrConflict: the node has
	// another pulse. So a Join that is carried out late never begins a life that is over.
	Join(ctx context.Context, n Node, was Pulse) error
	// Beat changes the beat of n's life, and stores its state, weight and skew.
	Beat(ctx context.Context, n Node) error
	// Look reads all nodes, in the order of their names. It reads the shards if the number
	// of their moves is not the given one; 0 reads them always.
	Look(ctx context.Context, moves uint64) (Membership, error)
	// Evict ends a life by its pulse: its shards are free, and not clean. life is the one
	// that evicts. ErrConflict: the node has another pulse, so it has beaten, or another
	// life has evicted it.
	Evict(ctx context.Context, life uint64, dead Pulse) error
	// Take makes a life the holder of those of the shards that are free, and moves their
	// fences on. A Look shows which ones it got.
	Take(ctx context.Context, life uint64, shards Set) error
	// Give frees shards of a life, each for its heir. They are clean, but for those that the
	// life says are not. A shard that the life does not hold under the fence stays.
	Give(ctx context.Context, life uint64, shards []Handover) error
	// Leave ends a life: its shards are free, and not clean. It returns nil if the life is
	// over.
	Leave(ctx context.Context, life uint64) error
	// Wish stores what is wished of a life, until the node's next life. ErrConflict: the life
	// is over. Any process may call it.
	Wish(ctx context.Context, life uint64, w Wish) error
	// Newest is not less than the id of any timer that a life stored or named which is over,
	// or which gave its shard before the call; see Cold.Take.
	Newest(ctx context.Context) (TimerID, error)
}

// Membership is what a Look reads.
type Membership struct {
	Nodes []Node
	// Moves changes whenever a shard is taken or freed; it is never 0.
	Moves  uint64
	Shards *[Shards]Holding // nil: the moves are those that the caller knows
	// Now is the table's clock when it was read, in Unix ms.
	Now int64
	// Secret is random, and the same for ever: nodes sign with it what they ask of each other.
	Secret [32]byte
}

// Handover is a shard that is given to another node.
type Handover struct {
	Shard int
	Fence uint64 // that the giver holds the shard under
	Heir  string
	// Unclean: the heir is to take what is not finished there for begun, see Holding.Clean.
	Unclean bool
}

// Node is one process under the name of a node, among those that share a cold tier.
type Node struct {
	Name string
	// Life is the random number of the process; 0: the node has no process.
	Life uint64
	// Journal names the node's journal: a life with the same one has its records.
	Journal [16]byte
	// Beat changes with every sign that the life gives of itself.
	Beat   uint64
	State  NodeState
	Weight int // its part of the shards, relative to the other nodes'; below 1 counts as 1
	// Skew is by how many ms the wall clock of the node is ahead of the table's.
	Skew int64
	// Speaks is the version of the program in what nodes say to each other and store for
	// each other: lives run beside each other whose versions are at most one apart.
	Speaks int
	// Wish is what is wished of the life.
	Wish Wish
	// Address is where the other nodes reach the API of the life, host:port; at most 255 bytes.
	Address string
}

// Pulse is the beat of one life of a node.
type Pulse struct {
	Node       string
	Life, Beat uint64
}

// Pulse returns the beat of the node's life.
func (n *Node) Pulse() Pulse { return Pulse{n.Name, n.Life, n.Beat} }

// Speaks is the version of this program, see Node.Speaks. 1 are the programs before there was
// such a version; 2 heed a Wish; 3 ask the owners of flow keys (engine/allot).
const Speaks = 3

// NodeKept is for how long the row of a node without a life is kept.
const NodeKept = time.Hour

// Wish is what an administrator wishes of a life.
type Wish uint8

// The wishes.
const (
	WishServe Wish = iota // it owns its part of the shards
	WishDrain             // it owns no shards while another node can own them
	WishEnd               // it ends at once, as if it were killed
)

// NodeState is what a node says of itself.
type NodeState uint8

// The states of a node.
const (
	Serving  NodeState = iota + 1
	Draining           // it gives its shards away, and leaves
	Unfit              // it should own no shards while another node can
)

// Holding says which life holds a shard.
type Holding struct {
	Holder uint64 // the life of a node; 0: the shard is free
	Fence  uint64 // moves on with each holder
	// Heir is the node that a free shard was given to; "" for none.
	Heir string
	// Clean: the former holder gave the shard. It had begun nothing that is later than the
	// watermark, and of what is owed only what its row tells.
	Clean bool
	// Former is the last life that gained the shard and did not give it clean: what it
	// finished may be in its mirror. 0: there is none.
	Former uint64
}
