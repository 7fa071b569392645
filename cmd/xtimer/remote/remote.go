package remote

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// remote is the server that the commands of timers and tasks speak to, and the
// form in which they show what it answers.
type remote struct {
	server, token, output string
	zone                  zone
	*api.Client           // set before a command runs
}

// attach gives a group of commands the flags and the conventions that they have
// in common.
func (r *remote) attach(group *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	fs := group.PersistentFlags()
	fs.StringVar(&r.server, "server", cmp.Or(os.Getenv("XTIMER_SERVER"), "http://127.0.0.1:8080"), "speak to the server at this `URL` (XTIMER_SERVER)")
	fs.StringVar(&r.token, "token", os.Getenv("XTIMER_TOKEN"), "its `TOKEN`; XTIMER_TOKEN shows it to nobody")
	fs.StringVarP(&r.output, "output", "o", "table", "show as table, json or yaml")
	fs.StringVar((*string)(&r.zone), "zone", "timer", zoneHelp)
	_ = group.RegisterFlagCompletionFunc("zone", cobra.FixedCompletions([]string{"timer", "local", "utc"}, cobra.ShellCompDirectiveNoFileComp))
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
func (r *remote) dial() error {
	switch r.output {
	case "table", "json", "yaml":
	default:
		return exit.Usage("--output: %q is none of table, json and yaml", r.output)
	}
	if err := r.zone.check(); err != nil {
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

// timerRef is how a command line names a timer: by its id, or as APP/NAME. An
// app has no slash, a name may.
type timerRef struct{ id, app, name string }

func parseTimerRef(s string) (timerRef, error) {
	if app, name, ok := strings.Cut(s, "/"); ok && app != "" && name != "" {
		return timerRef{app: app, name: name}, nil
	}
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return timerRef{id: s}, nil
	}
	return timerRef{}, exit.Usage("%q is neither a timer's id nor APP/NAME", s)
}

// timer finds the timer that s names.
func (r *remote) timer(ctx context.Context, s string) (*api.Timer, error) {
	ref, err := parseTimerRef(s)
	if err != nil {
		return nil, err
	}
	if ref.id != "" {
		return r.Get(ctx, ref.id)
	}
	return r.GetByName(ctx, ref.app, ref.name)
}

// timerID is the id of the timer that s names; an id is not looked up.
func (r *remote) timerID(ctx context.Context, s string) (string, error) {
	ref, err := parseTimerRef(s)
	if err != nil || ref.id != "" {
		return ref.id, err
	}
	t, err := r.GetByName(ctx, ref.app, ref.name)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

// completions bounds what a shell shows, and how long it waits for it.
const (
	completions      = 100
	completionWithin = 2 * time.Second
)

// completeTimers completes APP/NAME from the server.
func (r *remote) completeTimers(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionWithin)
	defer cancel()
	if r.dial() != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	f := api.TimerFilter{}
	if app, name, ok := strings.Cut(begun, "/"); ok {
		f.App, f.NamePrefix = app, name
	}
	page, err := r.TimerPage(ctx, f, completions, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []cobra.Completion
	for _, t := range page.Timers {
		if name := t.App + "/" + t.Name; strings.HasPrefix(name, begun) {
			all = append(all, cobra.CompletionWithDesc(name, scheduleWords(&t.Schedule)+", "+t.Status))
		} else if strings.HasPrefix(t.ID, begun) {
			all = append(all, cobra.CompletionWithDesc(t.ID, name))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeTasks completes the keys of the newest tasks.
func (r *remote) completeTasks(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionWithin)
	defer cancel()
	if r.dial() != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	page, err := r.TaskPage(ctx, api.TaskFilter{}, completions, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []cobra.Completion
	for _, t := range page.Tasks {
		if strings.HasPrefix(t.Key, begun) {
			all = append(all, cobra.CompletionWithDesc(t.Key, t.App+"/"+t.Name+" "+t.Status))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
