package flow

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// NewApp is the group of the commands that hold or limit a whole app, or all apps.
func NewApp() *cobra.Command {
	r := &remote.Server{}
	return r.Attach(&cobra.Command{
		Use:   "app",
		Short: "Hold all calls of an app or of all apps, call what was held, and set quotas",
		Long:  "app pauses and resumes whole apps, shows their pauses, and limits what an app may do.\n\n" + exit.Help,
		Example: `  xtimer app pause shop
  xtimer app show shop
  xtimer app resume shop
  xtimer app quota shop --creates-per-second 100 --in-flight 50`,
	}, newAppPause(r), newAppResume(r), newAppShow(r), newAppQuota(r))
}

func newAppPause(r *remote.Server) *cobra.Command {
	var p pausing
	var all bool
	cmd := &cobra.Command{
		Use:   "pause APP | --all",
		Short: "Hold all calls of an app, or of all apps",
		Long: `pause holds all calls of an app until resume, or until the time of --until. Dues are
kept, and called late. To drop the dues of a time, disable the timers instead. It prints
a warning if the app has no timers.

--all, or the APP '*', holds the calls of all apps, and requires an admin token for all
apps. The end of that pause does not end the pauses of single apps.`,
		Example: `  xtimer app pause shop --until 2h --reason "the partner is down"
  xtimer app pause --all --reason "the network is being repaired"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			app, err := oneApp(args, all)
			if err != nil {
				return err
			}
			how, err := p.pause()
			if err != nil {
				return err
			}
			if err := r.PauseApp(cmd.Context(), app, how); err != nil {
				return err
			}
			warnUnusedApp(r, cmd, app)
			return say(cmd, "%s paused\n", appWords(app))
		},
	}
	p.flags(cmd)
	allFlag(cmd, &all)
	return cmd
}

func newAppResume(r *remote.Server) *cobra.Command {
	var all bool
	var held resuming
	cmd := &cobra.Command{
		Use:   "resume APP | --all",
		Short: "End the pause of an app, or of all apps: what was held is called",
		Long:  "resume ends the pause of an app, or of all apps.\n\n" + resumeHelp,
		Example: `  xtimer app resume shop
  xtimer app resume shop --backlog latest
  xtimer app resume --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			app, err := oneApp(args, all)
			if err != nil {
				return err
			}
			if err := notPaused(r.ResumeApp(cmd.Context(), app, held.resume()), "app", app); err != nil {
				return err
			}
			return say(cmd, "%s resumed\n", appWords(app))
		},
	}
	held.flags(cmd)
	allFlag(cmd, &all)
	return cmd
}

func newAppShow(r *remote.Server) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "show APP | --all",
		Short: "Show whether an app is paused: since when, until when, by whom and why",
		Example: `  xtimer app show shop
  xtimer app show --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			app, err := oneApp(args, all)
			if err != nil {
				return err
			}
			p, err := r.AppPause(cmd.Context(), app)
			if err != nil {
				return err
			}
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: p, Table: func(out io.Writer, _ bool) error {
				return sheetPause(out, p, func(t time.Time) string { return r.Zone.Instant(t, "") })
			}})
		},
	}
	allFlag(cmd, &all)
	return cmd
}

func sheetPause(out io.Writer, p *api.AppPause, instant func(time.Time) string) error {
	var sheet terminal.Sheet
	sheet.Add("app", "%s", appWords(p.App))
	word := "not paused"
	if p.Paused {
		word = remote.PauseWords(&api.PauseState{Since: p.PausedSince, Until: p.PausedUntil, Reason: p.Reason, By: p.PausedBy}, instant)
	}
	if p.Resuming != "" {
		word += ", resuming: " + p.Resuming
	}
	sheet.Add("state", "%s", word)
	if p.All != nil {
		sheet.Add("all apps", "%s", remote.PauseWords(p.All, instant))
	}
	return sheet.Print(out)
}

func allFlag(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, "all", false, "all apps together")
}

// oneApp is the app that arguments name, or EachApp.
func oneApp(args []string, all bool) (string, error) {
	switch {
	case all && len(args) == 0:
		return api.EachApp, nil
	case !all && len(args) == 1:
		return args[0], nil
	}
	return "", exit.Usage("required: either APP or --all")
}

func appWords(app string) string {
	if app == api.EachApp {
		return "all apps"
	}
	return app
}
