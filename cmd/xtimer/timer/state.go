package timer

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	api "xtimer/httpapi/client"
)

// selection is what a command is to be done to: the timers that its arguments
// name, or those that its filters select.
type selection struct {
	api.TimerFilter
	dryRun bool
}

func (s *selection) flags(cmd *cobra.Command) {
	Filter(cmd, &s.TimerFilter)
	cmd.Flags().BoolVar(&s.All, "all", false, "select all timers")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "only count what the filters select")
}

// check sees that it is one or the other.
func (s *selection) check(r *remote.Server, named []string) error {
	if len(named) == 0 {
		s.App = r.App
	}
	filtered := s.TimerFilter != api.TimerFilter{}
	switch {
	case len(named) == 0 && !filtered:
		return exit.Usage("required: names of timers, or filters such as --app or --label, or --all")
	case len(named) > 0 && (filtered || s.dryRun):
		return exit.Usage("names and filters exclude each other: give one of the two")
	}
	return nil
}

func (s *selection) options() []api.CallOption {
	if s.dryRun {
		return []api.CallOption{api.DryRun()}
	}
	return nil
}

func newTimerEnable(r *remote.Server) *cobra.Command {
	var s selection
	var catchUp string
	cmd := &cobra.Command{
		Use:   "enable [ID|APP/NAME …]",
		Short: "Enable timers",
		Long: `enable enables the named timers, or those that the filters select. Dues that passed
while a timer was disabled are called only if --catch-up is latest or all.`,
		Example: `  xtimer timer enable billing/report --catch-up latest
  xtimer timer enable --app billing --status disabled --dry-run`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(r, args); err != nil {
				return err
			}
			if len(args) == 0 {
				if catchUp != api.CatchUpNone {
					return exit.Usage("--catch-up cannot be combined with filters: name the timers")
				}
				op, err := r.EnableAll(cmd.Context(), s.TimerFilter, s.options()...)
				return r.Follow(cmd, op, err)
			}
			return each(r, cmd, args, func(ctx context.Context, id string) (string, error) {
				t, err := r.Enable(ctx, id, catchUp)
				return statusOf(t), err
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&catchUp, "catch-up", api.CatchUpNone, "the `DUES` to call of those that passed while the timer was disabled: none, latest or all")
	return cmd
}

func statusOf(t *api.Timer) string {
	if t == nil {
		return ""
	}
	return t.Status
}

func newTimerDisable(r *remote.Server) *cobra.Command {
	var s selection
	var reason, until string
	cmd := &cobra.Command{
		Use:   "disable [ID|APP/NAME …]",
		Short: "Disable timers",
		Long: `disable disables the named timers, or those that the filters select. After disable
has returned, no call starts. A call in flight may finish, and is not repeated.`,
		Example: `  xtimer timer disable billing/report --reason "the target moves" --until 2h
  xtimer timer disable -l team=a`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			how := api.Disabling{Reason: reason}
			var err error
			if how.Until, err = remote.Ahead(until, time.Now()); err != nil {
				return exit.Usage("--until: %w", err)
			}
			if err := s.check(r, args); err != nil {
				return err
			}
			if len(args) == 0 {
				op, err := r.DisableAll(cmd.Context(), s.TimerFilter, how, s.options()...)
				return r.Follow(cmd, op, err)
			}
			return each(r, cmd, args, func(ctx context.Context, id string) (string, error) {
				t, err := r.Disable(ctx, id, how)
				return statusOf(t), err
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "the `REASON`, which timer list and timer get show")
	cmd.Flags().StringVar(&until, "until", "", "enable the timers again at this `TIME`: RFC 3339, Unix ms, or a time from now such as 2h or 7d")
	return cmd
}

// each does something to each of the timers that are named, and says of each
// what came of it.
func each(r *remote.Server, cmd *cobra.Command, named []string, do func(ctx context.Context, id string) (string, error)) error {
	var all []remote.Done
	var first error
	for _, name := range named {
		id, err := r.TimerID(cmd.Context(), name)
		d := remote.Done{Timer: name}
		if err == nil {
			d.Result, err = do(cmd.Context(), id)
		}
		if err != nil {
			err = r.TimerError(err, name)
			d.Error = remote.OneLine(r.Explain(err))
			if first == nil {
				first = err
			}
		}
		all = append(all, d)
	}
	return r.Tell(cmd, all, first)
}
