package alert

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newShow(r *remote.Server) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "show channels|rules|mutes [NAME]",
		Short: "Show the channels, the rules or the mutes of an app, or one of them",
		Long: `show shows the channels, the rules or the mutes of an app; with a NAME, that one.

Whoever knows the URL of a robot can write to its group. Of the URL of a channel, and of its
proxy, only the scheme and the host are shown; a secret is shown by its name.`,
		Example: `  xtimer alert show channels -n shop
  xtimer alert show rules all -n shop -o yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := args[0]
			if err := check(r, kind); err != nil {
				return err
			}
			if len(args) == 2 {
				b, err := r.Alert(cmd.Context(), r.App, kind, args[1])
				if api.IsNotFound(err) {
					return exit.NotFound("%s/%s not found", r.App, args[1])
				}
				if err != nil {
					return err
				}
				return show(cmd, r, kind, []json.RawMessage{b}, func(all []shown) any { return all[0] })
			}
			all, more, err := remote.Take(r.Alerts(cmd.Context(), r.App, kind), limit)
			if err != nil {
				return err
			}
			err = show(cmd, r, kind, all, func(all []shown) any { return map[string]any{kind: all} })
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	remote.AddLimit(cmd, &limit)
	return cmd
}

// shown is a channel, a rule or a mute as it is shown: without the URLs.
type shown map[string]json.RawMessage

func show(cmd *cobra.Command, r *remote.Server, kind string, all []json.RawMessage, value func([]shown) any) error {
	g := terminal.Grid{Head: heads[kind]}
	objects, names := make([]shown, len(all)), make([]string, len(all))
	for i, b := range all {
		var o object
		if err := json.Unmarshal(b, &objects[i]); err != nil {
			return err
		}
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		for member, t := range map[string]text{"url": o.URL, "proxy": o.Proxy} {
			if t.Value != "" {
				b, err := json.Marshal(hostOf(t.Value))
				if err != nil {
					return err
				}
				objects[i][member] = b
			}
		}
		names[i] = o.Name
		g.Add(o.cells(kind, func(t time.Time) string { return r.Zone.Instant(t, "") })...)
	}
	return r.Output.Show(cmd.OutOrStdout(), terminal.View{Value: value(objects), Names: names, Table: func(out io.Writer, _ bool) error { return g.Print(out) }})
}

var heads = map[string][]string{
	"channels": {"NAME", "KIND", "TO", "LAST MESSAGE"},
	"rules":    {"NAME", "SEVERITY", "ABOUT", "TIMERS", "CHANNELS"},
	"mutes":    {"NAME", "TIMERS", "UNTIL", "REASON"},
}

// object has what the tables show of a channel, a rule or a mute.
type object struct {
	Name string

	Kind       string
	URL, Proxy text
	SMTP       *struct {
		Host string
		Port int
		To   []string
	}
	Deliveries []struct { // the newest first
		At             time.Time
		Outcome, Error string
	}

	On    []string
	Match struct {
		NamePrefix    string `json:"name_prefix"`
		Label, Target string
	}
	After, Streak int
	Over          int
	Within        string
	Late, For     string
	Channels      []string
	Severity      string

	Until  time.Time
	Reason string
}

// text is a text, or the name of a secret.
type text struct{ Value, Secret string }

// UnmarshalJSON reads "text" or {"secret":"NAME"}.
func (t *text) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &t.Value)
	}
	var o struct{ Secret string }
	err := json.Unmarshal(b, &o)
	t.Secret = o.Secret
	return err
}

func (o *object) cells(kind string, instant func(time.Time) string) []string {
	switch kind {
	case "channels":
		last := ""
		if len(o.Deliveries) > 0 {
			d := &o.Deliveries[0]
			last = strings.TrimSpace(fmt.Sprint(d.Outcome, " ", instant(d.At), " ", d.Error))
		}
		return []string{o.Name, o.Kind, o.to(), last}
	case "rules":
		return []string{o.Name, o.Severity, o.about(), o.timers(), strings.Join(o.Channels, ", ")}
	}
	return []string{o.Name, o.timers(), instant(o.Until), o.Reason}
}

// to is where the messages of a channel go.
func (o *object) to() string {
	switch {
	case o.SMTP != nil:
		return net.JoinHostPort(o.SMTP.Host, strconv.Itoa(o.SMTP.Port)) + " → " + strings.Join(o.SMTP.To, ", ")
	case o.URL.Secret != "":
		return "secret " + o.URL.Secret
	}
	return hostOf(o.URL.Value)
}

// hostOf is a URL without what may be a secret.
func hostOf(of string) string {
	u, err := url.Parse(of)
	if err != nil || u.Host == "" {
		return "…"
	}
	host := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		host += "/…"
	}
	return host
}

// about is what a rule is about.
func (o *object) about() string {
	words := strings.Join(o.On, ", ")
	switch {
	case o.Streak > 0:
		words += fmt.Sprintf(", %d in a row", o.Streak)
	case o.After > 1:
		words += fmt.Sprintf(", %d in %s", o.After, o.Within)
	}
	if o.Late != "" {
		words += ", later than " + o.Late
	}
	if o.Over > 0 {
		words += fmt.Sprintf(", more than %d for %s", o.Over, o.For)
	}
	return words
}

// timers are those that a rule or a mute is about.
func (o *object) timers() string {
	var words []string
	if o.Match.NamePrefix != "" {
		words = append(words, o.Match.NamePrefix+"*")
	}
	words = append(words, o.Match.Label, o.Match.Target)
	if words = slices.DeleteFunc(words, func(w string) bool { return w == "" }); len(words) == 0 {
		return "all"
	}
	return strings.Join(words, " ")
}
