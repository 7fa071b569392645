package remote

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "xtimer/httpapi/client"
)

// completions bounds what a shell shows, and how long it waits for it.
const (
	completions      = 100
	completionWithin = 2 * time.Second
)

// CompleteTimers completes APP/NAME from the server.
func (r *Server) CompleteTimers(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
			all = append(all, cobra.CompletionWithDesc(name, ScheduleWords(&t.Schedule)+", "+t.Status))
		} else if strings.HasPrefix(t.ID, begun) {
			all = append(all, cobra.CompletionWithDesc(t.ID, name))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// CompleteTasks completes the keys of the newest tasks.
func (r *Server) CompleteTasks(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
