package remote

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// Server is the server that a group of commands uses, and the form in which they show
// its answers.
type Server struct {
	Place
	App         string // -n: the app of names without one; the filter of lists
	Output      terminal.Output
	Zone        Zone
	*api.Client // set before a command runs
}

// Attach gives a group of commands, or one command alone, the flags and the errors that
// commands of a server have in common.
func (r *Server) Attach(group *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	r.Output, r.Zone = terminal.Table, "local"
	fs := group.PersistentFlags()
	r.Flags(group, fs)
	fs.VarP(&r.Output, "output", "o", terminal.OutputHelp)
	fs.Var(&r.Zone, "zone", zoneHelp)
	fs.BoolFunc("utc", "the same as --zone utc", func(string) error { r.Zone = "utc"; return nil })
	_ = group.RegisterFlagCompletionFunc("zone", cobra.FixedCompletions(zones, cobra.ShellCompDirectiveNoFileComp))
	_ = group.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(terminal.Outputs, cobra.ShellCompDirectiveNoFileComp))
	group.AddCommand(commands...)
	if len(commands) == 0 {
		commands = []*cobra.Command{group}
	}
	for _, cmd := range commands {
		do := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			r.Client = c
			return r.Explain(do(cmd, args))
		}
	}
	return group
}

// AppFlag adds -n to a group of commands.
func (r *Server) AppFlag(group *cobra.Command, usage string) {
	group.PersistentFlags().StringVarP(&r.App, "app", "n", "", usage)
	_ = group.RegisterFlagCompletionFunc("app", r.CompleteApps)
}

// found turns a 404 about an object into an error that names the object.
func found(err error, kind, name string) error {
	if api.IsNotFound(err) {
		return exit.NotFound("%s %s not found", kind, name)
	}
	return err
}
