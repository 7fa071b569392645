package remote

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// remote is the server that the commands of timers and tasks speak to, and the
// form in which they show what it answers.
type Server struct {
	server, token string
	Output        string
	Zone          Zone
	*api.Client   // set before a command runs
}

// Attach gives a group of commands the flags and the conventions that they have
// in common.
func (r *Server) Attach(group *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	fs := group.PersistentFlags()
	fs.StringVar(&r.server, "server", cmp.Or(os.Getenv("XTIMER_SERVER"), "http://127.0.0.1:8080"), "speak to the server at this `URL` (XTIMER_SERVER)")
	fs.StringVar(&r.token, "token", os.Getenv("XTIMER_TOKEN"), "its `TOKEN`; XTIMER_TOKEN shows it to nobody")
	fs.StringVarP(&r.Output, "output", "o", "table", "show as table, json or yaml")
	fs.StringVar((*string)(&r.Zone), "zone", "local", zoneHelp)
	fs.BoolFunc("utc", "the same as --zone utc", func(string) error { r.Zone = "utc"; return nil })
	_ = group.RegisterFlagCompletionFunc("zone", cobra.FixedCompletions([]string{"local", "utc", "timer"}, cobra.ShellCompDirectiveNoFileComp))
	fs.Lookup("server").DefValue, fs.Lookup("token").DefValue = "http://127.0.0.1:8080", "" // never a secret in the help
	_ = group.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))

	group.Args = cobra.NoArgs
	group.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, cmd := range append(commands, group) {
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return exit.Usage("%w", err)
			}
			return nil
		}
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.Usage("%w", err) })
		if cmd != group {
			do := cmd.RunE
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if err := r.dial(); err != nil {
					return err
				}
				return Explain(do(cmd, args))
			}
			group.AddCommand(cmd)
		}
	}
	return group
}

// dial brings the client about.
func (r *Server) dial() error {
	switch r.Output {
	case "table", "json", "yaml":
	default:
		return exit.Usage("--output: %q is none of table, json and yaml", r.Output)
	}
	if err := r.Zone.check(); err != nil {
		return err
	}
	c, err := Dial(r.server, r.token)
	if err != nil {
		return err
	}
	r.Client = c
	return nil
}

// Dial takes the address as people write it.
func Dial(server, token string) (*api.Client, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	c, err := api.New(server, api.WithToken(token))
	if err != nil {
		return nil, exit.Usage("--server: %w", err)
	}
	return c, nil
}

// Explain names all fields that the server found fault with, not only the first.
func Explain(err error) error {
	var e *api.Error
	if !errors.As(err, &e) || len(e.Fields) < 2 {
		return err
	}
	var s []string
	for _, f := range e.Fields {
		s = append(s, f.Field+": "+f.Detail)
	}
	e.Detail = strings.Join(s, "; ")
	return err
}
