package figures

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// NewStats is the command "stats".
func NewStats() *cobra.Command {
	r := &remote.Server{}
	return r.Attach(&cobra.Command{
		Use:   "stats",
		Short: "Show the figures of a server: timers, tasks, lateness, stores, warnings",
		Long: `stats shows the number of timers and tasks of a server, its rate of calls, their
lateness, whether its stores are available, a pause of all apps, and warnings. With a
token for one app, stats shows the figures of that app.

` + exit.Help,
		Example: `  xtimer stats
  xtimer stats -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := r.Stats(cmd.Context())
			if err != nil {
				return err
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: s, Table: func(out io.Writer, _ bool) error {
				return sheetStats(out, s, func(t time.Time) string { return r.Zone.Instant(t, "") })
			}})
		},
	})
}

// sheetStats shows the figures of a server.
func sheetStats(out io.Writer, s *api.Stats, instant func(time.Time) string) error {
	var sheet terminal.Sheet
	sheet.Has("app", s.App)
	if s.Pause != nil {
		sheet.Add("calls held", "%s", remote.PauseWords(s.Pause, instant))
	}
	if s.App == "" {
		sheet.Add("timers", "%d enabled, %d disabled, %d finished", s.Timers.Enabled, s.Timers.Disabled, s.Timers.Finished)
	}
	sheet.Add("tasks", "%d unfinished, %d in flight, %d overdue", s.Tasks.Open, s.Tasks.InFlight, s.Tasks.Overdue)
	if s.Tasks.Overdue > 0 {
		sheet.Add("longest wait", "%s", span.Millis(time.Duration(s.Tasks.OldestOverdueMS*float64(time.Millisecond))))
	}
	sheet.Add("calls", "%.1f a second in the last minute", s.LastMinute.FiresPerSecond)
	if m := s.LastMinute; m.FiresPerSecond > 0 {
		sheet.Add("lateness", "p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms", m.LatenessP50MS, m.LatenessP99MS, m.LatenessP999MS)
	} else {
		sheet.Add("lateness", "–")
	}
	for _, status := range slices.Sorted(maps.Keys(s.Tasks.SinceStart)) {
		if n := s.Tasks.SinceStart[status]; n > 0 {
			sheet.Add(status, "%d since the start", n)
		}
	}
	if len(s.DueByMinute) > 0 {
		var hour int64
		for _, n := range s.DueByMinute {
			hour += n
		}
		sheet.Add("due", "%d in this minute, %d in the coming hour", s.DueByMinute[0], hour)
	}
	for _, tier := range slices.Sorted(maps.Keys(s.Tiers)) {
		word := "available"
		if !s.Tiers[tier] {
			word = "unavailable"
		}
		sheet.Add("tier "+tier, "%s", word)
	}
	sheet.Add("up", "%s", span.Format((time.Duration(s.UptimeSeconds) * time.Second)))
	if err := sheet.Print(out); err != nil {
		return err
	}
	for _, w := range s.Warnings {
		if _, err := fmt.Fprintf(out, "\n%s %s\n", terminal.NewPainter(out).Paint(terminal.Yellow, w.Code+":"), terminal.Printable(w.Detail)); err != nil {
			return err
		}
	}
	return nil
}
