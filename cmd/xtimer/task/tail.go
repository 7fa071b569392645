package task

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTaskTail(r *remote.Server) *cobra.Command {
	var f taskFlags
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show tasks as they end",
		Long: `tail shows each task the moment it ends, until Ctrl-C. It outlives a restart of
the server, and says so; what ended meanwhile is in the list. As json, each line
is a task.`,
		Example: `  xtimer task tail --app billing
  xtimer task tail --status failed,dead -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			filter, err := f.filter(ctx, r)
			if err != nil {
				return err
			}
			// What was there once it waits for; what never was is a mistake.
			if err := r.Live(ctx); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if r.Output == "table" {
				fmt.Fprintf(out, tailRow, "DUE", "LATE", "STATUS", "CODE", "TIMER", "KEY")
			}
			for t, err := range r.Stream(ctx, filter) {
				var gap *api.Gap
				switch {
				case errors.As(err, &gap):
					fmt.Fprintf(cmd.ErrOrStderr(), "xtimer: %v\n", gap)
					continue
				case ctx.Err() != nil:
					return nil // Ctrl-C is how it ends
				case err != nil:
					return err
				}
				if err := tailTask(r, out, &t); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.flags(cmd, r)
	return cmd
}

const tailRow = "%-29s  %10s  %-20s  %-8s  %s  %s\n"

// tailTask writes one task at once: a line, or a document of YAML.
func tailTask(r *remote.Server, out io.Writer, t *api.Task) error {
	switch r.Output {
	case "json":
		return terminal.WriteJSON(out, t, "")
	case "yaml":
		if _, err := io.WriteString(out, "---\n"); err != nil {
			return err
		}
		return terminal.WriteYAML(out, t)
	}
	status := terminal.NewPainter(out).Paint(remote.StatusColours[t.Status], terminal.Pad(terminal.Printable(statusWords(t)), 20))
	_, err := fmt.Fprintf(out, tailRow, r.Zone.Instant(t.Due, ""), lateWords(t), status, codeWords(t), terminal.Printable(t.App+"/"+t.Name), t.Key)
	return err
}
