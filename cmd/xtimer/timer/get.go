package timer

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerGet(r *remote.Server) *cobra.Command {
	var watch remote.Watching
	cmd := &cobra.Command{
		Use:   "get ID|APP/NAME",
		Short: "Show one timer",
		Example: `  xtimer timer get billing/report
  xtimer timer get billing/report -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wide := r.Output == terminal.Wide; watch.On {
				return r.Watch(cmd, watch, timerHead(wide), func(ctx context.Context) ([]remote.Item, error) {
					t, err := r.Timer(ctx, args[0])
					if err != nil {
						return nil, err
					}
					return itemsOf([]api.Timer{*t}, r.Zone, wide), nil
				})
			}
			t, err := r.Timer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: t, Names: []string{t.App + "/" + t.Name}, Table: func(out io.Writer, _ bool) error {
				return sheetTimer(out, t, r.Zone)
			}})
		},
	}
	watch.Flags(cmd)
	return cmd
}
