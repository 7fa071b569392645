package remote

import (
	"fmt"
	"iter"

	"github.com/spf13/cobra"
)

func AddLimit(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "show this many; 0: all")
}

// Take reads up to limit items, 0 for all, and tells whether there are more.
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
		fmt.Fprintf(cmd.ErrOrStderr(), "These are the first %d; --limit 0 shows all.\n", limit)
	}
	return err
}
