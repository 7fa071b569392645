package task

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTaskGet(r *remote.Server) *cobra.Command {
	var watch remote.Watching
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Show one task, with its attempts",
		Example: `  xtimer task get 7354000000000000000_1763658000250
  xtimer task get 7354000000000000000_1763658000250 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wide := r.Output == terminal.Wide; watch.On {
				return r.Watch(cmd, watch, taskHead(wide), func(ctx context.Context) ([]remote.Item, error) {
					t, err := r.Task(ctx, args[0])
					if err != nil {
						return nil, r.TaskError(err, args[0])
					}
					return itemsOf([]api.Task{*t}, r.Zone, wide), nil
				})
			}
			t, err := r.Task(cmd.Context(), args[0])
			if err != nil {
				return r.TaskError(err, args[0])
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: t, Names: []string{t.Key}, Table: func(out io.Writer, _ bool) error {
				return sheetTask(out, t, r.Zone)
			}})
		},
	}
	watch.Flags(cmd)
	return cmd
}

// sheetTask shows all of one task.
func sheetTask(out io.Writer, t *api.Task, z remote.Zone) error {
	var s terminal.Sheet
	s.Add("task", "%s", t.Key)
	s.Add("timer", "%s/%s, %s", t.App, t.Name, t.TimerID)
	s.Add("status", "%s", statusWords(t))
	s.Add("due", "%s", z.Instant(t.Due, ""))
	s.Has("until", z.Instant(t.DueLast, ""))
	s.Has("late", lateWords(t))
	s.Has("held", holdWords(t.Holds))
	s.Add("origin", "%s", t.Origin)
	s.Has("next try", z.Instant(t.NextAttempt, ""))
	s.Has("ended", z.Instant(t.Ended, ""))
	if err := s.Print(out); err != nil || len(t.Attempts) == 0 {
		return err
	}
	g := terminal.Grid{Head: []string{"ATTEMPT", "STARTED", "TOOK", "CODE", "PHASES", "BATCH", "RESPONSE"}}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		g.Add(fmt.Sprint(a.N), z.Instant(a.Started, ""), fmt.Sprintf("%.1fms", a.TookMS), outcomeWords(a), phaseWords(a.PhasesUS), batchWords(a), a.Response)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return g.Print(out)
}

// batchWords say in which batch an attempt was, and of how many tasks; "" for none.
func batchWords(a *api.Attempt) string {
	if a.Batch == "" {
		return ""
	}
	return fmt.Sprintf("%s (%d)", a.Batch, a.BatchSize)
}

// holdWords say what held a task.
func holdWords(holds []api.Hold) string {
	var words []string
	for _, h := range holds {
		words = append(words, fmt.Sprintf("%s by %s %s", time.Duration(h.MS*1e6), h.By, h.Name))
	}
	return strings.Join(words, ", ")
}

// phaseWords say where an attempt spent its time, in the order in which it did.
func phaseWords(p *api.Phases) string {
	if p == nil {
		return ""
	}
	var words []string
	for _, x := range [...]struct {
		name string
		us   int64
	}{
		{"wheel", p.Wheel},
		{"hold", p.Hold},
		{"queue", p.Queue},
		{"dial", p.Dial},
		{"tls", p.TLS},
		{"send", p.Send},
		{"first byte", p.FirstByte},
		{"read", p.Read},
	} {
		if x.us > 0 {
			words = append(words, fmt.Sprint(x.name, " ", time.Duration(x.us)*time.Microsecond))
		}
	}
	return strings.Join(words, ", ")
}
