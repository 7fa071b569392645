package remote

import (
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/terminal"
)

// AddOutput adds the flag -o to a command.
func AddOutput(cmd *cobra.Command, output *terminal.Output) {
	*output = terminal.Table
	cmd.Flags().VarP(output, "output", "o", terminal.OutputHelp)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(terminal.Outputs, cobra.ShellCompDirectiveNoFileComp))
}

// AddLimit adds the flag --limit to a command.
func AddLimit(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "show at most this `NUMBER`; 0: all")
}

// Take reads up to limit items, 0 for all, and reports whether there are more.
func Take[T any](all iter.Seq2[T, error], limit int) (items []T, more bool, err error) {
	items = []T{} // shown as [], not as null
	for t, err := range all {
		if err != nil {
			return nil, false, err
		}
		if limit > 0 && len(items) == limit {
			return items, true, nil
		}
		items = append(items, t)
	}
	return items, false, nil
}

// TellMore says that a list was cut, not in the list itself.
func TellMore(cmd *cobra.Command, more bool, limit int, err error) error {
	if err == nil && more {
		fmt.Fprintf(cmd.ErrOrStderr(), "Only the first %d are shown; --limit 0 shows all.\n", limit)
	}
	return err
}
