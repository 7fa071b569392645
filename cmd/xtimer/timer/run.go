package timer

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerRun(r *remote.Server) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "run ID|APP/NAME",
		Short: "Call the target of a timer now",
		Long: `run creates a task that is due now, independently of the schedule, and prints the
key of the task. The timer may be disabled.

A pause or the limit of a flow key or of a target holds the task as any other. With
--force, the limits do not hold it, and its calls do not count there; a pause still
holds it.`,
		Example: `  xtimer timer run billing/report
  xtimer task get $(xtimer timer run billing/report)`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := r.TimerID(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var options []api.CallOption
			if force {
				options = append(options, api.Force())
			}
			key, err := r.Run(cmd.Context(), id, options...)
			if err != nil {
				return r.TimerError(err, args[0])
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: map[string]any{"key": key}, Names: []string{key}, Table: func(out io.Writer, _ bool) error {
				_, err := fmt.Fprintln(out, key)
				return err
			}})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "skip the limits of flow keys and of the target, but no pause")
	return cmd
}
