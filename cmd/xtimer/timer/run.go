package timer

import (
	"fmt"
	"io"

	"xtimer/cmd/xtimer/remote"

	"github.com/spf13/cobra"
)

func newTimerRun(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "run ID|APP/NAME",
		Short: "Call a timer's target now, once more",
		Long: `run makes a task now, whatever the schedule says, also for a disabled timer, and
prints its key.`,
		Example: `  xtimer timer run billing/report
  xtimer task get $(xtimer timer run billing/report)`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := r.TimerID(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			key, err := r.Run(cmd.Context(), id)
			if err != nil {
				return err
			}
			return r.Show(cmd.OutOrStdout(), map[string]any{"key": key}, func(out io.Writer) error {
				_, err := fmt.Fprintln(out, key)
				return err
			})
		},
	}
}
