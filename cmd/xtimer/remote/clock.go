package remote

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

func NewClock() *cobra.Command {
	r := new(Server)
	return r.Attach(&cobra.Command{
		Use:   "clock",
		Short: "Make timers follow the current clock of a server after the clock was wrong",
		Long:  "clock is for a server whose clock was wrong for a while.\n\n" + exit.Help,
		Example: `  xtimer clock reset --dry-run
  xtimer clock reset`,
	}, newClockReset(r))
}

func newClockReset(r *Server) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Make all timers follow the current clock after it was set back",
		Long: `reset makes all timers follow the current clock of the server, after the clock was
ahead and was set back.

When the clock of a server is set back, its timers rest until the clock reaches its
former reading, because a clock that is behind by mistake must not repeat calls. If
the clock was 8 hours ahead for some seconds, timers rest for 8 hours, and /readyz
has the warning clock_behind. After a reset, the dues of this time that were not
called count again. No call is made twice with one key.

reset requires an admin token for all apps. A second reset changes nothing.`,
		Example: `  xtimer clock reset --dry-run
  xtimer clock reset`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var options []api.CallOption
			if dryRun {
				options = append(options, api.DryRun())
			}
			op, err := r.ResetClock(cmd.Context(), options...)
			return r.Follow(cmd, op, err)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count the timers that rest")
	return cmd
}
