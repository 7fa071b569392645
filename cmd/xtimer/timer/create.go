package timer

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerCreate(r *remote.Server) *cobra.Command {
	var c creation
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a timer, or many",
		Long: `create creates the timer that the flags describe, or all timers of the files that
--file names; "xtimer timer apply --help" describes these files. If the timer exists
with the same definition, nothing changes. If it exists with another definition,
create is refused; use apply to change the timer.

A due is an instant at which the timer is to be called. A TIME is RFC 3339
(2030-01-31T09:00:00+08:00), Unix ms, or a time from now: 30m, 7d.`,
		Example: `  xtimer timer create --app billing --name expire --delay 30m --url http://127.0.0.1:9000/expire
  xtimer timer create --app ops --name report --cron "0 9 * * MON-FRI" --time-zone Asia/Shanghai \
      --url http://127.0.0.1:9000/report --header "X-Team: a" --body '{"n":1}' --label team=a
  generate | xtimer timer create -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(c.files) > 0 {
				if flag := c.given(cmd); flag != "" {
					return exit.Usage("--file and --%s exclude each other: the file has the definitions", flag)
				}
				return createAll(r, cmd, c.files)
			}
			d, err := c.definition(cmd, r.App)
			if err != nil {
				return err
			}
			made, err := r.Create(cmd.Context(), *d)
			if err != nil {
				return withFlags(err)
			}
			t := &made.Timer
			d.App, d.Name = t.App, t.Name
			warn(r, cmd, d)
			return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: made, Names: []string{t.App + "/" + t.Name}, Table: func(out io.Writer, _ bool) error {
				next := ""
				if !t.NextDue.IsZero() {
					next = ", due " + r.Zone.Instant(t.NextDue, t.Schedule.TimeZone)
				}
				_, err := fmt.Fprintf(out, "%s/%s %s: %s%s\n", t.App, t.Name, made.Result, t.ID, next)
				return err
			}})
		},
	}
	cmd.Flags().StringArrayVarP(&c.files, "file", "f", nil, "create the timers of this `FILE` or folder; -: stdin; may be repeated")
	c.flags(cmd)
	return cmd
}

// warn tells of the flow keys of a timer that no flow limits, and of its secrets that the app does not
// have: often the name has a typo, and without the warning it would show when the timer is due.
func warn(r *remote.Server, cmd *cobra.Command, d *api.Definition) {
	if len(d.Flow)+len(d.Callback.SecretHeaders) == 0 {
		return
	}
	put, err := r.Put(cmd.Context(), *d, api.DryRun())
	if err != nil {
		return // the timer was created all the same
	}
	for _, w := range put.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", terminal.Printable(w.Detail))
	}
}

// createAll makes the timers of files, in batches.
func createAll(r *remote.Server, cmd *cobra.Command, files []string) error {
	sources, err := definition.Read(files, cmd.InOrStdin())
	if err == nil {
		err = inApp(sources, r.App)
	}
	if err != nil {
		return err
	}
	defs := make([]api.Definition, len(sources))
	for i, s := range sources {
		defs[i] = s.Definition
	}
	p := terminal.NewProgress(cmd.ErrOrStderr(), int64(len(defs)))
	all := make([]remote.Done, 0, len(defs))
	for res, err := range r.CreateAll(cmd.Context(), slices.Values(defs)) {
		if err != nil {
			p.End()
			return fmt.Errorf("%d of %d timers were created: %w", len(all)-remote.Failures(all), len(defs), r.Explain(err))
		}
		s := sources[len(all)]
		d := remote.Done{Timer: s.App + "/" + s.Name, Result: api.Created}
		switch {
		case res.Error != nil:
			d.Result, d.Error = "", s.At.Line()+": "+remote.OneLine(r.Explain(res.Error))
		case res.Status == 200:
			d.Result = api.Unchanged
		}
		all = append(all, d)
		p.Step()
	}
	p.End()
	n := remote.Failures(all)
	var names []string
	for _, d := range all {
		if d.Error == "" {
			names = append(names, d.Timer)
		}
	}
	err = r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: map[string]any{"results": all}, Names: names, Table: func(out io.Writer, _ bool) error {
		created := 0
		for _, d := range all {
			if d.Error != "" {
				fmt.Fprintf(out, "%s  %s\n", terminal.NewPainter(out).Paint(terminal.Red, "refused"), terminal.Printable(d.Error))
			} else if d.Result == api.Created {
				created++
			}
		}
		_, err := fmt.Fprintf(out, "%d created, %d unchanged, %d refused\n", created, len(all)-created-n, n)
		return err
	}})
	if err != nil {
		return err
	}
	return exit.Partly(len(all), n, errors.New("the server refused the timer"))
}
