package timer

import (
	"io"

	"xtimer/cmd/xtimer/remote"

	"github.com/spf13/cobra"
)

func newTimerGet(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID|APP/NAME",
		Short: "Show one timer",
		Example: `  xtimer timer get billing/report
  xtimer timer get billing/report -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := r.Timer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return r.Show(cmd.OutOrStdout(), t, func(out io.Writer) error { return sheetTimer(out, t, r.Zone) })
		},
	}
}
