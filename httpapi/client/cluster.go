package client

import (
	"context"
	"net/http"
	"time"
)

// Cluster is the nodes that share a database, as one of them knows them.
type Cluster struct {
	Node    string  `json:"node"`               // that was asked
	Cluster bool    `json:"cluster"`            // false: it is not one of several nodes
	LeaseMS float64 `json:"lease_ms,omitempty"` // --lease of the node that was asked
	// SlowestBeatMS is how long the database took at most to confirm a beat of that node, in the
	// last 5 to 10 minutes. LeaseTooShort: so long that the node gave a beat up.
	SlowestBeatMS float64  `json:"slowest_beat_ms,omitempty"`
	LeaseTooShort bool     `json:"lease_too_short,omitempty"`
	Nodes         []Node   `json:"nodes"`  // that have a process, by name
	Shards        []string `json:"shards"` // the owner of each shard; "": no node owns it
	Moves         []Move   `json:"moves"`  // the last ones that the node that was asked has seen, the newest first
}

// Move is shards that went from one node to another.
type Move struct {
	At     time.Time `json:"at"`             // when the last of them had its owner
	How    string    `json:"how"`            // start, handover, takeover, eviction
	From   string    `json:"from,omitempty"` // "": no node is known to have owned them
	To     string    `json:"to"`
	GapMS  float64   `json:"gap_ms"` // for how long one of them had no owner, at most
	Shards []int     `json:"shards"`
}

// Node is one of several nodes.
type Node struct {
	Name      string  `json:"name"`
	Address   string  `json:"address"` // host:port
	State     string  `json:"state"`   // serving, draining, unfit
	Wish      string  `json:"wish"`    // what an administrator wishes of it: serve, drain, end
	Weight    int     `json:"weight"`
	Shards    int     `json:"shards"`      // how many it owns
	BeatAgeMS float64 `json:"beat_age_ms"` // since its last beat that was seen; of the node that was asked, since the last that was confirmed
	// Reason why it makes no calls or gives its shards away: no_beat, clock, drain, leaves.
	Reason        string `json:"reason,omitempty"`
	ClockOffsetMS int64  `json:"clock_offset_ms"` // its clock is ahead of the database's
}

// Cluster asks the server for the nodes. It needs a token of all apps.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	return get[Cluster](ctx, c, "/v1/cluster", nil)
}

// DrainNode asks a node to give its shards to the other nodes. The node lives on and keeps
// none until UndrainNode, or until it starts again. It needs an admin token of all apps.
func (c *Client) DrainNode(ctx context.Context, node string) (*Node, error) {
	return send[Node](ctx, c, request{method: http.MethodPost, path: path("/v1/cluster/nodes/%s/drain", node), twice: true})
}

// UndrainNode takes DrainNode back: the node owns its part of the shards again.
func (c *Client) UndrainNode(ctx context.Context, node string) (*Node, error) {
	return send[Node](ctx, c, request{method: http.MethodDelete, path: path("/v1/cluster/nodes/%s/drain", node), twice: true})
}

// EvictNode ends the process of a node, as if it were killed: the calls that it has in
// flight are repeated by the other nodes. It needs an admin token of all apps.
func (c *Client) EvictNode(ctx context.Context, node string) (*Node, error) {
	return send[Node](ctx, c, request{method: http.MethodPost, path: path("/v1/cluster/nodes/%s/evict", node)})
}
