package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// selection is what a command is to be done to: the timers that its arguments
// name, or those that its filters select.
type selection struct {
	api.TimerFilter
	dryRun bool
}

func (s *selection) flags(cmd *cobra.Command) {
	FilterTimers(cmd, &s.TimerFilter)
	cmd.Flags().BoolVar(&s.All, "all", false, "all timers there are")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "only count what the filters select")
}

// check sees that it is one or the other.
func (s *selection) check(named []string) error {
	filtered := s.TimerFilter != api.TimerFilter{}
	switch {
	case len(named) == 0 && !filtered:
		return exit.Usage("which timers? name them, or select them by --app, --label …, or --all")
	case len(named) > 0 && (filtered || s.dryRun):
		return exit.Usage("either name timers or select them by filters, not both")
	}
	return nil
}

func (s *selection) options() []api.CallOption {
	if s.dryRun {
		return []api.CallOption{api.DryRun()}
	}
	return nil
}

func newTimerEnable(r *remote) *cobra.Command {
	var s selection
	var catchUp string
	cmd := &cobra.Command{
		Use:   "enable [ID|APP/NAME …]",
		Short: "Enable timers",
		Long: `enable enables the timers that are named, or that the filters select. What passed
meanwhile is not made up for, unless --catch-up says so.`,
		Example: `  xtimer timer enable billing/report --catch-up latest
  xtimer timer enable --app billing --status disabled --dry-run`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.completeTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(args); err != nil {
				return err
			}
			if len(args) == 0 {
				if catchUp != api.CatchUpNone {
					return exit.Usage("--catch-up is for timers that are named")
				}
				op, err := r.EnableAll(cmd.Context(), s.TimerFilter, s.options()...)
				return r.follow(cmd, op, err)
			}
			return r.each(cmd, args, func(ctx context.Context, id string) (string, error) {
				t, err := r.Enable(ctx, id, catchUp)
				return statusOf(t), err
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&catchUp, "catch-up", api.CatchUpNone, "call for the dues that passed: `none`, latest or all")
	return cmd
}

func statusOf(t *api.Timer) string {
	if t == nil {
		return ""
	}
	return t.Status
}

func newTimerDisable(r *remote) *cobra.Command {
	var s selection
	var reason, until string
	cmd := &cobra.Command{
		Use:   "disable [ID|APP/NAME …]",
		Short: "Disable timers",
		Long: `disable disables the timers that are named, or that the filters select. Once it
returns no call starts any more; one in flight may end, and is not repeated.`,
		Example: `  xtimer timer disable billing/report --reason "the target moves" --until 2h
  xtimer timer disable -l team=a`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.completeTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			how := api.Disabling{Reason: reason}
			var err error
			if how.Until, err = ahead(until, time.Now()); err != nil {
				return exit.Usage("--until: %w", err)
			}
			if err := s.check(args); err != nil {
				return err
			}
			if len(args) == 0 {
				op, err := r.DisableAll(cmd.Context(), s.TimerFilter, how, s.options()...)
				return r.follow(cmd, op, err)
			}
			return r.each(cmd, args, func(ctx context.Context, id string) (string, error) {
				t, err := r.Disable(ctx, id, how)
				return statusOf(t), err
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who wonder")
	cmd.Flags().StringVar(&until, "until", "", "enable them again at this `TIME`, or after this long: 2h, 7d")
	return cmd
}

// ahead reads a time: RFC 3339, Unix ms, or how far ahead it is. "" is none.
func ahead(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := span.Parse(s); err == nil && d >= 0 {
		return now.Add(d), nil
	}
	ms, err := span.Moment(s, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time like 2026-11-20T17:00:00Z, nor Unix ms, nor how far ahead, like 30m or 7d", s)
	}
	return time.UnixMilli(ms), nil
}

// done is what became of one of several timers or tasks.
type done struct {
	Timer  string `json:"timer,omitempty"`
	Task   string `json:"task,omitempty"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// each does something to each of the timers that are named, and says of each
// what came of it.
func (r *remote) each(cmd *cobra.Command, named []string, do func(ctx context.Context, id string) (string, error)) error {
	var all []done
	var first error
	for _, name := range named {
		id, err := r.timerID(cmd.Context(), name)
		d := done{Timer: name}
		if err == nil {
			d.Result, err = do(cmd.Context(), id)
		}
		if err != nil {
			d.Error = Explain(err).Error()
			if first == nil {
				first = err
			}
		}
		all = append(all, d)
	}
	return r.tell(cmd, all, first)
}

// tell says what became of each of several; first is the first error. Of a
// single one it is the command's.
func (r *remote) tell(cmd *cobra.Command, all []done, first error) error {
	if len(all) == 1 && first != nil {
		return first
	}
	err := r.show(cmd.OutOrStdout(), map[string]any{"results": all}, func(out io.Writer) error {
		g := terminal.Grid{Head: []string{"NAME", "RESULT"}}
		for _, d := range all {
			if d.Error != "" {
				g.Paint([]string{terminal.Plain, terminal.Red}, d.Timer+d.Task, d.Error)
			} else {
				g.Paint([]string{terminal.Plain, statusColours[d.Result]}, d.Timer+d.Task, d.Result)
			}
		}
		return g.Print(out)
	})
	if err != nil {
		return err
	}
	return exit.Partly(len(all), failures(all), first)
}

func failures(all []done) (n int) {
	for _, d := range all {
		if d.Error != "" {
			n++
		}
	}
	return n
}

// follow waits for the end of a bulk operation and says what came of it.
func (r *remote) follow(cmd *cobra.Command, op *api.Operation, err error) error {
	if err != nil {
		return err
	}
	p := terminal.NewProgress(cmd.ErrOrStderr(), op.Count)
	op, err = r.Wait(cmd.Context(), op, func(op *api.Operation) { p.At(op.Done) })
	p.End()
	if err != nil {
		return err
	}
	err = r.show(cmd.OutOrStdout(), op, func(out io.Writer) error {
		word := map[string]string{"enable": "enabled", "disable": "disabled", "delete": "deleted", "retry": "made again", "clock_reset": "called by the clock as it is"}[op.Action]
		if op.DryRun {
			_, err := fmt.Fprintf(out, "%d would be %s.\n", op.Count, word)
			return err
		}
		_, err := fmt.Fprintf(out, "%d %s.\n", op.Done-op.Failed, word)
		return err
	})
	if err == nil && op.Error != "" {
		failed := int(op.Count - op.Done + op.Failed)
		err = exit.Partly(int(op.Count), failed, errors.New(op.Error))
		if err != nil {
			err = fmt.Errorf("%w: %s", err, op.Error)
		}
	}
	return err
}
