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
		Long: `tail shows each task when it ends, until Ctrl-C. If the connection breaks or the
server restarts, tail reports this, connects again, and continues with the tasks that
ended in the meantime. If the server cannot send all of them, tail reports how many
are missing. With -o json, each line is a task.`,
		Example: `  xtimer task tail --app billing
  xtimer task tail --status failed,dead -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			filter, err := f.filter(cmd, r)
			if err != nil {
				return err
			}
			// tail waits for a server that went away, but a server that never answered is an error.
			if err := r.Live(ctx); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if r.Output.IsTable() {
				fmt.Fprintf(out, tailRow, "DUE", "LATE", "STATUS", "CODE", "TIMER", "KEY")
			}
			for t, err := range r.Stream(ctx, filter) {
				var gap *api.Gap
				var broken *api.Break
				switch {
				case errors.As(err, &gap), errors.As(err, &broken):
					fmt.Fprintf(cmd.ErrOrStderr(), "xtimer: %v\n", err)
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
	case terminal.Name:
		_, err := fmt.Fprintln(out, t.Key)
		return err
	case terminal.JSON:
		return terminal.WriteJSON(out, t, "")
	case terminal.YAML:
		if _, err := io.WriteString(out, "---\n"); err != nil {
			return err
		}
		return terminal.WriteYAML(out, t)
	}
	status := terminal.NewPainter(out).Paint(remote.StatusColours[t.Status], terminal.Pad(terminal.Printable(statusWords(t)), 20))
	_, err := fmt.Fprintf(out, tailRow, r.Zone.Instant(t.Due, ""), lateWords(t), status, codeWords(t), terminal.Printable(t.App+"/"+t.Name), t.Key)
	return err
}
