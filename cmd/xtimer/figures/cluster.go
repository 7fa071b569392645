package figures

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// NewCluster is the command "cluster".
func NewCluster() *cobra.Command {
	r := &remote.Server{}
	return r.Attach(&cobra.Command{
		Use:     "cluster",
		Short:   "Show the nodes of a cluster",
		Long:    "cluster shows the nodes of a cluster: several servers that share one database.\n\n" + exit.Help,
		Example: "  xtimer cluster list",
	}, newClusterList(r))
}

func newClusterList(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the nodes, and how many shards each owns",
		Long: `list shows the nodes of a cluster as the server that you ask knows them: address,
state, weight, the number of shards that each node owns, and the time since its last
beat. All timers are divided into 256 shards; the owner of a shard calls its timers.
-o json shows the owner of each shard.

list requires a token for all apps.`,
		Example: `  xtimer cluster list
  xtimer cluster list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.Cluster(cmd.Context())
			if err != nil {
				return err
			}
			if !c.Cluster {
				return errAlone
			}
			return r.Output.Show(cmd.OutOrStdout(), viewCluster(c))
		},
	}
}

var errAlone = errors.New("the server is not a node of a cluster")

func viewCluster(c *api.Cluster) terminal.View {
	var names []string
	for i := range c.Nodes {
		names = append(names, c.Nodes[i].Name)
	}
	return terminal.View{Value: c, Names: names, Table: func(out io.Writer, _ bool) error { return tableCluster(out, c) }}
}

// tableCluster shows each node, and how many shards no node owns.
func tableCluster(out io.Writer, c *api.Cluster) error {
	g := terminal.Grid{Head: []string{"NODE", "ADDRESS", "STATE", "WEIGHT", "SHARDS", "LAST BEAT"}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		name := n.Name
		if name == c.Node {
			name += " (asked)"
		}
		g.Add(name, n.Address, n.State, strconv.Itoa(n.Weight), strconv.Itoa(n.Shards), span.Millis(time.Duration(n.BeatAgeMS*float64(time.Millisecond)))+" ago")
	}
	if err := g.Print(out); err != nil {
		return err
	}
	free := 0
	for _, owner := range c.Shards {
		if owner == "" {
			free++
		}
	}
	if free == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%d shards have no owner at present.\n", free)
	return err
}
