package timer

import (
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerDiff(r *remote.Server) *cobra.Command {
	a := apply{dryRun: true}
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show how files differ from the timers of a server",
		Long: `diff compares the timers in files with the timers on the server, and shows what
"timer apply" would change: + marks a timer that the server does not have, ~ a timer
that differs, with each field that differs. A field that is not in the file has its
default. diff does not show timers that are in no file, and changes nothing.

The exit status is 0 if there are no differences and 1 if there are differences.
Other statuses are errors.`,
		Example: `  xtimer timer diff -f timers/
  xtimer timer diff -f timers.yaml && echo "nothing to apply"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(a.files) == 0 {
				return exit.Usage("required: --file")
			}
			a.Server, a.cmd = r, cmd
			sources, err := a.sources()
			if err != nil {
				return err
			}
			plan, err := a.plan(cmd.Context(), sources)
			if err != nil {
				return err
			}
			return a.differ(plan)
		},
	}
	cmd.Flags().StringArrayVarP(&a.files, "file", "f", nil, "compare this `FILE` or folder; -: stdin; may be repeated")
	return cmd
}

// differ prints what differs.
func (a *apply) differ(plan []*applied) error {
	different := []*applied{} // shown as [], not as null
	var names []string
	for _, p := range plan {
		if p.Result != api.Unchanged {
			different = append(different, p)
			names = append(names, p.App+"/"+p.Name)
		}
	}
	err := a.Output.Show(a.cmd.OutOrStdout(), terminal.View{Value: map[string]any{"results": different}, Names: names, Table: func(out io.Writer, _ bool) error {
		return tellEach(out, different)
	}})
	if err != nil || len(different) == 0 {
		return err
	}
	return exit.With(exit.StatusFailed, exit.ErrSaid)
}

// sources are the timers of the files, each with an app and a name of its own.
func (a *apply) sources() ([]definition.Source, error) {
	sources, err := definition.Read(a.files, a.cmd.InOrStdin())
	if err == nil {
		err = inApp(sources, a.App)
	}
	if err == nil {
		err = checkNames(sources)
	}
	return sources, err
}
