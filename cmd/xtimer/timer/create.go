package timer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// creation is what the flags of create say.
type creation struct {
	api.Definition
	files              []string
	every, delay       span.Value
	at, startAt, endAt string
	headers, labels    []string
	body, bodyText     string
	timeout            span.Value
	staleAfter         span.Value
	priority           int
}

func newTimerCreate(r *remote.Server) *cobra.Command {
	var c creation
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a timer, or many",
		Long: `create makes the timer that the flags describe, or all timers of files (see
apply for their form). One that is there already with the same definition is left
as it is; with another, it is refused: apply would change it.`,
		Example: `  xtimer timer create --app billing --name expire --delay 30m --url http://127.0.0.1:9000/expire
  xtimer timer create --app ops --name report --cron "0 9 * * MON-FRI" --time-zone Asia/Shanghai \
      --url http://127.0.0.1:9000/report --header "X-Team: a" --body '{"n":1}' --label team=a
  generate | xtimer timer create -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(c.files) > 0 {
				if other := othersThan(cmd, "file"); other != "" {
					return exit.Usage("--file describes the timers: leave --%s out", other)
				}
				return createAll(r, cmd, c.files)
			}
			d, err := c.definition(cmd)
			if err != nil {
				return err
			}
			made, err := r.Create(cmd.Context(), *d)
			if err != nil {
				return err
			}
			return r.Show(cmd.OutOrStdout(), made, func(out io.Writer) error {
				t := &made.Timer
				next := ""
				if !t.NextDue.IsZero() {
					next = ", due " + r.Zone.Instant(t.NextDue, t.Schedule.TimeZone)
				}
				_, err := fmt.Fprintf(out, "%s/%s %s: %s%s\n", t.App, t.Name, made.Result, t.ID, next)
				return err
			})
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&c.files, "file", "f", nil, "make the timers of this `FILE` or folder; -: of stdin")
	fs.StringVar(&c.App, "app", "", "the `APP` that owns it")
	fs.StringVar(&c.Name, "name", "", "its `NAME`, unique within the app")
	fs.StringVar(&c.Schedule.Cron, "cron", "", "due when this `EXPRESSION` says: 5 fields, 6 with seconds first, @daily …")
	fs.StringVar(&c.Schedule.TimeZone, "time-zone", "", "… in this IANA `ZONE` (default UTC)")
	fs.Var(&c.every, "every", "due every so often: 250ms, 5m, 1d")
	fs.StringVar(&c.at, "at", "", "due once, at this `TIME`: RFC 3339 or Unix ms")
	fs.Var(&c.delay, "delay", "due once, after so long: 30m, 7d")
	fs.StringVar(&c.startAt, "start-at", "", "no due before this `TIME`; dues of --every count from it")
	fs.StringVar(&c.endAt, "end-at", "", "no due after this `TIME`")
	fs.Int64Var(&c.Schedule.MaxRuns, "max-runs", 0, "end after so many dues (default: never)")
	fs.StringVar(&c.Callback.URL, "url", "", "call this `URL`")
	fs.StringVar(&c.Callback.Method, "method", "", "with this `METHOD` (default POST)")
	fs.StringArrayVar(&c.headers, "header", nil, "with this header, `NAME: VALUE`; may be given more than once")
	fs.StringVar(&c.body, "body", "", "with this `JSON` (default: which task it is)")
	fs.StringVar(&c.bodyText, "body-text", "", "with this text")
	fs.Var(&c.timeout, "timeout", "an attempt may take so long (default 15s)")
	fs.StringVar(&c.Callback.Success, "success", "", "these `CODES` are success: 200,202,300-399 (default 2xx)")
	fs.IntVar(&c.Retry.MaxAttempts, "max-attempts", 0, "make so many attempts at most (default 4)")
	fs.StringVar(&c.Overlap, "overlap", "", "what to do while the one before is busy: `allow`, skip or queue")
	fs.StringVar(&c.Delivery, "delivery", "", "`at_least_once` or at_most_once")
	fs.Var(&c.staleAfter, "stale-after", "make no first attempt later than so long after the due (10ms to 24h; default: see retry.max_age)")
	fs.IntVar(&c.priority, "priority", 5, "0…9, counts only when calls have to wait")
	fs.StringArrayVar(&c.labels, "label", nil, "with this label, `KEY=VALUE`; may be given more than once")
	for _, name := range []string{"every", "delay", "timeout", "stale-after"} {
		fs.Lookup(name).DefValue = ""
	}
	_ = cmd.RegisterFlagCompletionFunc("overlap", cobra.FixedCompletions([]string{"allow", "skip", "queue"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("delivery", cobra.FixedCompletions([]string{"at_least_once", "at_most_once"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// othersThan names a flag that was given besides.
func othersThan(cmd *cobra.Command, name string) (other string) {
	for _, f := range []string{
		"app", "name", "cron", "time-zone", "every", "at", "delay", "start-at", "end-at", "max-runs", "url", "method", "header",
		"body", "body-text", "timeout", "success", "max-attempts", "overlap", "delivery", "priority", "stale-after", "label",
	} {
		if f != name && cmd.Flags().Changed(f) {
			return f
		}
	}
	return ""
}

// definition is the timer that the flags describe. What a value may be is for
// the server to say.
func (c *creation) definition(cmd *cobra.Command) (*api.Definition, error) {
	d, given := &c.Definition, cmd.Flags().Changed
	d.Schedule.Every, d.Callback.Timeout, d.StaleAfter = time.Duration(c.every), time.Duration(c.timeout), api.Duration(c.staleAfter)
	if given("delay") {
		d.Schedule.Delay = new(time.Duration(c.delay))
	}
	for flag, to := range map[string]struct {
		from string
		to   *time.Time
	}{"at": {c.at, &d.Schedule.At}, "start-at": {c.startAt, &d.Schedule.StartAt}, "end-at": {c.endAt, &d.Schedule.EndAt}} {
		var err error
		if *to.to, err = remote.Ahead(to.from, time.Now()); err != nil {
			return nil, exit.Usage("--%s: %w", flag, err)
		}
	}
	if given("body") {
		if !json.Valid([]byte(c.body)) {
			return nil, exit.Usage("--body: it is not JSON; --body-text takes any text")
		}
		d.Callback.Body = json.RawMessage(c.body)
	}
	if given("body-text") {
		d.Callback.BodyText = &c.bodyText
	}
	if given("priority") {
		d.Priority = &c.priority
	}
	var err error
	if d.Callback.Headers, err = pairs("header", c.headers, ":"); err != nil {
		return nil, err
	}
	if d.Labels, err = pairs("label", c.labels, "="); err != nil {
		return nil, err
	}
	return d, nil
}

func pairs(flag string, given []string, between string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, s := range given {
		k, v, ok := strings.Cut(s, between)
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if _, twice := all[k]; !ok || k == "" || twice {
			return nil, exit.Usage("--%s: %q is not NAME%sVALUE, or is given twice", flag, s, between)
		}
		all[k] = v
	}
	return all, nil
}

// createAll makes the timers of files, in batches.
func createAll(r *remote.Server, cmd *cobra.Command, files []string) error {
	sources, err := definition.Read(files, cmd.InOrStdin())
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
			return fmt.Errorf("of %d timers %d were made: %w", len(defs), len(all)-remote.Failures(all), err)
		}
		s := sources[len(all)]
		d := remote.Done{Timer: s.App + "/" + s.Name, Result: api.Created}
		switch {
		case res.Error != nil:
			d.Result, d.Error = "", s.At.Line()+": "+res.Error.Detail
		case res.Status == 200:
			d.Result = api.Unchanged
		}
		all = append(all, d)
		p.Step()
	}
	p.End()
	n := remote.Failures(all)
	err = r.Show(cmd.OutOrStdout(), map[string]any{"results": all}, func(out io.Writer) error {
		created := 0
		for _, d := range all {
			if d.Error != "" {
				fmt.Fprintf(out, "%s  %s\n", terminal.NewPainter(out).Paint(terminal.Red, "refused"), terminal.Printable(d.Error))
			} else if d.Result == api.Created {
				created++
			}
		}
		_, err := fmt.Fprintf(out, "%d created, %d there already, %d refused\n", created, len(all)-created-n, n)
		return err
	})
	if err != nil {
		return err
	}
	return exit.Partly(len(all), n, fmt.Errorf("it was refused"))
}
