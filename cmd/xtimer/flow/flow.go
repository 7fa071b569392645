// Package flow is the commands of flow keys and of pauses.
package flow

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	api "xtimer/httpapi/client"
)

// New is the group of the commands of flow keys.
func New() *cobra.Command {
	r := &remote.Server{}
	group := r.Attach(
		&cobra.Command{
			Use:   "flow",
			Short: "Limit, pause and list the flow keys of an app",
			Long: `flow limits how fast xtimer calls. A timer names up to 4 keys (--flow), and each
call waits until the limit of each key allows the call. A call that waits is held:
xtimer does not drop it, and counts the wait apart from its own lateness.

A key that ends in * is a pattern: each key that matches has a limit of its own.
The longest match counts. A key without a limit limits nothing.

` + exit.Help,
			Example: `  xtimer flow set partner --rate 10 -n shop
  xtimer timer create -n shop --name pay --delay 1h --url https://pay.example.com/ --flow partner
  xtimer flow list -n shop`,
		},
		newSet(r), newList(r), newShow(r), newWaiting(r), newPause(r), newResume(r), newCooldown(r), newDelete(r),
	)
	r.AppFlag(group, "the `APP` of the keys")
	return group
}

func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format, args...)
	return err
}

func needApp(r *remote.Server) error {
	if r.App == "" {
		return exit.Usage("required: --app")
	}
	return nil
}

func notPaused(err error, what, name string) error {
	if api.IsNotFound(err) {
		return exit.NotFound("%s %s was never paused or limited", what, name)
	}
	return err
}

// resuming is the flag of a resume.
type resuming struct{ backlog string }

const resumeHelp = `--backlog says which dues are called of those that were held and wait for their
first attempt: call (all of them), latest (of each timer the last) or skip (none).
One-shots are left out only by skip. The others are recorded as skipped, reason paused.`

func (h *resuming) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.backlog, "backlog", api.BacklogCall, "`WHICH` of the held dues are called: call, latest or skip")
	_ = cmd.RegisterFlagCompletionFunc("backlog", cobra.FixedCompletions([]string{api.BacklogCall, api.BacklogLatest, api.BacklogSkip}, cobra.ShellCompDirectiveNoFileComp))
}

func (h *resuming) resume() api.Resume { return api.Resume{Backlog: h.backlog} }

// pausing is the flags of a pause.
type pausing struct{ until, reason string }

func (p *pausing) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.until, "until", "", "end by itself at this `TIME`: RFC 3339, Unix ms, or a time from now such as 2h")
	cmd.Flags().StringVar(&p.reason, "reason", "", "why, for readers")
}

func (p *pausing) pause() (api.Pause, error) {
	until, err := remote.Ahead(p.until, time.Now())
	if err != nil {
		return api.Pause{}, exit.Usage("--until: %w", err)
	}
	return api.Pause{Until: until, Reason: p.reason}, nil
}

func newSet(r *remote.Server) *cobra.Command {
	var l limiting
	cmd := &cobra.Command{
		Use:   "set KEY",
		Short: "Set the limit of a key, or of all keys that a pattern matches",
		Long: `set creates or replaces the limit of a key. The new limit is in force at once, for
tasks that wait as well. A pause of the key stays.`,
		Example: `  xtimer flow set partner --rate 10 -n shop
  xtimer flow set "user-*" --rate 1 --per 1m --concurrency 2 -n shop
  xtimer flow set export --concurrency 1 --hold task -n shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			result, err := r.PutFlow(cmd.Context(), r.App, args[0], l.limit())
			if err != nil {
				return err
			}
			return say(cmd, "%s/%s %s\n", r.App, args[0], result)
		},
	}
	l.flags(cmd)
	return cmd
}

func newList(r *remote.Server) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the keys of an app that have a limit or a pause, with what waits for them",
		Example: `  xtimer flow list -n shop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			all, more, err := remote.Take(r.Flows(cmd.Context(), r.App), limit)
			if err != nil {
				return err
			}
			err = r.Output.Show(cmd.OutOrStdout(), flowsView(all, map[string]any{"flows": all}, r))
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	remote.AddLimit(cmd, &limit)
	return cmd
}

func newPause(r *remote.Server) *cobra.Command {
	var p pausing
	cmd := &cobra.Command{
		Use:   "pause KEY",
		Short: "Hold all calls of a key",
		Long: `pause holds all calls of a key, or of all keys that a pattern matches, until resume, or until the time of --until.
It prints a warning if no timer has the key: a key can be paused before timers have it.`,
		Example: `  xtimer flow pause partner --until 30m --reason "maintenance" -n shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			how, err := p.pause()
			if err != nil {
				return err
			}
			if _, err := r.PauseFlow(cmd.Context(), r.App, args[0], how); err != nil {
				return err
			}
			warnUnusedKey(r, cmd, args[0])
			return say(cmd, "%s/%s paused\n", r.App, args[0])
		},
	}
	p.flags(cmd)
	return cmd
}

func newResume(r *remote.Server) *cobra.Command {
	var held resuming
	cmd := &cobra.Command{
		Use:   "resume KEY",
		Short: "End the pause and the cooldown of a key: what was held is called",
		Long:  "resume ends the pause and the cooldown of a key. The pause of a pattern ends with a\nresume of the pattern.\n\n" + resumeHelp,
		Example: `  xtimer flow resume partner -n shop
  xtimer flow resume partner --backlog skip -n shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			f, err := r.ResumeFlow(cmd.Context(), r.App, args[0], held.resume())
			if err := notPaused(err, "flow", r.App+"/"+args[0]); err != nil {
				return err
			}
			if f.Paused {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s stays paused: a pattern that matches the key is paused\n", args[0])
			}
			return say(cmd, "%s/%s resumed\n", r.App, args[0])
		},
	}
	held.flags(cmd)
	return cmd
}

func newDelete(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "delete KEY …",
		Short:   "Delete the limits and the pauses of keys",
		Long:    `delete deletes the limits and the pauses of keys. What they held is called.`,
		Example: `  xtimer flow delete partner -n shop`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			for _, key := range args {
				err := r.DeleteFlow(cmd.Context(), r.App, key)
				if api.IsNotFound(err) {
					return exit.NotFound("flow %s/%s not found", r.App, key)
				}
				if err == nil {
					err = say(cmd, "%s/%s deleted\n", r.App, key)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}
