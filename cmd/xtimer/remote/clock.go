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
		Short: "Have a server go by its clock as it is, after it was wrong",
		Long:  "clock is for a server whose clock was wrong for a while.\n\n" + exit.Help,
		Example: `  xtimer clock reset --dry-run
  xtimer clock reset`,
	}, newClockReset(r))
}

func newClockReset(r *Server) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Call again by the clock as it is, which was ahead before",
		Long: `reset says that the server's clock is right as it is, and that it was ahead before.

A server whose clock was set back does not call what its timers were due for until
the clock is where it was: a clock that is behind by mistake must not have calls
repeated. So timers rest for 8 hours when the clock was 8 hours ahead for some
seconds, and /readyz warns of it (clock_behind). After a reset the dues in this time
count again, but for those that were called; no call is made twice under one key.

It needs an admin token of all apps. Doing it again changes nothing.`,
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
