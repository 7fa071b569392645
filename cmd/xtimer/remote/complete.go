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
	c, err := r.Dial(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionWithin)
	defer cancel()
	f := api.TimerFilter{}
	if r.App != "" {
		f.App, f.NamePrefix = r.App, begun
	} else if app, name, ok := strings.Cut(begun, "/"); ok {
		f.App, f.NamePrefix = app, name
	}
	page, err := c.TimerPage(ctx, f, completions, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []cobra.Completion
	for _, t := range page.Timers {
		if name := t.App + "/" + t.Name; r.App != "" {
			all = append(all, cobra.CompletionWithDesc(t.Name, ScheduleWords(&t.Schedule)+", "+t.Status))
		} else if strings.HasPrefix(name, begun) {
			all = append(all, cobra.CompletionWithDesc(name, ScheduleWords(&t.Schedule)+", "+t.Status))
		} else if strings.HasPrefix(t.ID, begun) {
			all = append(all, cobra.CompletionWithDesc(t.ID, name))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// CompleteTasks completes the keys of the newest tasks.
func (r *Server) CompleteTasks(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := r.Dial(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionWithin)
	defer cancel()
	page, err := c.TaskPage(ctx, api.TaskFilter{}, completions, "")
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

// CompleteApps completes apps.
func (r *Server) CompleteApps(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := r.Dial(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionWithin)
	defer cancel()
	page, err := c.Apps(ctx, "", 1000, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []cobra.Completion
	for i := range page.Apps {
		if app := page.Apps[i].App; strings.HasPrefix(app, begun) && len(all) < completions {
			all = append(all, app)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
