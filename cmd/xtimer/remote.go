package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "xtimer/httpapi/client"
)

// remote is the server that the commands of timers and tasks speak to, and the
// form in which they show what it answers.
type remote struct {
	server, token, output string
	*api.Client           // set before a command runs
}

// The exit statuses of the commands that speak to a server.
const (
	statusFailed   = 1 // the server said no, or could not be reached
	statusUsage    = 2 // the command line, or a file, is wrong: nothing was asked
	statusNotFound = 3
	statusPartly   = 4 // some of several were done, and some failed
)

const statusHelp = `Exit status: 0 done; 1 the server said no or cannot be reached; 2 the command
line or a file is wrong, and nothing was done; 3 there is no such thing; 4 some
of several were done and some failed.`

// statusError is an error with an exit status of its own.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

func usage(format string, args ...any) error {
	return statusError{statusUsage, fmt.Errorf(format, args...)}
}

// exitStatus is the exit status of a command that ended with err.
func exitStatus(err error) int {
	var s statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return s.status
	case api.IsNotFound(err):
		return statusNotFound
	}
	return statusFailed
}

// attach gives a group of commands the flags and the conventions that they have
// in common.
func (r *remote) attach(group *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	fs := group.PersistentFlags()
	fs.StringVar(&r.server, "server", orElse(os.Getenv("XTIMER_SERVER"), "http://127.0.0.1:8080"), "speak to the server at this `URL` (XTIMER_SERVER)")
	fs.StringVar(&r.token, "token", os.Getenv("XTIMER_TOKEN"), "its `TOKEN`; XTIMER_TOKEN shows it to nobody")
	fs.StringVarP(&r.output, "output", "o", "table", "show as table, json or yaml")
	fs.Lookup("server").DefValue, fs.Lookup("token").DefValue = "http://127.0.0.1:8080", "" // never a secret in the help
	_ = group.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))

	group.Args = cobra.NoArgs
	group.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, cmd := range append(commands, group) {
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return usage("%w", err)
			}
			return nil
		}
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
		if cmd != group {
			do := cmd.RunE
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if err := r.dial(); err != nil {
					return err
				}
				return explain(do(cmd, args))
			}
			group.AddCommand(cmd)
		}
	}
	return group
}

// dial takes the address as people write it.
func (r *remote) dial() error {
	switch r.output {
	case "table", "json", "yaml":
	default:
		return usage("--output: %q is none of table, json and yaml", r.output)
	}
	base := r.server
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	c, err := api.New(base, api.WithToken(r.token))
	if err != nil {
		return usage("--server: %w", err)
	}
	r.Client = c
	return nil
}

// explain names all fields that the server found fault with, not only the first.
func explain(err error) error {
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
	return timerRef{}, usage("%q is neither a timer's id nor APP/NAME", s)
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
