package remote

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// Done is the result of one of several operations.
type Done struct {
	Timer  string `json:"timer,omitempty"`
	Task   string `json:"task,omitempty"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Tell prints the result of each operation; first is the first error. The error of a
// single operation is the error of the command.
func (r *Server) Tell(cmd *cobra.Command, all []Done, first error) error {
	if len(all) == 1 && first != nil {
		return first
	}
	var names []string
	for _, d := range all {
		if d.Error == "" {
			names = append(names, d.Timer+d.Task)
		}
	}
	err := r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: map[string]any{"results": all}, Names: names, Table: func(out io.Writer, _ bool) error {
		g := terminal.Grid{Head: []string{"NAME", "RESULT"}}
		for _, d := range all {
			if d.Error != "" {
				g.Paint([]string{terminal.Plain, terminal.Red}, d.Timer+d.Task, d.Error)
			} else {
				g.Paint([]string{terminal.Plain, StatusColours[d.Result]}, d.Timer+d.Task, d.Result)
			}
		}
		return g.Print(out)
	}})
	if err != nil {
		return err
	}
	return exit.Partly(len(all), Failures(all), first)
}

func Failures(all []Done) (n int) {
	for _, d := range all {
		if d.Error != "" {
			n++
		}
	}
	return n
}

// Follow waits for the end of a bulk operation and prints its result.
func (r *Server) Follow(cmd *cobra.Command, op *api.Operation, err error) error {
	if err != nil {
		return err
	}
	p := terminal.NewProgress(cmd.ErrOrStderr(), op.Count)
	op, err = r.Wait(cmd.Context(), op, func(op *api.Operation) { p.At(op.Done) })
	p.End()
	if err != nil {
		return err
	}
	err = r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: op, Table: func(out io.Writer, _ bool) error {
		word := map[string]string{"enable": "enabled", "disable": "disabled", "delete": "deleted", "retry": "retried", "clock_reset": "reset to the current clock"}[op.Action]
		if op.DryRun {
			_, err := fmt.Fprintf(out, "%d would be %s.\n", op.Count, word)
			return err
		}
		_, err := fmt.Fprintf(out, "%d %s.\n", op.Done-op.Failed, word)
		return err
	}})
	if err == nil && op.Error != "" {
		failed := int(op.Count - op.Done + op.Failed)
		err = exit.Partly(int(op.Count), failed, errors.New(op.Error))
		if err != nil {
			err = fmt.Errorf("%w: %s", err, op.Error)
		}
	}
	return err
}
