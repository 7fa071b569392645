package remote

import (
	"reflect"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

func newTaskRetry(r *remote) *cobra.Command {
	var f taskFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "retry [KEY …]",
		Short: "Have tasks made again that failed or are dead",
		Long: `retry makes the tasks again that are named, or that the filters select, under the
same keys. Filters without a status select what failed or is dead; one that may
have been sent ("unknown") has to be asked for.`,
		Example: `  xtimer task retry 7354000000000000000_1763658000250
  xtimer task retry --app billing --status dead --from 1h --dry-run`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			filter, err := f.filter(ctx, r)
			if err != nil {
				return err
			}
			filtered := !reflect.ValueOf(filter).IsZero()
			switch {
			case len(args) == 0 && !filtered:
				return exit.Usage("which tasks? name them, or select them by --app, --status …, or --all")
			case len(args) > 0 && (filtered || dryRun):
				return exit.Usage("either name tasks or select them by filters, not both")
			case len(args) == 0:
				var options []api.CallOption
				if dryRun {
					options = append(options, api.DryRun())
				}
				op, err := r.RetryAll(ctx, filter, options...)
				return r.follow(cmd, op, err)
			}
			var all []done
			var first error
			for _, key := range args {
				d := done{Task: key, Result: "made again"}
				if err := r.Retry(ctx, key); err != nil {
					d.Result, d.Error = "", err.Error()
					if first == nil {
						first = err
					}
				}
				all = append(all, d)
			}
			return r.tell(cmd, all, first)
		},
	}
	f.flags(cmd, r)
	cmd.Flags().BoolVar(&f.All, "all", false, "all tasks there are")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count what the filters select")
	return cmd
}
