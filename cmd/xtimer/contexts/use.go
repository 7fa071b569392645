package contexts

import (
	"fmt"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
)

func newUse() *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Choose the current context",
		Example:           "  xtimer context use prod",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: remote.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(func(all *remote.Contexts) error {
				c, err := all.Find(args[0])
				if err != nil {
					return err
				}
				all.Current = c.Name
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", c.Name, c.Server)
				return err
			})
		},
	}
}

func newDelete() *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a context from the file; the server and its timers do not change",
		Example:           "  xtimer context delete prod",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: remote.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return change(func(all *remote.Contexts) error {
				c, err := all.Find(args[0])
				if err != nil {
					return err
				}
				if all.Current == c.Name {
					all.Current = ""
				}
				all.Delete(args[0])
				return nil
			})
		},
	}
}
