package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerDelete(r *remote) *cobra.Command {
	var s selection
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete [ID|APP/NAME …]",
		Short: "Delete timers",
		Long: `delete deletes the timers that are named, or that the filters select. On a terminal
it asks first, unless --yes is given. Where nobody is there to ask, as in a script,
timers that are named are deleted without asking; those that filters select need --yes.

"cancelled" means that no call is made any more, across any crash; "in_flight", that
one was running; "finished", that nothing was left.`,
		Example: `  xtimer timer delete billing/report
  xtimer timer delete -l team=a --dry-run
  xtimer timer delete --app billing --status finished --yes`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: r.completeTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(args); err != nil {
				return err
			}
			ctx := cmd.Context()
			if len(args) > 0 {
				if !yes && isPerson(cmd.InOrStdin()) {
					what := args[0]
					if len(args) > 1 {
						what = fmt.Sprintf("these %d timers", len(args))
					}
					if err := ask(cmd, fmt.Sprintf("Delete %s?", terminal.Printable(what))); err != nil {
						return err
					}
				}
				return r.each(cmd, args, func(ctx context.Context, id string) (string, error) { return r.Delete(ctx, id) })
			}
			if !yes && !s.dryRun {
				op, err := r.DeleteAll(ctx, s.TimerFilter, api.DryRun())
				if err != nil {
					return err
				}
				if op.Count > 0 {
					if err := ask(cmd, fmt.Sprintf("Delete %d timers?", op.Count)); err != nil {
						return err
					}
				}
			}
			op, err := r.DeleteAll(ctx, s.TimerFilter, s.options()...)
			return r.follow(cmd, op, err)
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// isPerson tells whether somebody types what is read.
func isPerson(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && terminal.Is(f)
}

// ask wants a yes from a person; where there is none, --yes has to say it.
func ask(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if _, ok := in.(*os.File); ok && !isPerson(in) {
		return exit.Usage("%s nobody is there to ask: say --yes, or look with --dry-run", question)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("left as it is")
}
