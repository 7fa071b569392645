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
		Short: "Correct a server after its clock was wrong",
		Long:  "clock corrects a server whose clock was wrong for some time.\n\n" + exit.Help,
		Example: `  xtimer clock reset --dry-run
  xtimer clock reset`,
	}, newClockReset(r))
}

func newClockReset(r *Server) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Follow the present clock, which was ahead before",
		Long: `reset tells the server that its clock is right now, and was ahead before.

A server whose clock was set back makes no calls until the clock has reached its
former time again, because a clock that is slow by mistake must not repeat calls. So
timers rest for 8 hours if the clock was 8 hours ahead for some seconds, and /readyz
warns of it (clock_behind). After a reset, the dues in this time count again, except
those that were called: no key is called twice.

reset needs an admin token for all apps. A second reset changes nothing.`,
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
