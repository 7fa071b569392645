package flow

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newAppQuota(r *remote.Server) *cobra.Command {
	var l api.QuotaLimits
	var none bool
	cmd := &cobra.Command{
		Use:   "quota APP",
		Short: "Show, set or delete the quota of an app",
		Long: `quota shows what an app may do, and what it uses of that now. With flags, quota
replaces the whole quota: what has no flag is not limited. The new quota is in force at
once. To set or delete a quota requires an admin token for all apps.

A create beyond --timers or --bytes is refused with 429 until timers of the app are deleted
or have ended. A create beyond --creates-per-second is refused with 429 and can be repeated
a second later. Calls beyond --fires-per-second and --in-flight are held, and made later.`,
		Example: `  xtimer app quota shop
  xtimer app quota shop --creates-per-second 100 --fires-per-second 500 --in-flight 50
  xtimer app quota shop --timers 100000 --bytes 200000000
  xtimer app quota shop --none`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			app := args[0]
			switch set := l != (api.QuotaLimits{}); {
			case none && set:
				return exit.Usage("give either --none or limits")
			case none:
				if err := noQuota(r.DeleteQuota(cmd.Context(), app), app); err != nil {
					return err
				}
				return say(cmd, "the quota of %s deleted\n", app)
			case set:
				result, err := r.PutQuota(cmd.Context(), app, l)
				if err != nil {
					return err
				}
				return say(cmd, "the quota of %s %s\n", app, result)
			}
			q, err := r.Quota(cmd.Context(), app)
			if err := noQuota(err, app); err != nil {
				return err
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: q, Table: func(out io.Writer, _ bool) error { return sheetQuota(out, q) }})
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&l.Timers, "timers", 0, "the largest `NUMBER` of timers")
	fs.IntVar(&l.Bytes, "bytes", 0, "the largest `NUMBER` of bytes of the timers' bodies, headers and labels")
	fs.IntVar(&l.CreatesPerSecond, "creates-per-second", 0, "the largest `NUMBER` of timers created in any second")
	fs.IntVar(&l.FiresPerSecond, "fires-per-second", 0, "the largest `NUMBER` of calls begun in any second")
	fs.IntVar(&l.InFlight, "in-flight", 0, "the largest `NUMBER` of calls in flight")
	fs.BoolVar(&none, "none", false, "delete the quota")
	return cmd
}

func noQuota(err error, app string) error {
	if api.IsNotFound(err) {
		return exit.NotFound("app %s has no quota", app)
	}
	return err
}

func sheetQuota(out io.Writer, q *api.Quota) error {
	var sheet terminal.Sheet
	sheet.Add("app", "%s", q.App)
	sheet.Add("timers", "%s", stock(q.Use.Timers, q.Timers, q))
	sheet.Add("bytes", "%s", stock(q.Use.Bytes, q.Bytes, q))
	sheet.Add("creates per second", "%s", most(q.CreatesPerSecond))
	sheet.Add("fires per second", "%s", most(q.FiresPerSecond))
	sheet.Add("in flight", "%d of %s", q.Use.InFlight, most(q.InFlight))
	sheet.Add("held by the quota", "%d", q.Use.Held)
	return sheet.Print(out)
}

// stock is what an app has, and what its quota allows of that.
func stock(has, limit int, q *api.Quota) string {
	if q.Timers == 0 && q.Bytes == 0 {
		return "no limit" // and not counted
	}
	return fmt.Sprintf("%d of %s", has, most(limit))
}

// most is a limit in words.
func most(n int) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}
