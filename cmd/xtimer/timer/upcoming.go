package timer

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
)

func newTimerUpcoming(r *remote.Server) *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "upcoming ID|APP/NAME",
		Short: "Show the next dues of a timer",
		Example: `  xtimer timer upcoming billing/report
  xtimer timer upcoming billing/report --n 3 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := r.Timer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			dues, err := r.Upcoming(cmd.Context(), t.ID, n)
			if err != nil {
				return err
			}
			instant := func(due time.Time) string { return r.Zone.Instant(due, t.Schedule.TimeZone) }
			var names []string
			for _, due := range dues {
				names = append(names, instant(due))
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: map[string]any{"timer_id": t.ID, "dues": dues}, Names: names, Table: func(out io.Writer, _ bool) error {
				return listDues(out, dues, time.Now(), instant)
			}})
		},
	}
	cmd.Flags().IntVar(&n, "n", 10, "show this `NUMBER` of dues")
	return cmd
}

func listDues(out io.Writer, dues []time.Time, now time.Time, instant func(time.Time) string) error {
	for _, due := range dues {
		if _, err := fmt.Fprintf(out, "%s  %s\n", instant(due), terminal.NewPainter(out).Paint(terminal.Dim, span.Away(due.Sub(now)))); err != nil {
			return err
		}
	}
	return nil
}
