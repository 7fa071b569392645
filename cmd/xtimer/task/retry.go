package task

import (
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	api "xtimer/httpapi/client"
)

func newTaskRetry(r *remote.Server) *cobra.Command {
	var f taskFlags
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "retry [KEY …]",
		Short: "Retry failed and dead tasks",
		Long: `retry calls tasks again, with the same keys: the tasks whose keys are given, or the
tasks that the filters select. Without --status, filters select failed and dead tasks.
Tasks that may have been sent, of timers with at_most_once, are selected only by
--status unknown.

With filters, retry first counts the tasks and asks for confirmation unless --yes is
given. Without a terminal, as in a script, filters require --yes or --dry-run.`,
		Example: `  xtimer task retry 7354000000000000000_1763658000250
  xtimer task retry --app billing --status dead --from 1h --dry-run
  xtimer task retry --app billing --status dead --from 1h --yes`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.CompleteTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			filter, err := f.filter(cmd, r)
			if err != nil {
				return err
			}
			filtered := !reflect.ValueOf(filter).IsZero()
			switch {
			case len(args) == 0 && !filtered:
				return exit.Usage("required: keys of tasks, or filters such as --app or --status, or --all")
			case len(args) > 0 && (filtered || dryRun):
				return exit.Usage("keys and filters exclude each other: give one of the two")
			case len(args) == 0:
				var options []api.CallOption
				if dryRun {
					options = append(options, api.DryRun())
				}
				if !yes && !dryRun {
					op, err := r.RetryAll(ctx, filter, api.DryRun())
					if err != nil {
						return err
					}
					if op.Count > 0 {
						if err := remote.Ask(cmd, fmt.Sprintf("Retry %d tasks?", op.Count)); err != nil {
							return err
						}
					}
				}
				op, err := r.RetryAll(ctx, filter, options...)
				return r.Follow(cmd, op, err)
			}
			return each(cmd, r, args, "retried", "task %s not found, or its timer was deleted", func(key string) error { return r.Retry(ctx, key) })
		},
	}
	f.flags(cmd, r)
	cmd.Flags().BoolVar(&f.All, "all", false, "select all tasks")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count what the filters select")
	return cmd
}

// each does the same with every named task and reports the result of each; notFound has
// a %s for the key.
func each(cmd *cobra.Command, r *remote.Server, keys []string, result, notFound string, do func(key string) error) error {
	var all []remote.Done
	var first error
	for _, key := range keys {
		d := remote.Done{Task: key, Result: result}
		if err := do(key); err != nil {
			if api.IsNotFound(err) {
				err = exit.NotFound(notFound, key)
			}
			d.Result, d.Error = "", remote.OneLine(r.Explain(err))
			if first == nil {
				first = err
			}
		}
		all = append(all, d)
	}
	return r.Tell(cmd, all, first)
}
