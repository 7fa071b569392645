package console

import (
	"errors"
	"net/http"

	"xtimer/httpapi/client"
)

// showSystem is GET /system.
func showSystem(v *visit) error { return v.system(nil) }

func (v *visit) system(done *client.Backup) error {
	d := systemData{Done: done}
	err := together(
		func() error { return into(&d.Stats)(v.api.Stats(v.ctx)) },
		func() error { return into(&d.Trend)(v.api.Trend(v.ctx, 1)) },
		func() error { return into(&d.Version)(v.api.Version(v.ctx)) },
		func() error {
			s, err := v.api.System(v.ctx)
			var problem *client.Error
			if errors.As(err, &problem) && problem.Status == http.StatusForbidden {
				return nil // the rest of the page is for everybody
			}
			d.System = s
			return err
		},
	)
	if err != nil {
		return err
	}
	return v.show("system", v.T("System"), &d)
}

type systemData struct {
	Stats   client.Stats
	Trend   client.Trend
	Version client.Version
	System  *client.System // nil: not for this visitor
	Done    *client.Backup // one that was just written
}

// backUp is POST /system/backup. It takes as long as it takes.
func backUp(v *visit) error {
	b, err := v.api.Backup(v.r.Context())
	if err != nil {
		return err
	}
	return v.system(b)
}

// showCluster is GET /cluster: the nodes that share a database, and who owns each shard.
func showCluster(v *visit) error {
	c, err := v.api.Cluster(v.ctx)
	if err != nil {
		return err
	}
	return v.show("cluster", v.T("Nodes"), &clusterData{Cluster: *c, Rows: shardRows(c)})
}

// actOnNode is POST /cluster: it drains or evicts a node, once that is confirmed.
func actOnNode(v *visit) error {
	node, action := v.r.PostForm.Get("node"), v.r.PostForm.Get("action")
	ask := &sure{Path: "/cluster", Back: "/cluster", Values: map[string]string{"node": node, "action": action}}
	do := v.api.DrainNode
	switch action {
	case "drain":
		ask.Question, ask.Label = v.T("Drain node %s", node), v.T("Drain")
		ask.Effect = v.T("The node gives its shards to the other nodes and gets none until that is undone. No call is repeated.")
	case "undrain":
		do = v.api.UndrainNode
	case "evict":
		ask.Question, ask.Label, do = v.T("Evict node %s", node), v.T("Evict"), v.api.EvictNode
		ask.Effect = v.T("The process of the node ends as if it were killed: the other nodes repeat the calls that it has in flight.")
	default:
		return &fault{http.StatusBadRequest, "The form is invalid."}
	}
	if ask.Question != "" && v.r.PostForm.Get("confirmed") == "" {
		return v.show("sure", v.T("Are you sure?"), ask)
	}
	_, err := do(v.ctx, node)
	switch {
	case client.IsNotFound(err):
		return &fault{http.StatusConflict, "The node has no process any more."}
	case err != nil:
		return err
	}
	return redirect("/cluster")
}

type clusterData struct {
	client.Cluster
	Rows [][]shardCell
}

// LastMoves are the last moves of shards.
func (d *clusterData) LastMoves() []client.Move { return d.Moves[:min(len(d.Moves), 20)] }

// shardCell is a shard in the grid. The number of its owner, which the cell shows, is the
// place in the list of nodes: its colour is not all that tells it.
type shardCell struct {
	Shard, N int    // N 0: no node in the list owns it
	Owner    string // "": no node owns it
	Color    int
}

const (
	shardsOfRow = 16
	nodeColors  = 6 // in app.css
)

func shardRows(c *client.Cluster) (rows [][]shardCell) {
	place := make(map[string]int, len(c.Nodes))
	for i := range c.Nodes {
		place[c.Nodes[i].Name] = i + 1
	}
	for i, owner := range c.Shards {
		if i%shardsOfRow == 0 {
			rows = append(rows, nil)
		}
		cell := shardCell{Shard: i, N: place[owner], Owner: owner}
		if cell.N > 0 {
			cell.Color = nodeColor(cell.N - 1)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], cell)
	}
	return rows
}

func nodeColor(i int) int { return i%nodeColors + 1 }

// NodeColor is the colour of a node, by its place in the list.
func (v *visit) NodeColor(i int) int { return nodeColor(i) }

// Plus1 is the number of a place in a list, for people.
func (v *visit) Plus1(i int) int { return i + 1 }

// Cluster reports whether the server is one of several nodes, and the visitor may see them.
func (v *visit) Cluster() bool { return v.c.cfg.Cluster && v.AllApps() }
