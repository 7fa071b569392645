package timer

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerList(r *remote.Server) *cobra.Command {
	var f api.TimerFilter
	var limit int
	var failing bool
	var watch remote.Watching
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List timers",
		Long: `list shows the timers that match all filters. apply accepts the output of -o json
and -o yaml.

LAST TASK is the status of the newest task of the timer. --failing has to read the
last task of every timer that the other filters select; if there are many timers,
add --app or another filter.`,
		Example: `  xtimer timer list --app billing --status disabled
  xtimer timer list -n billing --failing
  xtimer timer list -n billing --watch
  xtimer timer list -l team=a,env!=prod --limit 0 -o yaml > timers.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.App = r.App
			var options []api.CallOption
			if failing || r.Output != terminal.Name {
				options = append(options, api.LastTasks())
			}
			read := func(ctx context.Context) ([]api.Timer, bool, error) {
				all := r.Timers(ctx, f, options...)
				if failing {
					all = onlyFailing(all)
				}
				return remote.Take(all, limit)
			}
			wide := r.Output == terminal.Wide
			if watch.On {
				return r.Watch(cmd, watch, timerHead(wide), func(ctx context.Context) ([]remote.Item, error) {
					timers, _, err := read(ctx)
					return itemsOf(timers, r.Zone, wide), err
				})
			}
			timers, more, err := read(cmd.Context())
			if err != nil {
				return err
			}
			err = r.Output.Show(cmd.OutOrStdout(), viewTimers(timers, r.Zone))
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	Filter(cmd, &f)
	remote.AddLimit(cmd, &limit)
	watch.Flags(cmd)
	cmd.Flags().BoolVar(&failing, "failing", false, "only timers whose last task failed or is being retried")
	return cmd
}

// onlyFailing passes on the timers whose last task failed. The server has no index of
// them: it reads the last task of every timer that the other filters select.
func onlyFailing(all iter.Seq2[api.Timer, error]) iter.Seq2[api.Timer, error] {
	return func(yield func(api.Timer, error) bool) {
		for t, err := range all {
			if (err != nil || t.LastTask != nil && t.LastTask.Failing()) && !yield(t, err) {
				return
			}
		}
	}
}

// Filter adds the flags that select timers.
func Filter(cmd *cobra.Command, f *api.TimerFilter) {
	fs := cmd.Flags()
	fs.StringVar(&f.NamePrefix, "name-prefix", "", "only timers whose name has this `PREFIX`")
	fs.StringVar(&f.Search, "search", "", "only timers with this `TEXT` in the name")
	fs.StringVar(&f.Status, "status", "", "only timers with this `STATUS`: enabled, disabled or finished")
	fs.StringVarP(&f.Label, "label", "l", "", "only timers with these `LABELS`, for example team=a,env!=prod")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{api.Enabled, api.Disabled, api.Finished}, cobra.ShellCompDirectiveNoFileComp))
}
