package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine/flow"
	api "xtimer/httpapi/client"
)

// mostLookedAt is how many timers are looked at for a warning.
const mostLookedAt = 10_000

// warnUnused warns that no timer of an app ("": of any) uses what was just paused: often the name
// has a typo, and without the warning the calls would go on unnoticed. With too many timers to look at,
// there is no warning.
func warnUnused(r *remote.Server, cmd *cobra.Command, app string, uses func(*api.Timer) bool, format string, args ...any) {
	n := 0
	for t, err := range r.Timers(cmd.Context(), api.TimerFilter{App: app}) {
		if n++; err != nil || n > mostLookedAt || uses(&t) {
			return // the pause is in force all the same
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", terminal.Printable(fmt.Sprintf(format, args...)))
}

func warnUnusedKey(r *remote.Server, cmd *cobra.Command, key string) {
	prefix, pattern := strings.CutSuffix(key, "*")
	uses := func(t *api.Timer) bool {
		return slices.ContainsFunc(t.Flow, func(k string) bool { return k == key || pattern && strings.HasPrefix(k, prefix) })
	}
	warnUnused(r, cmd, r.App, uses, "no timer of %s has the flow key %s", r.App, key)
}

func warnUnusedTarget(r *remote.Server, cmd *cobra.Command, target string) {
	uses := func(t *api.Timer) bool { return flow.TargetOf(t.Callback.URL) == target }
	warnUnused(r, cmd, "", uses, "no timer calls %s", target)
}

func warnUnusedApp(r *remote.Server, cmd *cobra.Command, app string) {
	if app != api.EachApp {
		warnUnused(r, cmd, app, func(*api.Timer) bool { return true }, "app %s has no timers", app)
	}
}
