package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
)

// New is the command "bench".
func New() *cobra.Command {
	b := bench{}
	var place remote.Place
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server under load: lateness, rate, and early, missing or repeated calls",
		Long: `bench creates timers on a running server, each with one due, and receives their
calls. It measures how late each call arrives, and compares the calls that arrived
with the timers that the server acknowledged.

The load has one of two shapes. By default, --rate timers are due in each second,
for the duration of --for; bench creates each timer --lead before its due. With
--burst, all timers are due at one instant, or evenly over --spread; bench creates
them as fast as the server accepts them. bench counts the timers that were
acknowledged only after their due separately, because the load makes them late.

bench needs processor time. If it runs on the machine of the server, it takes this
time from the server. If it runs on another machine, set --receiver-addr to an
address that the server can reach; with 0.0.0.0:0, bench uses its address in the
network of the server, and any free port. The clocks of the two machines must agree,
because their difference counts as lateness.

bench deletes the timers at the end, also after Ctrl-C. The exit status is 1 if a
call was early or missing, and not 0 if the run was interrupted.`,
		Example: `  xtimer bench --rate 1000 --for 30s
  xtimer bench --burst 100000 --html bench.html
  xtimer bench --server http://10.0.0.7:8080 --receiver-addr 0.0.0.0:0 --rate 20000 --targets 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("burst") && (cmd.Flags().Changed("rate") || cmd.Flags().Changed("for")) {
				return exit.Usage("--rate (with --for) and --burst are different shapes of load: give only one of them")
			}
			var err error
			if b.client, err = place.DialPlain(); err != nil {
				return err
			}
			return place.Explain(b.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	f := cmd.Flags()
	place.Flags(cmd, f)
	f.StringVar(&b.receiverAddr, "receiver-addr", "127.0.0.1:0", "receive the calls on `HOST:PORT`; the second target uses the next port, and so on")
	f.IntVar(&b.shape.rate, "rate", 1000, "the number of timers due each second")
	f.DurationVar(&b.shape.length, "for", 30*time.Second, "with --rate: how long the load lasts")
	f.IntVar(&b.shape.burst, "burst", 0, "the number of timers due at one instant")
	f.DurationVar(&b.shape.spread, "spread", 0, "with --burst: spread them evenly over this long")
	f.DurationVar(&b.shape.lead, "lead", 0, "create timers this long before they are due (default 3s, plus 50µs for each timer of a burst)")
	f.IntVar(&b.payload, "payload", 0, "give each call a body of this many `bytes` (default: a description of the task)")
	f.IntVar(&b.targets, "targets", 1, "the number of targets to call, each a port of the receiver")
	f.IntVar(&b.apps, "apps", 1, "the number of apps among which the timers are divided: bench-1, bench-2 …")
	f.StringVar(&b.jsonFile, "json", "", "write the figures to this `FILE`")
	f.StringVar(&b.pageFile, "html", "", "write a report with a plot to this HTML `FILE`")
	return cmd
}

// bench is a run of the load.
type bench struct {
	client             *remote.Plain
	receiverAddr       string
	shape              benchShape
	payload            int
	targets, apps      int
	jsonFile, pageFile string
}

// patience is how long nothing may arrive before what has not is missing. It is
// longer than the longest wait for a retry that a timer of the load can have.
const patience = 20 * time.Second

func (b *bench) run(ctx context.Context, out io.Writer) (err error) {
	n, err := b.shape.check()
	if err != nil {
		return exit.Usage("%w", err)
	}
	if b.targets < 1 || b.apps < 1 || b.payload < 0 || b.payload > maxPayload {
		return exit.Usage("--targets and --apps must be at least 1, and --payload at most %d", maxPayload)
	}
	var version struct{ Version string }
	if err := b.client.Do(ctx, "GET", "/v1/version", nil, &version); err != nil {
		return err
	}
	if err := b.writable(); err != nil {
		return err
	}

	// The receiver is there before the first timer.
	start := time.Now().Add(b.shape.leadTime()).Truncate(time.Millisecond)
	r := newBenchReceiver(n, start, &b.shape)
	urls, err := r.listen(ctx, b.receiverAddr, b.targets, b.client.Base)
	if err != nil {
		return err
	}
	defer r.close()

	p := terminal.NewPainter(out)
	fmt.Fprintf(out, "%s\n\n", p.Paint(terminal.Bold, "xtimer bench: "+b.shape.String()))
	fmt.Fprintf(out, "  server    %s (xtimer %s)\n", b.client.Base, version.Version)
	fmt.Fprintf(out, "  receiver  %s, targets: %d, apps: %d, body: %s\n\n", urls[0], b.targets, b.apps, b.body())

	// The load runs until all is made, the calls until all has arrived.
	l := newBenchLoad(b, n, start, urls)
	defer func() { err = errors.Join(err, l.clean(context.WithoutCancel(ctx), out)) }()
	live := showProgress(out, l, r)
	failed := l.run(ctx)
	if failed == nil {
		r.await(ctx, l.made.Load, start.Add(b.shape.duration()))
	}
	live.stop()

	// What became of it.
	res := newBenchResult(b, version.Version, l, r)
	res.CutShort = failed != nil || ctx.Err() != nil
	res.print(out)
	if err := b.save(res, out); err != nil {
		return err
	}
	if failed != nil && ctx.Err() == nil {
		return failed
	}
	return res.verdict()
}

func (b *bench) body() string {
	if b.payload == 0 {
		return "the default body"
	}
	return strconv.Itoa(b.payload) + " bytes"
}

// writable finds out before the run whether its files can be written after it.
func (b *bench) writable() error {
	for _, name := range []string{b.jsonFile, b.pageFile} {
		if name == "" {
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return fmt.Errorf("cannot write the report: %w", err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("cannot write the report: %w", err)
		}
	}
	return nil
}

// save writes the files that were asked for.
func (b *bench) save(res *Result, out io.Writer) error {
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{b.jsonFile, res.writeJSON}, {b.pageFile, res.writePage}} {
		if f.name == "" {
			continue
		}
		if err := writeFile(f.name, f.write); err != nil {
			return fmt.Errorf("cannot write the report: %w", err)
		}
		fmt.Fprintf(out, "  written   %s\n", f.name)
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}
