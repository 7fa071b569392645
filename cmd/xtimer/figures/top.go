package figures

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// NewTop is the command "top".
func NewTop() *cobra.Command {
	r := &remote.Server{}
	var interval time.Duration
	var once bool
	cmd := r.Attach(&cobra.Command{
		Use:   "top",
		Short: "Watch the apps and targets of a server: rates, lateness, failures, waiting calls",
		Long: `top shows a table of the apps of a server and of the targets that they call, the
busiest app first, and updates the table until Ctrl-C. Rates and lateness are those of
the last minute, successes and failures those of the last hour. If the output is not a
terminal, top prints the table once.

` + exit.Help,
		Example: `  xtimer top
  xtimer top -n billing --interval 5s
  xtimer top --once -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond {
				return exit.Usage("--interval: must be at least 100ms")
			}
			out := cmd.OutOrStdout()
			if once || !terminal.Is(out) || !r.Output.IsTable() {
				apps, err := readApps(cmd.Context(), r)
				if err != nil {
					return err
				}
				return r.Output.Show(out, viewApps(apps, r.Zone))
			}
			return live(cmd.Context(), out, r, interval)
		},
	})
	r.AppFlag(cmd, "only this `APP`")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "update the table this often")
	cmd.Flags().BoolVar(&once, "once", false, "print the table once and exit")
	return cmd
}

// mostApps bounds what one view reads.
const mostApps = 1000

// readApps reads the figures of the apps, the busiest first.
func readApps(ctx context.Context, r *remote.Server) (*api.AppPage, error) {
	page, err := r.Apps(ctx, r.App, mostApps, "")
	if err != nil {
		return nil, err
	}
	busy := func(a *api.AppFigures) float64 {
		return a.LastMinute.FiresPerSecond*1000 + float64(a.Waiting+a.InFlight)
	}
	slices.SortStableFunc(page.Apps, func(a, b api.AppFigures) int {
		switch x, y := busy(&a), busy(&b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return page, nil
}

func viewApps(page *api.AppPage, z remote.Zone) terminal.View {
	var names []string
	for i := range page.Apps {
		names = append(names, page.Apps[i].App)
	}
	return terminal.View{Value: page, Names: names, Table: func(out io.Writer, _ bool) error { return tableApps(out, page, z) }}
}

// tableApps shows each app, and under it its targets.
func tableApps(out io.Writer, page *api.AppPage, z remote.Zone) error {
	if _, err := fmt.Fprintf(out, "%s, figures since %s\n\n", z.Instant(page.Now, ""), z.Instant(page.Since, "")); err != nil {
		return err
	}
	g := terminal.Grid{Head: []string{"APP, TARGET", "TIMERS", "CALLS/S", "P50 MS", "P99 MS", "IN FLIGHT", "WAITING", "OK 1H", "FAILED 1H", ""}}
	for i := range page.Apps {
		a := &page.Apps[i]
		timers := strconv.FormatInt(a.Timers.Enabled, 10)
		if !page.Exact {
			timers += "+"
		}
		h := &a.LastHour
		g.Paint(colours(h.Failed+h.Dead+h.Unknown), a.App, timers, fmt.Sprintf("%.1f", a.LastMinute.FiresPerSecond), figure(a.LastMinute.LatenessP50MS), figure(a.LastMinute.LatenessP99MS),
			strconv.FormatInt(a.InFlight, 10), strconv.FormatInt(a.Waiting, 10), strconv.FormatInt(h.Succeeded, 10), strconv.FormatInt(h.Failed+h.Dead+h.Unknown, 10), "")
		for _, t := range a.Targets {
			state := ""
			if !t.Answering {
				state = "does not respond"
			}
			g.Paint(colours(t.AttemptsFailed), "  "+t.Target, "", "", figure(t.TookP50MS), figure(t.TookP99MS), strconv.FormatInt(t.InFlight, 10), strconv.FormatInt(t.Waiting, 10),
				strconv.FormatInt(t.AttemptsOK, 10), strconv.FormatInt(t.AttemptsFailed, 10), state)
		}
		if a.MoreTargets > 0 {
			g.Add(fmt.Sprintf("  and %d more targets", a.MoreTargets), "", "", "", "", "", "", "", "", "")
		}
	}
	if err := g.Print(out); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\nP50 and P99: of an app, how late calls start; of a target, how long calls take.\n")
	return err
}

// colours are those of a row with so many failures.
func colours(failures int64) []string {
	c := make([]string, 9)
	if failures > 0 {
		c[8] = terminal.Red
	}
	return c
}

// figure is a figure that may be absent.
func figure(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}

// live draws the table again and again, each time in the place of the one before.
func live(ctx context.Context, out io.Writer, r *remote.Server, interval time.Duration) error {
	for first := true; ; first = false {
		var screen bytes.Buffer
		page, err := readApps(ctx, r)
		switch {
		case ctx.Err() != nil && (err == nil || !first):
			return nil // Ctrl-C ends top
		case err != nil && (first || exit.StatusOf(err) != exit.StatusUnavailable):
			return err
		case err != nil:
			fmt.Fprintf(&screen, "%s; waiting for the server\n", remote.OneLine(r.Explain(err)))
		default:
			if err := tableApps(&screen, page, r.Zone); err != nil {
				return err
			}
		}
		// Home, the text with the rest of each line cleared, and the rest of the screen cleared.
		text := bytes.ReplaceAll(screen.Bytes(), []byte("\n"), []byte("\x1b[K\n"))
		if _, err := fmt.Fprintf(out, "\x1b[H%s\x1b[J", text); err != nil {
			return fmt.Errorf("cannot draw: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}
