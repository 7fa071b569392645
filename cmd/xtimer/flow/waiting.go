package flow

import (
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newWaiting(r *remote.Server) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "waiting KEY",
		Short: "List the tasks that wait for a key, in the order in which they will be called",
		Long: `waiting lists the tasks that are due and wait for a key, in the order in which they
will be called. EXPECTED is an estimate of when a task is called, from the rate of the
key and the place in the list; it is empty if nobody knows.`,
		Example: `  xtimer flow waiting partner -n shop
  xtimer flow waiting partner -n shop --limit 0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			tasks, more, err := remote.Take(r.Waiting(cmd.Context(), r.App, args[0]), limit)
			if err != nil {
				return err
			}
			err = r.Output.Show(cmd.OutOrStdout(), waitingView(tasks, func(t time.Time) string { return r.Zone.Instant(t, "") }))
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	remote.AddLimit(cmd, &limit)
	return cmd
}

func waitingView(tasks []api.Task, instant func(time.Time) string) terminal.View {
	var keys []string
	for i := range tasks {
		keys = append(keys, tasks[i].Key)
	}
	return terminal.View{Value: api.TaskList{Tasks: tasks}, Names: keys, Table: func(out io.Writer, _ bool) error {
		g := terminal.Grid{Head: []string{"DUE", "TIMER", "HELD BY", "HELD", "EXPECTED", "KEY"}}
		for i := range tasks {
			t := &tasks[i]
			due := instant(t.Due)
			if t.Count > 1 {
				due += " ×" + strconv.FormatInt(t.Count, 10)
			}
			g.Add(due, t.App+"/"+t.Name, t.Reason, heldWords(t), instant(t.NextAttempt), t.Key)
		}
		return g.Print(out)
	}}
}

// heldWords is for how long a task was held, "" if it was not.
func heldWords(t *api.Task) string {
	if t.HeldMS == 0 {
		return ""
	}
	return span.Format(time.Duration(t.HeldMS * 1e6).Round(time.Millisecond))
}
