package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/terminal"
)

// Item is one object of a list, as a row and as a value.
type Item struct {
	Name    string // as -o name shows it; unique in the list
	Value   any
	Cells   []string
	Colours []string // of the cells; may be short
}

// Watching is the flags --watch and --interval.
type Watching struct {
	On       bool
	interval time.Duration
}

// Flags adds the flags.
func (w *Watching) Flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.On, "watch", "w", false, "keep running, and print each new or changed row until Ctrl-C")
	cmd.Flags().DurationVar(&w.interval, "interval", 2*time.Second, "with --watch: look for changes this often")
}

// Watch prints all items, and from then on each item that is new or has changed, until the
// context of the command ends. A server that goes away is waited for.
func (r *Server) Watch(cmd *cobra.Command, w Watching, head []string, read func(ctx context.Context) ([]Item, error)) error {
	if w.interval < 10*time.Millisecond {
		return exit.Usage("--interval: must be at least 10ms")
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	g := terminal.Grid{Head: head}
	shown := map[string]string{} // the value as it was shown, by name
	away := false
	for first := true; ; first = false {
		items, err := read(ctx)
		switch {
		case ctx.Err() != nil && (err == nil || !first):
			return nil // Ctrl-C ends a watch
		case err != nil && (first || exit.StatusOf(err) != exit.StatusUnavailable):
			return err
		case err != nil && !away:
			fmt.Fprintf(cmd.ErrOrStderr(), "xtimer: %v; waiting for the server\n", OneLine(r.Explain(err)))
		}
		if away = err != nil; !away {
			if err := r.showChanges(out, &g, shown, items, first); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.interval):
		}
	}
}

// showChanges prints the items that differ from what was shown.
func (r *Server) showChanges(out io.Writer, g *terminal.Grid, shown map[string]string, items []Item, first bool) error {
	for _, i := range items {
		var now bytes.Buffer
		if err := terminal.WriteJSON(&now, i.Value, ""); err != nil {
			return err
		}
		if shown[i.Name] == now.String() {
			continue
		}
		shown[i.Name] = now.String()
		var err error
		switch r.Output {
		case terminal.JSON:
			_, err = out.Write(now.Bytes())
		case terminal.YAML:
			if _, err = io.WriteString(out, "---\n"); err == nil {
				err = terminal.WriteYAML(out, i.Value)
			}
		case terminal.Name:
			_, err = fmt.Fprintln(out, terminal.Printable(i.Name))
		default:
			g.Paint(i.Colours, i.Cells...)
			first = true
		}
		if err != nil {
			return err
		}
	}
	if r.Output.IsTable() && first {
		return g.Print(out)
	}
	return nil
}
