package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/machine"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/store"
	"xtimer/cmd/xtimer/terminal"
)

// callsPerCPU is how many calls a second a processor makes as a rule, with the
// journal synced and an instant receiver on the same machine.
const callsPerCPU = 25_000

func newDoctor() *cobra.Command {
	s := settings.Default()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Measure how precise and how fast xtimer can be on this machine",
		Long: `doctor measures for a few seconds the precision of sleeps and the speed of the
disk, reads the state of the clock and the limits of the process, and explains
the results. The exit status is 1 if xtimer cannot run here, otherwise 0. doctor
can run beside a server, but then measures only what the server leaves unused.`,
		Example: `  xtimer doctor
  xtimer doctor --data-dir /var/lib/xtimer`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return examine(cmd.Context(), cmd.OutOrStdout(), s.DataDir, cmp.Or(s.SecretKeyFile, os.Getenv("XTIMER_SECRET_KEY_FILE")))
		},
	}
	cmd.Flags().StringVar(&s.DataDir, "data-dir", s.DataDir, "the data directory that a server would use")
	cmd.Flags().StringVar(&s.SecretKeyFile, "secret-key-file", "", "the `FILE` with the key that seals secrets (default: XTIMER_SECRET_KEY_FILE)")
	return cmd
}

// report is a table of findings, and messages about them.
type report struct {
	out      io.Writer
	paint    terminal.Painter
	group    string
	worth    []string // a look
	unusable []string
}

// line writes one finding; a group's name is written once.
func (r *report) line(group, what, format string, args ...any) {
	if group == r.group {
		group = ""
	} else {
		r.group = group
	}
	fmt.Fprintf(r.out, "  %s %-13s %s\n", r.paint.Paint(terminal.Bold, fmt.Sprintf("%-7s", group)), what, fmt.Sprintf(format, args...))
}

func (r *report) worthf(format string, args ...any) {
	r.worth = append(r.worth, fmt.Sprintf(format, args...))
}

func (r *report) unusablef(format string, args ...any) {
	r.unusable = append(r.unusable, fmt.Sprintf(format, args...))
}

// examine measures, one thing after the other, and draws the conclusions.
func examine(ctx context.Context, out io.Writer, dataDir, secretKey string) error {
	r := &report{out: out, paint: terminal.NewPainter(out)}

	late, err := r.timers(ctx)
	if err != nil {
		return err
	}
	sync := r.disk(ctx, dataDir)
	r.clock()
	r.limits()
	r.secrets(secretKey)
	if ctx.Err() != nil {
		return ctx.Err()
	}

	fmt.Fprintf(out, "\nWhat to expect\n")
	fmt.Fprintf(out, "  Calls leave about %s after their due, 99 of 100 within %s, and never before it.\n", span.Millis(late.p50), span.Millis(late.p99))
	if sync.p50 > 0 {
		fmt.Fprintf(out, "  A create is durable after about %s; many at a time share one sync.\n", span.Millis(sync.p50))
	}
	fmt.Fprintf(out, "  Expect about %d calls a second to receivers that respond at once.\n", callsPerCPU*machine.Cores)

	for _, w := range r.worth {
		fmt.Fprintf(out, "\n%s %s\n", r.paint.Paint(terminal.Yellow, "Worth a look:"), w)
	}
	for _, u := range r.unusable {
		fmt.Fprintf(out, "\n%s %s\n", r.paint.Paint(terminal.Red, "Unusable:"), u)
	}
	if len(r.unusable) > 0 {
		return exit.ErrSaid
	}
	return nil
}

func (r *report) limits() {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		r.unusablef("the limit of open files cannot be read: %v", err)
		return
	}
	r.line("limits", "open files", "%d", l.Max)
	switch {
	case l.Max < 256:
		r.unusablef("only %d files may be open; allow at least %d (LimitNOFILE, ulimit -n)", l.Max, machine.FewFiles)
	case l.Max < machine.FewFiles:
		r.worthf("only %d files may be open, and each call in flight needs one: allow at least %d (LimitNOFILE, ulimit -n)", l.Max, machine.FewFiles)
	}
	r.line("limits", "processors", "%d", machine.Cores)
	if m := machine.MemoryLimit(); m < math.MaxInt64 {
		r.line("limits", "memory", "%s (of this container)", size(uint64(m)))
	}
}

// secrets says how secrets are stored with this key file; "": there is none.
func (r *report) secrets(file string) {
	if file == "" {
		r.line("secrets", "key file", "none: secrets are stored as they are; --secret-key-file seals them")
		return
	}
	if _, err := store.SecretKey(file); err != nil {
		r.unusablef("%v", err)
		return
	}
	r.line("secrets", "key file", "%s: secrets are sealed", file)
}

func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
