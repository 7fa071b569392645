package task

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
)

// New is the group of the commands of tasks, one a file.
func New() *cobra.Command {
	r := &remote.Server{}
	group := r.Attach(
		&cobra.Command{
			Use:   "task",
			Short: "Show tasks and their results; retry or dismiss failed tasks",
			Long: `A task is everything about one due of a timer: the call, its retries and its result.
A task is named by its key, TIMER-ID_DUE. A TIME is RFC 3339, Unix ms, or how long
ago: 1h, 7d.

` + exit.Help,
			Example: `  xtimer task list --app billing --status failed,dead --from 24h
  xtimer task get 7354000000000000000_1763658000250
  xtimer task retry --status dead --from 1h
  xtimer task tail --app billing`,
		},
		newTaskList(r),
		newTaskGet(r),
		newTaskRetry(r),
		newTaskDismiss(r),
		newTaskTail(r),
	)
	r.AppFlag(group, "only tasks of this `APP`")
	return group
}
