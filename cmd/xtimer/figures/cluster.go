package figures

import (
	"cmp"
	"context"
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
		Short:   "Show the nodes of a cluster, and take timers away from a node",
		Long:    "cluster shows and changes the nodes of a cluster: several servers that share one database.\n\n" + exit.Help,
		Example: "  xtimer cluster list\n  xtimer cluster drain node-2",
	}, newClusterList(r), newClusterDrain(r), newClusterEvict(r))
}

func newClusterList(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the nodes, and how many shards each owns",
		Long: `list shows the nodes of a cluster as the server that you ask knows them: address,
state, weight, the number of shards that each node owns, the time since its last beat,
and why a node makes no calls or gives its shards away. Below the nodes are the last
10 moves of shards between nodes. All timers are divided into 256 shards; the owner of
a shard calls its timers. -o json shows the owner of each shard, and the last 256 moves.

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
			return r.Output.Show(cmd.OutOrStdout(), viewCluster(c, func(t time.Time) string { return r.Zone.Instant(t, "") }))
		},
	}
}

// Times of a drain: between two looks, and until it fails.
var drainLook, drainMost = 250 * time.Millisecond, time.Minute

func newClusterDrain(r *remote.Server) *cobra.Command {
	undo := false
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Give the shards of a node to the other nodes",
		Long: `drain has a node give its shards to the other nodes, and waits until the node owns none.
No call is repeated. The node lives on without shards, until drain --undo or until it
starts again. If no other node serves any more, the node serves in spite of the drain.

Before you stop a node you need not drain it: on SIGTERM, a node gives its shards away.

drain requires an admin token for all apps.`,
		Example: `  xtimer cluster drain node-2
  xtimer cluster drain node-2 --undo`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if undo {
				if _, err := r.UndrainNode(cmd.Context(), args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s gets its part of the shards\n", args[0])
				return err
			}
			n, err := r.DrainNode(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := drained(cmd.Context(), r, args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s gave %d shards away\n", n.Name, n.Shards)
			return err
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "take a drain back: the node gets its part of the shards")
	return cmd
}

// drained waits until a node owns no shards.
func drained(ctx context.Context, r *remote.Server, node string) error {
	for until := time.Now().Add(drainMost); ; {
		c, err := r.Cluster(ctx)
		if err != nil {
			return err
		}
		left := 0
		for _, owner := range c.Shards {
			if owner == node {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("after %v, node %s still owns %d shards; it continues to give them away", drainMost, node, left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(drainLook):
		}
	}
}

func newClusterEvict(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "evict NODE",
		Short: "End the process of a node that cannot be drained",
		Long: `evict ends the process of a node within a second, as if it were killed: the other nodes
take its shards, and repeat its calls in flight. The process exits with status 75, and
its supervisor may start it again. Use evict if a node lives and cannot be drained.

A node that gives no sign of life is evicted without this command, see --lease of serve.

evict requires an admin token for all apps.`,
		Example: `  xtimer cluster evict node-2`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := r.EvictNode(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s ends; the other nodes take its %d shards\n", n.Name, n.Shards)
			return err
		},
	}
}

var errAlone = errors.New("the server is not a node of a cluster")

func viewCluster(c *api.Cluster, instant func(time.Time) string) terminal.View {
	var names []string
	for i := range c.Nodes {
		names = append(names, c.Nodes[i].Name)
	}
	return terminal.View{Value: c, Names: names, Table: func(out io.Writer, _ bool) error { return tableCluster(out, c, instant) }}
}

// mostMoves is how many moves of shards a table has.
const mostMoves = 10

// tableCluster shows each node, how many shards no node owns, and the last moves of shards.
func tableCluster(out io.Writer, c *api.Cluster, instant func(time.Time) string) error {
	g := terminal.Grid{Head: []string{"NODE", "ADDRESS", "STATE", "WEIGHT", "SHARDS", "LAST BEAT", "REASON"}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		name := n.Name
		if name == c.Node {
			name += " (asked)"
		}
		reason := n.Reason
		if reason == "clock" {
			reason = fmt.Sprintf("clock (%+d ms)", n.ClockOffsetMS)
		}
		g.Add(name, n.Address, n.State, strconv.Itoa(n.Weight), strconv.Itoa(n.Shards), millis(n.BeatAgeMS)+" ago", reason)
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
	if free > 0 {
		if _, err := fmt.Fprintf(out, "\n%d shards have no owner at present.\n", free); err != nil {
			return err
		}
	}
	if c.LeaseTooShort {
		_, err := fmt.Fprintf(out, "\nNode %s gave up a beat after %s: MySQL or the machine is too slow for a --lease of %s.\n", c.Node, millis(c.SlowestBeatMS), millis(c.LeaseMS))
		if err != nil {
			return err
		}
	}
	if len(c.Moves) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	g = terminal.Grid{Head: []string{"MOVED", "SHARDS", "FROM", "TO", "HOW", "WITHOUT OWNER"}}
	for i := range c.Moves[:min(len(c.Moves), mostMoves)] {
		m := &c.Moves[i]
		g.Add(instant(m.At), strconv.Itoa(len(m.Shards)), cmp.Or(m.From, "-"), m.To, m.How, "at most "+millis(m.GapMS))
	}
	return g.Print(out)
}

func millis(ms float64) string { return span.Millis(time.Duration(ms * float64(time.Millisecond))) }
