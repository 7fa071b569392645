package timer

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
)

// NewTimer is the group of the commands of timers, one a file.
func New() *cobra.Command {
	r := &remote.Server{}
	group := r.Attach(
		&cobra.Command{
			Use:   "timer",
			Short: "Create, apply, list and change the timers of a server",
			Long: `timer creates and changes the timers of a running server. A timer is named by its
id, by APP/NAME, or by NAME with -n APP.

` + exit.Help,
			Example: `  xtimer timer create --app billing --name expire --delay 30m --url http://127.0.0.1:9000/expire
  xtimer timer apply -f timers/ --prune -l team=a
  xtimer timer list --app billing
  xtimer timer upcoming billing/report --n 5`,
		},
		newTimerCreate(r),
		newTimerApply(r),
		newTimerDiff(r),
		newTimerEdit(r),
		newTimerList(r),
		newTimerGet(r),
		newTimerEnable(r),
		newTimerDisable(r),
		newTimerRun(r),
		newTimerUpcoming(r),
		newTimerDelete(r),
	)
	r.AppFlag(group, "the `APP` of the timers")
	return group
}
