package client

import "context"

// Cluster is the nodes that share a database, as one of them knows them.
type Cluster struct {
	Node    string   `json:"node"`    // that was asked
	Cluster bool     `json:"cluster"` // false: it is not one of several nodes
	Nodes   []Node   `json:"nodes"`   // that have a process, by name
	Shards  []string `json:"shards"`  // the owner of each shard; "": no node owns it
}

// Node is one of several nodes.
type Node struct {
	Name      string  `json:"name"`
	Address   string  `json:"address"` // host:port
	State     string  `json:"state"`   // serving, draining, unfit
	Weight    int     `json:"weight"`
	Shards    int     `json:"shards"`      // how many it owns
	BeatAgeMS float64 `json:"beat_age_ms"` // since its last beat that was seen
}

// Cluster asks the server for the nodes. It needs a token of all apps.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	return get[Cluster](ctx, c, "/v1/cluster", nil)
}
