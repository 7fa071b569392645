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
		Short: "Correct timers after the clock of a server was wrong",
		Long:  "clock corrects the timers of a server whose clock was ahead and was then set back.\n\n" + exit.Help,
		Example: `  xtimer clock reset --dry-run
  xtimer clock reset`,
	}, newClockReset(r))
}

func newClockReset(r *Server) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Make all timers follow the current clock after it was set back",
		Long: `reset makes all timers follow the current clock of the server at once.

When the clock of a server is set back, the server cannot know which of the two
readings is wrong. To repeat no call, its timers make no calls until the clock
reaches the former reading. For example, if the clock was 8 hours ahead for some
seconds, there are no calls for 8 hours, and /readyz has the warning clock_behind.

Use reset if the former reading was wrong. Then the timers are called at their dues
by the current clock. A due that was already called is not called a second time.

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
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count the timers that wait for the former reading")
	return cmd
}
