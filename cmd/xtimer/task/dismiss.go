package task

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
)

func newTaskDismiss(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "dismiss KEY …",
		Short: "Dismiss failures that need no more work",
		Long: `dismiss marks failed, dead, missed and unknown tasks as handled. A dismissed task
stays in history with its status, but is not in the list of dead letters of the
console, and "task retry" with filters does not select it. A retry by its key ends
the dismissal.`,
		Example: `  xtimer task dismiss 7354000000000000000_1763658000250
  xtimer task list --status dead --dismissed=false`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: r.CompleteTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			return each(cmd, r, args, "dismissed", "task %s not found", func(key string) error {
				_, err := r.Dismiss(cmd.Context(), key)
				return err
			})
		},
	}
}
