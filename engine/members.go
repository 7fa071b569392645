package engine

// Node is one process under the name of a node, among those that share a cold tier.
type Node struct {
	Name string
	// Life is the random number of the process; 0: the node has no process.
	Life uint64
	// Beat changes with every sign that the life gives of itself.
	Beat   uint64
	State  NodeState
	Weight int // its part of the shards, relative to the other nodes'; below 1 counts as 1
}

// Pulse is the beat of one life of a node.
type Pulse struct {
	Node       string
	Life, Beat uint64
}

// Pulse returns the beat of the node's life.
func (n *Node) Pulse() Pulse { return Pulse{n.Name, n.Life, n.Beat} }

// NodeState is what a node says of itself.
type NodeState uint8

// The states of a node.
const (
	Serving  NodeState = iota + 1
	Draining           // it gives its shards away, and leaves
	Unfit              // it should own no shards while another node can
)

// Holding is who owns a shard.
type Holding struct {
	Holder uint64 // the life of a node; 0: the shard is free
	Fence  uint64 // moves on with each holder
	// Heir is the node that a free shard was given to; "" for none.
	Heir string
}
