package timer

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerDelete(r *remote.Server) *cobra.Command {
	var s selection
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete [ID|APP/NAME …]",
		Short: "Delete timers",
		Long: `delete deletes the named timers, or those that the filters select. At a terminal,
it asks for confirmation unless --yes is given. Without a terminal, as in a script,
it deletes named timers without confirmation; filters require --yes.

The result "cancelled" means that no further call is made, even after a crash.
"in_flight" means that the first byte of a call had already been sent; that call may
finish, and is not repeated. "finished" means that nothing was left to cancel.`,
		Example: `  xtimer timer delete billing/report
  xtimer timer delete -l team=a --dry-run
  xtimer timer delete --app billing --status finished --yes`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(r, args); err != nil {
				return err
			}
			ctx := cmd.Context()
			if len(args) > 0 {
				if !yes && remote.IsPerson(cmd.InOrStdin()) {
					what := args[0]
					if len(args) > 1 {
						what = fmt.Sprintf("these %d timers", len(args))
					}
					if err := remote.Ask(cmd, fmt.Sprintf("Delete %s?", terminal.Printable(what))); err != nil {
						return err
					}
				}
				return each(r, cmd, args, func(ctx context.Context, id string) (string, error) { return r.Delete(ctx, id) })
			}
			if !yes && !s.dryRun {
				op, err := r.DeleteAll(ctx, s.TimerFilter, api.DryRun())
				if err != nil {
					return err
				}
				if op.Count > 0 {
					if err := remote.Ask(cmd, fmt.Sprintf("Delete %d timers?", op.Count)); err != nil {
						return err
					}
				}
			}
			op, err := r.DeleteAll(ctx, s.TimerFilter, s.options()...)
			return r.Follow(cmd, op, err)
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}
