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

// New is the command; listen is where a server is that was told nothing.
func New(listen string) *cobra.Command {
	b := bench{}
	server, token := os.Getenv("XTIMER_SERVER"), ""
	if server == "" {
		server = "http://" + listen
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Load from outside: how late, how fast, and is anything early, missing or repeated",
		Long: `bench makes one-shot timers on a running server and takes their calls itself. It
measures at its own receiver how late each arrives (arrival - due), and holds
what arrived against what was acknowledged.

Either --rate timers a second are due for --for, each made --lead before its due;
or --burst timers are due at one instant (or over --spread), made as fast as the
server takes them. Timers that were acknowledged only after their due are counted
apart: their lateness would be the load's.

When the server runs on another machine, bind --receiver-addr to an address that
it reaches (0.0.0.0:0 takes the one that points to the server); the two clocks
have to agree, their difference is measured as lateness. Receiver and load want
processor time of their own: on one machine with the server they take it away.

The timers are deleted at the end, after Ctrl-C too. The status is not 0 when a
call was early or missing, or the run was cut short.`,
		Example: `  xtimer bench --rate 1000 --for 30s
  xtimer bench --burst 100000 --html bench.html
  xtimer bench --server http://10.0.0.7:8080 --receiver-addr 0.0.0.0:0 --rate 20000 --targets 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("burst") && (cmd.Flags().Changed("rate") || cmd.Flags().Changed("for")) {
				return exit.Usage("--rate for some time and --burst are two shapes of load: give one of them")
			}
			b.client = remote.NewPlain(server)
			if token != "" {
				b.client.Token = token
			}
			return b.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&server, "server", server, "the server, as `URL` (XTIMER_SERVER)")
	f.StringVar(&token, "token", "", "the token, of a writer of the apps (better as XTIMER_TOKEN: all users of a machine can read command lines)")
	f.StringVar(&b.receiverAddr, "receiver-addr", "127.0.0.1:0", "take the calls on `HOST:PORT`, with more targets on the ports after it")
	f.IntVar(&b.shape.rate, "rate", 1000, "so many timers are due each second")
	f.DurationVar(&b.shape.length, "for", 30*time.Second, "how long, with --rate")
	f.IntVar(&b.shape.burst, "burst", 0, "so many timers are due at once")
	f.DurationVar(&b.shape.spread, "spread", 0, "with --burst: spread them evenly over this long")
	f.DurationVar(&b.shape.lead, "lead", 0, "make timers this long before they are due (default 3s, and 50µs for each of a burst)")
	f.IntVar(&b.payload, "payload", 0, "give each call a body of so many `bytes` (default: the server's envelope)")
	f.IntVar(&b.targets, "targets", 1, "call so many targets: ports of the receiver")
	f.IntVar(&b.apps, "apps", 1, "share the timers among so many apps: bench-1, bench-2 …")
	f.StringVar(&b.jsonFile, "json", "", "write the figures to this `FILE`")
	f.StringVar(&b.pageFile, "html", "", "write a report to this `FILE`: one page, with its plot inside")
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
		return "the envelope"
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
