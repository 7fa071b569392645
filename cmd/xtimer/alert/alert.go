// Package alert is the commands of alerts.
package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// New is the group of the commands of alerts.
func New() *cobra.Command {
	r := &remote.Server{}
	group := r.Attach(
		&cobra.Command{
			Use:   "alert",
			Short: "Tell people of failures: channels, rules, incidents",
			Long: `alert sets where messages about failures go (channels) and what they are about
(rules), and shows what was found (incidents).

` + exit.Help,
			Example: `  xtimer alert set channels ops -n shop < channel.json
  xtimer alert set rules dead -n shop < rule.json
  xtimer alert test ops -n shop
  xtimer alert show rules -n shop
  xtimer alert list -n shop`,
		},
		newList(r), newAck(r), newShow(r), newSet(r), newDelete(r), newMute(r), newTest(r), newPreview(r),
	)
	r.AppFlag(group, "the `APP` of the alerts")
	return group
}

func needApp(r *remote.Server) error {
	if r.App == "" {
		return exit.Usage("required: --app")
	}
	return nil
}

// say prints a line about an object.
func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

func newList(r *remote.Server) *cobra.Command {
	var state, from, to string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List incidents: open ones first, then the newest",
		Example: `  xtimer alert list -n shop --state open
  xtimer alert list -n shop --from 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := api.IncidentFilter{App: r.App, State: state}
			if err := errors.Join(moment("from", from, &f.From), moment("to", to, &f.To)); err != nil {
				return err
			}
			var all []api.Incident
			for i, err := range r.Incidents(cmd.Context(), f) {
				if err != nil {
					return err
				}
				if all = append(all, i); len(all) >= limit {
					break
				}
			}
			return r.Output.Show(cmd.OutOrStdout(), view(all, func(t time.Time) string { return r.Zone.Instant(t, "") }))
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only incidents in this `STATE`: open or closed")
	cmd.Flags().StringVar(&from, "from", "", "only incidents opened at this `TIME` or later: RFC 3339, Unix ms, or how long ago, such as 24h")
	cmd.Flags().StringVar(&to, "to", "", "only incidents opened before this `TIME`, likewise")
	cmd.Flags().IntVar(&limit, "limit", 100, "show at most this `NUMBER`")
	return cmd
}

// moment reads the time of a flag; "" is none.
func moment(flag, text string, to *time.Time) error {
	if text == "" {
		return nil
	}
	ms, err := span.Moment(text, time.Now())
	if err != nil {
		return exit.Usage("--%s: %w", flag, err)
	}
	*to = time.UnixMilli(ms)
	return nil
}

func view(all []api.Incident, instant func(time.Time) string) terminal.View {
	var names []string
	for _, i := range all {
		names = append(names, i.ID)
	}
	return terminal.View{Value: map[string]any{"incidents": all}, Names: names, Table: func(out io.Writer, _ bool) error {
		g := terminal.Grid{Head: []string{"ID", "STATE", "SEVERITY", "APP", "OF", "RULE", "COUNT", "OPENED", "NOTE"}}
		for _, i := range all {
			state := i.State
			switch {
			case i.State == "open" && !i.Acked.IsZero():
				state = "acknowledged"
			case i.State == "open" && i.Muted:
				state = "muted"
			}
			g.Add(i.ID, state, i.Severity, i.App, i.By, i.Rule, fmt.Sprint(i.Count), instant(i.Opened), i.Note)
		}
		return g.Print(out)
	}}
}

func newAck(r *remote.Server) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "ack ID",
		Short:   "Acknowledge an incident, which ends its repeats",
		Example: `  xtimer alert ack 7kq2mzx4ab3c5d6e --note "the target moves"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := r.AckIncident(cmd.Context(), args[0], note)
			if api.IsNotFound(err) {
				return exit.NotFound("there is no open incident %s", args[0])
			}
			if err != nil {
				return err
			}
			return say(cmd, "%s of %s/%s acknowledged", i.ID, i.App, i.By)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "the `NOTE`, which alert list shows")
	return cmd
}

func newSet(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "set channels|rules|mutes NAME",
		Short: "Create or replace a channel, a rule or a mute, read from stdin as JSON",
		Example: `  echo '{"kind":"slack","url":{"secret":"slack-url"}}' | xtimer alert set channels ops -n shop
  echo '{"on":["dead","failed"],"channels":["ops"]}' | xtimer alert set rules all -n shop`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(r, args[0]); err != nil {
				return err
			}
			b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
			if err != nil {
				return fmt.Errorf("cannot read the definition from stdin: %w", err)
			}
			if err := json.Unmarshal(b, new(any)); err != nil {
				return exit.Usage("stdin is not valid JSON: %w", err)
			}
			result, err := r.PutAlert(cmd.Context(), r.App, args[0], args[1], b)
			if err != nil {
				return err
			}
			return say(cmd, "%s/%s %s", r.App, args[1], result)
		},
	}
}

func check(r *remote.Server, kind string) error {
	if kind != "channels" && kind != "rules" && kind != "mutes" {
		return exit.Usage("%q is not one of channels, rules, mutes", kind)
	}
	return needApp(r)
}

func newDelete(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "delete channels|rules|mutes NAME",
		Short:   "Delete a channel, a rule or a mute",
		Example: `  xtimer alert delete rules all -n shop`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(r, args[0]); err != nil {
				return err
			}
			err := r.DeleteAlert(cmd.Context(), r.App, args[0], args[1])
			if api.IsNotFound(err) {
				return exit.NotFound("%s/%s not found", r.App, args[1])
			}
			if err != nil {
				return err
			}
			return say(cmd, "%s/%s deleted", r.App, args[1])
		},
	}
}

func newMute(r *remote.Server) *cobra.Command {
	var until, reason, prefix, label, target string
	cmd := &cobra.Command{
		Use:   "mute NAME",
		Short: "Send no messages about timers until a time",
		Long: `mute keeps new incidents of an app from being sent until a time. They are recorded; those that
are still open then are sent.`,
		Example: `  xtimer alert mute move -n shop --until 2h --reason "the target moves" --name-prefix order-`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			at, err := remote.Ahead(until, time.Now())
			if err != nil || at.IsZero() {
				return exit.Usage("--until is required: RFC 3339, Unix ms, or a time from now such as 2h")
			}
			body, err := json.Marshal(map[string]any{"match": map[string]any{"name_prefix": prefix, "label": label, "target": target}, "until": at.UnixMilli(), "reason": reason})
			if err != nil {
				return err
			}
			result, err := r.PutAlert(cmd.Context(), r.App, "mutes", args[0], body)
			if err != nil {
				return err
			}
			return say(cmd, "%s/%s %s, until %s", r.App, args[0], result, r.Zone.Instant(at, ""))
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "mute until this `TIME`: RFC 3339, Unix ms, or a time from now such as 2h or 7d")
	cmd.Flags().StringVar(&reason, "reason", "", "the `REASON` of the mute")
	cmd.Flags().StringVar(&prefix, "name-prefix", "", "only timers whose name has this `PREFIX`")
	cmd.Flags().StringVar(&label, "label", "", "only timers with this `LABEL`, such as team=a")
	cmd.Flags().StringVar(&target, "target", "", "only timers that call this `TARGET`, such as https://example.com:443")
	return cmd
}

func newTest(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "test CHANNEL",
		Short:   "Send a test message to a channel",
		Example: `  xtimer alert test ops -n shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			got, err := r.TestChannel(cmd.Context(), r.App, args[0])
			switch {
			case api.IsNotFound(err):
				return exit.NotFound("channel %s/%s not found", r.App, args[0])
			case err != nil:
				return err
			case !got.Delivered && got.Status == 0:
				return fmt.Errorf("the channel did not take the message: %s", got.Error)
			case !got.Delivered:
				return fmt.Errorf("the channel did not take the message: %s; status %d, answer %q", got.Error, got.Status, got.Answer)
			}
			return say(cmd, "delivered")
		},
	}
}

func newPreview(r *remote.Server) *cobra.Command {
	from := 24 * time.Hour
	cmd := &cobra.Command{
		Use:     "preview RULE",
		Short:   "Count the incidents that a rule would have opened",
		Example: `  xtimer alert preview all -n shop --from 48h`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			p, err := r.PreviewRule(cmd.Context(), r.App, args[0], from)
			if api.IsNotFound(err) {
				return exit.NotFound("rule %s/%s not found", r.App, args[0])
			}
			if err != nil {
				return err
			}
			return say(cmd, "%d incidents of %d failures since %s", p.Incidents, p.Failures, r.Zone.Instant(p.From, ""))
		},
	}
	cmd.Flags().DurationVar(&from, "from", from, "look back this `TIME`, at most 168h")
	return cmd
}
