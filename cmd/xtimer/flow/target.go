package flow

import (
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// NewTarget is the group of the commands of targets.
func NewTarget() *cobra.Command {
	r := &remote.Server{}
	return r.Attach(&cobra.Command{
		Use:   "target",
		Short: "Limit, pause and list targets, for the calls of all apps",
		Long: `target limits how fast xtimer calls one target, whichever apps the calls are of. A
target is the scheme, the host and the port of the URLs that are called: URL is
https://HOST or http://HOST:PORT, and a path in it does not count. A call waits until
the limit of its target and those of its flow keys allow it. xtimer does not drop a
call that waits.

These commands require an admin token for all apps.

` + exit.Help,
		Example: `  xtimer target set https://partner.example.com --rate 10
  xtimer target pause https://partner.example.com --until 30m --reason maintenance
  xtimer target list`,
	}, newTargetSet(r), newTargetList(r), newTargetShow(r), newTargetPause(r), newTargetResume(r), newTargetCooldown(r), newTargetDelete(r))
}

func newTargetSet(r *remote.Server) *cobra.Command {
	var l limiting
	cmd := &cobra.Command{
		Use:   "set URL",
		Short: "Set the limit of a target",
		Long: `set creates or replaces the limit of a target. The new limit is in force at once, for
tasks that wait as well. A pause of the target stays.`,
		Example: `  xtimer target set https://partner.example.com --rate 10
  xtimer target set http://10.0.0.7:8080 --concurrency 4 --cooldown`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := r.PutTarget(cmd.Context(), args[0], l.limit())
			if err != nil {
				return err
			}
			return say(cmd, "%s %s\n", args[0], result)
		},
	}
	l.flags(cmd)
	return cmd
}

func newTargetList(r *remote.Server) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the targets that have a limit or a pause, with what waits for them",
		Example: `  xtimer target list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, more, err := remote.Take(r.Targets(cmd.Context()), limit)
			if err != nil {
				return err
			}
			err = r.Output.Show(cmd.OutOrStdout(), targetsView(all, map[string]any{"targets": all}, r))
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	remote.AddLimit(cmd, &limit)
	return cmd
}

func newTargetShow(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "show URL",
		Short:   "Show the limit of a target, its pause, and what waits for it",
		Long:    "show shows the limit and the pause of a target, and what waits for it.\n" + waitHelp,
		Example: `  xtimer target show https://partner.example.com`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := r.Target(cmd.Context(), args[0])
			if err := notPaused(err, "target", args[0]); err != nil {
				return err
			}
			return r.Output.Show(cmd.OutOrStdout(), targetsView([]api.Target{*t}, t, r))
		},
	}
}

func targetsView(all []api.Target, value any, r *remote.Server) terminal.View {
	v := terminal.View{Value: value}
	g := terminal.Grid{Head: append([]string{"TARGET"}, standsHead...)}
	for i := range all {
		v.Names = append(v.Names, all[i].Target)
		g.Add(append([]string{all[i].Target}, stands(&all[i].FlowLimit, &all[i].FlowState, r)...)...)
	}
	v.Table = func(out io.Writer, _ bool) error { return g.Print(out) }
	return v
}

func newTargetPause(r *remote.Server) *cobra.Command {
	var p pausing
	cmd := &cobra.Command{
		Use:   "pause URL",
		Short: "Hold the calls of all apps to a target",
		Long: `pause holds the calls of all apps to a target, until resume, or until the time of --until.
It prints a warning if no timer calls the target.`,
		Example: `  xtimer target pause https://partner.example.com --until 30m --reason maintenance`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := p.pause()
			if err != nil {
				return err
			}
			t, err := r.PauseTarget(cmd.Context(), args[0], how)
			if err != nil {
				return err
			}
			warnUnusedTarget(r, cmd, t.Target)
			return say(cmd, "%s paused\n", args[0])
		},
	}
	p.flags(cmd)
	return cmd
}

func newTargetResume(r *remote.Server) *cobra.Command {
	var held resuming
	cmd := &cobra.Command{
		Use:   "resume URL",
		Short: "End the pause and the cooldown of a target: what was held is called",
		Long:  "resume ends the pause and the cooldown of a target.\n\n" + resumeHelp,
		Example: `  xtimer target resume https://partner.example.com
  xtimer target resume https://partner.example.com --backlog latest`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := r.ResumeTarget(cmd.Context(), args[0], held.resume())
			if err := notPaused(err, "target", args[0]); err != nil {
				return err
			}
			return say(cmd, "%s resumed\n", args[0])
		},
	}
	held.flags(cmd)
	return cmd
}

func newTargetCooldown(r *remote.Server) *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use:     "cooldown URL",
		Short:   "Hold the calls to a target until a time, as a response with Retry-After does",
		Example: `  xtimer target cooldown https://partner.example.com --until 5m`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := coolUntil(until)
			if err != nil {
				return err
			}
			t, err := r.CoolTarget(cmd.Context(), args[0], at)
			if err != nil {
				return err
			}
			warnUnusedTarget(r, cmd, t.Target)
			return say(cmd, "%s closed until %s\n", args[0], r.Zone.Instant(at, ""))
		},
	}
	coolFlag(cmd, &until)
	return cmd
}

func newTargetDelete(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "delete URL …",
		Short:   "Delete the limits and the pauses of targets",
		Long:    `delete deletes the limits and the pauses of targets. What they held is called.`,
		Example: `  xtimer target delete https://partner.example.com`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, url := range args {
				if err := notPaused(r.DeleteTarget(cmd.Context(), url), "target", url); err != nil {
					return err
				}
				if err := say(cmd, "%s deleted\n", url); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
