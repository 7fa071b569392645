package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/clusterdemo"
	"xtimer/cmd/xtimer/machine"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/terminal"
)

func newDemo() *cobra.Command {
	d := demo{settings: settings.Default()}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a server, a receiver and a few timers, to watch xtimer work",
		Long: `demo starts a server with a temporary folder, and a receiver of its calls. It
creates four timers: one with a single due, one with an interval, one with a cron
expression, and one whose first calls fail. It prints every call as it arrives, and
how late the call is. Ctrl-C ends the demo with a summary and deletes the folder.`,
		Example: `  xtimer demo
  xtimer demo --for 10s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.fixed = cmd.Flags().Changed("listen")
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&d.settings.Listen, "listen", d.settings.Listen, "serve the API on `HOST:PORT`, or on any free port if that port is taken")
	cmd.AddCommand(clusterdemo.New())
	cmd.Flags().DurationVar(&d.length, "for", 0, "end after this long (default: at Ctrl-C)")
	return cmd
}

// demo is a run of the demonstration.
type demo struct {
	settings *settings.Settings
	fixed    bool // the address was asked for: no other will do
	length   time.Duration
	out      io.Writer
}

// app owns the timers of the demonstration.
const app = "demo"

func (d *demo) run(ctx context.Context) (err error) {
	// A reader that has gone, such as head, ends the demonstration as Ctrl-C does.
	ctx, stopped := signal.NotifyContext(ctx, syscall.SIGPIPE)
	defer stopped()
	// All that it writes goes into a folder that ends with it.
	d.settings.DataDir, err = os.MkdirTemp("", "xtimer-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.settings.DataDir)) }()

	// The server is the real one; its log stays quiet unless something is amiss.
	log := newLog(os.Stderr, slog.LevelWarn)
	slog.SetDefault(log)
	machine.TuneMemory()
	machine.TuneProcessors()
	files, err := machine.RaiseFiles(log)
	if err != nil {
		return err
	}
	d.settings.Drain = 5 * time.Second
	n, err := newNode(d.settings, log, files)
	if err != nil {
		return err
	}
	api, err := d.listen()
	if err != nil {
		return err
	}

	// The receiver writes a line for each call; it is there before the first timer.
	hooks, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen for the calls: %w", err)
	}
	r := newReceiver(d.out)
	receiver := &http.Server{Handler: r}
	go func() { _ = receiver.Serve(hooks) }()
	defer receiver.Close()

	// The server outlives ctx by the questions that the summary asks.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- n.run(serving, api); stop() }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()

	// From here it is as for anybody: the timers are made over the API.
	c := &remote.Plain{Base: "http://" + api.Addr().String()}
	callTo := "http://" + hooks.Addr().String()
	if !ready(ctx, serving, n) {
		return nil
	}
	d.greet(c.Base, callTo)
	r.head()
	start := time.Now()
	if err := makeTimers(ctx, c, callTo); err != nil {
		return err
	}

	// Now it runs by itself.
	var over <-chan time.Time
	if d.length > 0 {
		over = time.After(d.length)
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-serving.Done():
		return errors.New("the server stopped unexpectedly")
	}
	r.summary(time.Since(start), r.outcome(context.WithoutCancel(ctx), c))
	return nil
}

func (d *demo) listen() (net.Listener, error) {
	ln, err := listen(d.settings.Listen)
	if errors.Is(err, syscall.EADDRINUSE) && !d.fixed {
		return listen("127.0.0.1:0")
	}
	return ln, err
}

// ready waits until the node serves; it says false when somebody does not want
// to wait for that, or it has ended.
func ready(ctx, serving context.Context, n *node) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n.engine.Ready() != nil {
		select {
		case <-ctx.Done():
			return false
		case <-serving.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func (d *demo) greet(api, callTo string) {
	p := terminal.NewPainter(d.out)
	fmt.Fprintf(d.out, "%s\n\n", p.Paint(terminal.Bold, "xtimer demo: a server, a receiver and four timers"))
	fmt.Fprintf(d.out, "  API       %s\n", api)
	fmt.Fprintf(d.out, "  console   %s/\n", api)
	fmt.Fprintf(d.out, "  receiver  %s\n", callTo)
	fmt.Fprintf(d.out, "  data      %s, removed at the end\n\n", d.settings.DataDir)
	fmt.Fprintf(d.out, "Create your own timer from another terminal:\n\n")
	fmt.Fprintf(d.out, "  curl %s/v1/timers -H 'Content-Type: application/json' -d '\n", api)
	fmt.Fprintf(d.out, "    {\"app\":\"%s\",\"name\":\"mine\",\"schedule\":{\"every\":\"3s\"},\"callback\":{\"url\":\"%s\"}}'\n\n", app, callTo)
}

type object map[string]any

// makeTimers makes the four timers of the demonstration.
func makeTimers(ctx context.Context, c *remote.Plain, callTo string) error {
	to := object{"url": callTo}
	for _, t := range []object{
		{"name": "one-shot", "schedule": object{"delay": "1500ms"}, "callback": to},
		{"name": "interval", "schedule": object{"every": "500ms"}, "callback": to},
		{"name": "cron", "schedule": object{"cron": "*/2 * * * * *"}, "callback": to},
		{
			"name": flaky, "schedule": object{"delay": "750ms"}, "callback": to,
			"retry": object{"max_attempts": 4, "backoff": "400ms", "multiplier": 2},
		},
	} {
		t["app"] = app
		if err := c.Do(ctx, http.MethodPost, "/v1/timers", t, nil); err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot make the timer %s: %w", t["name"], err)
		}
	}
	return nil
}
