package flow

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newShow(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "show KEY",
		Short:   "Show the limit of a key, its pause, and what waits for it",
		Long:    "show shows the limit and the pause of a key or of a pattern, and what waits for a key. A limit\nthat a key has from a pattern is followed by the pattern.\n" + waitHelp,
		Example: `  xtimer flow show partner -n shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			f, err := r.Flow(cmd.Context(), r.App, args[0])
			if err := notPaused(err, "flow", r.App+"/"+args[0]); err != nil {
				return err
			}
			return r.Output.Show(cmd.OutOrStdout(), flowsView([]api.Flow{*f}, f, r))
		},
	}
}

func flowsView(all []api.Flow, value any, r *remote.Server) terminal.View {
	v := terminal.View{Value: value}
	g := terminal.Grid{Head: append([]string{"KEY"}, standsHead...)}
	for i := range all {
		v.Names = append(v.Names, all[i].Name)
		cells := append([]string{all[i].Name}, stands(&all[i].FlowLimit, &all[i].FlowState, r)...)
		if all[i].Pattern != "" {
			cells[1] += " (" + all[i].Pattern + ")"
		}
		g.Add(cells...)
	}
	v.Table = func(out io.Writer, _ bool) error { return g.Print(out) }
	return v
}

const waitHelp = "WAIT is about how long a task waits that becomes due now; it is empty if nobody knows."

var standsHead = []string{"LIMIT", "WAITING", "OLDEST", "WAIT", "IN FLIGHT", "STATE"}

// stands is how a flow key or a target stands, under standsHead.
func stands(l *api.FlowLimit, f *api.FlowState, r *remote.Server) []string {
	instant := func(t time.Time) string { return r.Zone.Instant(t, "") }
	wait := ""
	if f.WaitEstimate != nil {
		wait = span.Format(time.Duration(*f.WaitEstimate))
	}
	return []string{limitWords(l), fmt.Sprint(f.Waiting), instant(f.OldestAt), wait, fmt.Sprint(f.InFlight), stateWords(f, instant)}
}

func stateWords(f *api.FlowState, instant func(time.Time) string) string {
	switch {
	case f.Paused && f.PausedUntil.IsZero():
		return strings.TrimSuffix("paused: "+f.Reason, ": ")
	case f.Paused:
		return "paused until " + instant(f.PausedUntil)
	case f.Resuming != "":
		return "resuming: " + f.Resuming
	case !f.CooldownUntil.IsZero():
		return "closed until " + instant(f.CooldownUntil)
	case f.BreakerState != "" && f.BreakerState != "closed":
		return "breaker " + f.BreakerState
	}
	return ""
}

func newCooldown(r *remote.Server) *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use:     "cooldown KEY",
		Short:   "Hold the calls of a key until a time, as a response with Retry-After does",
		Example: `  xtimer flow cooldown partner --until 5m -n shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			at, err := coolUntil(until)
			if err != nil {
				return err
			}
			if _, err := r.CoolFlow(cmd.Context(), r.App, args[0], at); err != nil {
				return err
			}
			warnUnusedKey(r, cmd, args[0])
			return say(cmd, "%s/%s closed until %s\n", r.App, args[0], r.Zone.Instant(at, ""))
		},
	}
	coolFlag(cmd, &until)
	return cmd
}

func coolFlag(cmd *cobra.Command, until *string) {
	cmd.Flags().StringVar(until, "until", "", "hold until this `TIME`: RFC 3339, Unix ms, or a time from now such as 5m")
}

func coolUntil(until string) (time.Time, error) {
	at, err := remote.Ahead(until, time.Now())
	if err != nil || at.IsZero() {
		return at, exit.Usage("required: --until: RFC 3339, Unix ms, or a time from now such as 5m")
	}
	return at, nil
}
