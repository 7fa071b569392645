package task

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// taskFlags select tasks.
type taskFlags struct {
	api.TaskFilter
	timer, from, to string
	dismissed       bool
}

func (f *taskFlags) flags(cmd *cobra.Command, r *remote.Server) {
	fs := cmd.Flags()
	fs.StringVar(&f.timer, "timer", "", "only tasks of this timer: `ID|APP/NAME`")
	fs.StringSliceVar(&f.Statuses, "status", nil, "only tasks with one of these `STATUSES`, such as failed,dead")
	fs.StringVar(&f.Origin, "origin", "", "only tasks with this `ORIGIN`: schedule, manual (timer run), redrive (task retry) or catch_up (timer enable)")
	fs.StringVar(&f.Code, "code", "", "only tasks whose last attempt ended with this `CODE`: 503, 5xx, or an error class such as timeout")
	fs.StringVar(&f.Search, "search", "", "only tasks with this `TEXT` in the name of the timer or in the error")
	fs.BoolVar(&f.dismissed, "dismissed", false, "only dismissed tasks; --dismissed=false: only tasks that are not dismissed")
	fs.StringVar(&f.from, "from", "", "only tasks due at this `TIME` or later: RFC 3339, Unix ms, or how long ago, such as 24h")
	fs.StringVar(&f.to, "to", "", "only tasks due before this `TIME`")
	_ = cmd.RegisterFlagCompletionFunc("timer", r.CompleteTimers)
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{
		api.Waiting, api.Running, api.Retrying, api.Succeeded, api.Failed, api.Dead, api.Skipped, api.Missed, api.Cancelled, api.Unknown,
	}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("origin", cobra.FixedCompletions([]string{"schedule", "manual", "redrive", "catch_up"}, cobra.ShellCompDirectiveNoFileComp))
}

// filter is what the flags say.
func (f *taskFlags) filter(cmd *cobra.Command, r *remote.Server) (api.TaskFilter, error) {
	now := time.Now()
	f.App = r.App
	if cmd.Flags().Changed("dismissed") {
		f.Dismissed = &f.dismissed
	}
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"from", f.from, &f.From}, {"to", f.to, &f.To}} {
		if t.text == "" {
			continue
		}
		ms, err := span.Moment(t.text, now)
		if err != nil {
			return f.TaskFilter, exit.Usage("--%s: %w", t.flag, err)
		}
		*t.to = time.UnixMilli(ms)
	}
	if f.timer != "" {
		var err error
		if f.TimerID, err = r.TimerID(cmd.Context(), f.timer); err != nil {
			return f.TaskFilter, err
		}
	}
	return f.TaskFilter, nil
}

func newTaskList(r *remote.Server) *cobra.Command {
	var f taskFlags
	var limit int
	var watch remote.Watching
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, newest first",
		Example: `  xtimer task list --app billing --status failed,dead --from 24h
  xtimer task list --timer billing/report --limit 0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(cmd, r)
			if err != nil {
				return err
			}
			if wide := r.Output == terminal.Wide; watch.On {
				return r.Watch(cmd, watch, taskHead(wide), func(ctx context.Context) ([]remote.Item, error) {
					tasks, _, err := remote.Take(r.Tasks(ctx, filter), limit)
					slices.Reverse(tasks) // the newest last, as they come
					return itemsOf(tasks, r.Zone, wide), err
				})
			}
			tasks, more, err := remote.Take(r.Tasks(cmd.Context(), filter), limit)
			if err != nil {
				return err
			}
			err = r.Output.Show(cmd.OutOrStdout(), viewTasks(tasks, r.Zone))
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	f.flags(cmd, r)
	remote.AddLimit(cmd, &limit)
	watch.Flags(cmd)
	return cmd
}

// viewTasks shows tasks in each form.
func viewTasks(tasks []api.Task, z remote.Zone) terminal.View {
	var keys []string
	for i := range tasks {
		keys = append(keys, tasks[i].Key)
	}
	return terminal.View{Value: api.TaskList{Tasks: tasks}, Names: keys, Table: func(out io.Writer, wide bool) error {
		return tableTasks(out, tasks, z, wide)
	}}
}

// tableTasks lists tasks.
func tableTasks(out io.Writer, tasks []api.Task, z remote.Zone, wide bool) error {
	g := terminal.Grid{Head: taskHead(wide)}
	for _, i := range itemsOf(tasks, z, wide) {
		g.Paint(i.Colours, i.Cells...)
	}
	return g.Print(out)
}

func taskHead(wide bool) []string {
	head := []string{"DUE", "LATE", "STATUS", "CODE", "ATTEMPTS", "TIMER", "KEY"}
	if wide {
		head = append(head, "ORIGIN", "ENDED", "HELD", "NEXT TRY", "RESPONSE")
	}
	return head
}

// itemsOf are the rows of a list of tasks.
func itemsOf(tasks []api.Task, z remote.Zone, wide bool) (items []remote.Item) {
	for i := range tasks {
		t := &tasks[i]
		cells := []string{z.Instant(t.Due, ""), lateWords(t), statusWords(t), codeWords(t), strconv.Itoa(t.AttemptCount), t.App + "/" + t.Name, t.Key}
		if wide {
			answer := ""
			if n := len(t.Attempts); n > 0 {
				answer = t.Attempts[n-1].Response
			}
			cells = append(cells, t.Origin, z.Instant(t.Ended, ""), heldWords(t), z.Instant(t.NextAttempt, ""), answer)
		}
		colours := []string{terminal.Plain, terminal.Plain, remote.StatusColours[t.Status]}
		items = append(items, remote.Item{Name: t.Key, Value: t, Cells: cells, Colours: colours})
	}
	return items
}

// lateWords is how late a task was called, in ms; "" when it was not.
func lateWords(t *api.Task) string {
	if t.LatenessMS == nil {
		return ""
	}
	return strconv.FormatFloat(*t.LatenessMS, 'f', 2, 64) + "ms"
}

// heldWords is for how long a task was held, "" if it was not.
func heldWords(t *api.Task) string {
	if t.HeldMS == 0 {
		return ""
	}
	return span.Format(time.Duration(t.HeldMS * 1e6).Round(time.Millisecond))
}

// statusWords is the status and why; of a record of many dues, of how many.
func statusWords(t *api.Task) string {
	s := t.Status
	if t.Reason != "" {
		s += " (" + t.Reason + ")"
	}
	if t.Count > 1 {
		s += fmt.Sprintf(" ×%d", t.Count)
	}
	return s
}

// codeWords is how the last attempt ended.
func codeWords(t *api.Task) string {
	if len(t.Attempts) == 0 {
		return ""
	}
	return outcomeWords(&t.Attempts[len(t.Attempts)-1])
}

func outcomeWords(a *api.Attempt) string {
	if a.Code == 0 {
		return strings.TrimSpace(a.ErrorClass + " " + a.Secret)
	}
	return strconv.Itoa(a.Code)
}
