package clusterdemo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
)

const (
	// timers is how many each node gets, every a second.
	timers = 100
	every  = time.Second
	// patience is how long a node may take for what it is waited for.
	patience = 30 * time.Second
)

// New is the command.
func New() *cobra.Command {
	d := &demo{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run three nodes over MariaDB and Redis, and kill one while you watch",
		Long: `demo cluster starts a MariaDB, a Redis and three nodes of xtimer on this machine, on
free ports of 127.0.0.1 and with a temporary folder. It creates 300 timers that are due
every second, kills one of the nodes, and prints when the other nodes call the timers of
the killed node. Then it starts the node again, and prints what the move of its timers
cost. Ctrl-C ends all processes and deletes the folder.

It needs mariadbd, mariadb-install-db and redis-server:
apt-get install mariadb-server redis-server`,
		Example: `  xtimer demo cluster
  xtimer demo cluster --kills 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&d.kills, "kills", 0, "end after `N` kills (default: at Ctrl-C)")
	return cmd
}

// demo is a run of the demonstration.
type demo struct {
	out   io.Writer
	kills int // 0: until ctx ends
	dir   string
	nodes []*node
	calls *calls
}

// run shows it, until ctx ends or the kills are over.
func (d *demo) run(ctx context.Context) (err error) {
	// A reader that has gone, such as head, ends the demonstration as Ctrl-C does: the nodes and the
	// servers would outlive this process.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGPIPE)
	defer stop()
	if d.dir, err = os.MkdirTemp("", "xtimer-demo-"); err != nil {
		return fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()

	// What the nodes share ends after them.
	s, err := startServers(ctx, d.dir)
	if err != nil {
		return err
	}
	defer s.stop()
	defer func() {
		for _, n := range d.nodes {
			n.end()
		}
	}()
	if err := d.show(ctx, s); err != nil && ctx.Err() == nil {
		return err
	}
	d.summary()
	return nil
}

// show is what happens, in order.
func (d *demo) show(ctx context.Context, s *servers) error {
	var err error
	if d.calls, err = receive(); err != nil {
		return err
	}
	defer d.calls.close()
	d.sayf("MariaDB listens on 127.0.0.1:%d, Redis on 127.0.0.1:%d", s.database.port, s.redis.port)
	for _, name := range []string{"a", "b", "c"} {
		n, err := newNode(d.dir, name, s)
		if err != nil {
			return err
		}
		d.nodes = append(d.nodes, n)
		if err := n.start(ctx); err != nil {
			return err
		}
		d.sayf("node %s serves %s", n.name, n.url())
	}
	if err := d.awaitShares(ctx); err != nil {
		return err
	}
	d.sayf("the shards are divided: %s; the console of each node shows all timers", d.shares())

	for _, n := range d.nodes {
		if err := d.makeTimers(ctx, n); err != nil {
			return err
		}
	}
	d.sayf("each node has %d timers, due every second", timers)
	for k := 0; d.kills == 0 || k < d.kills; k++ {
		if err := d.watch(ctx, 8*time.Second); err != nil {
			return err
		}
		if err := d.strike(ctx, d.nodes[(k+1)%len(d.nodes)]); err != nil {
			return err
		}
		if d.kills == 0 && k == 0 {
			d.sayf("the demonstration goes on with the next node; Ctrl-C ends it")
		}
	}
	return nil
}

// strike kills a node, tells what followed, and starts the node again.
func (d *demo) strike(ctx context.Context, n *node) error {
	of := d.calls.lastBy(d.owners())[n.name]
	d.sayf("node %s, process %d, is killed with SIGKILL; it has called %d timers", n.name, n.cmd.Process.Pid, len(of))
	killed := time.Now()
	n.kill()
	took, err := d.calls.awaitAgain(ctx, of, killed)
	if err != nil {
		return err
	}
	if err := d.watch(ctx, 2*time.Second); err != nil {
		return err
	}
	c := d.calls.since(killed)
	d.sayf("the other nodes called all of them within %v: %s", took.Round(10*time.Millisecond), d.shares())
	d.sayf("since the kill: %d calls, %d repeated and marked as such, the latest %v late", c.made, c.repeated, c.latest.Round(time.Millisecond))

	again := time.Now()
	if err := n.start(ctx); err != nil {
		return err
	}
	if err := d.awaitShares(ctx); err != nil {
		return err
	}
	took = time.Since(again)
	if err := d.watch(ctx, 2*time.Second); err != nil {
		return err
	}
	c = d.calls.since(again)
	d.sayf("node %s is back and has its part of the shards %v later: %s", n.name, took.Round(10*time.Millisecond), d.shares())
	d.sayf("meanwhile: %d calls, %d repeated, the latest %v late", c.made, c.repeated, c.latest.Round(time.Millisecond))
	return nil
}

// watch lets the nodes fire for some time, and tells each second how that goes.
func (d *demo) watch(ctx context.Context, length time.Duration) error {
	for end := time.Now().Add(length); time.Now().Before(end); {
		from := time.Now()
		if !rest(ctx, time.Second) {
			return ctx.Err()
		}
		c := d.calls.since(from)
		fmt.Fprintf(d.out, "%s    %4d calls in 1 s, at most %v late   %s\n", stamp(), c.made, c.latest.Round(100*time.Microsecond), d.shares())
	}
	return nil
}

// makeTimers creates the timers of a node.
func (d *demo) makeTimers(ctx context.Context, n *node) error {
	c := &remote.Plain{Base: n.url()}
	for i := range timers {
		timer := map[string]any{"schedule": map[string]any{"every": every.String()}, "callback": map[string]any{"url": d.calls.url, "timeout": "2s"}}
		if err := c.Do(ctx, http.MethodPut, fmt.Sprintf("/v1/apps/demo/timers/%s-%d", n.name, i), timer, nil); err != nil {
			return fmt.Errorf("cannot create a timer: %w", err)
		}
	}
	return nil
}

// summary tells how it went as a whole.
func (d *demo) summary() {
	if d.calls != nil {
		c := d.calls.since(time.Time{})
		d.sayf("%d calls, %d of them repeated, %d early", c.made, c.repeated, c.early)
	}
}

func (d *demo) sayf(format string, args ...any) {
	fmt.Fprintf(d.out, "%s  %s\n", stamp(), fmt.Sprintf(format, args...))
}

func stamp() string { return time.Now().Format("15:04:05.000") }

// rest waits. It reports false when ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
