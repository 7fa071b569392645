package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"xtimer/httpapi/client"
)

// Form is the inputs for a rule or a channel, each named as the field of the API, and what is
// wrong with them. Whether they are right is the API's to say.
type Form struct {
	Kind    string // rules, channels
	App     string
	Version int // 0: a new one
	Values  url.Values
	Errors  map[string]string
	Error   string // of no input
	Known   []string
}

// Words are what a rule may be about; the last ones only in the app *.
func (f *Form) Words() []string {
	all := append(slices.Clone(endings), "late", "backlog", "breaker", "paused", "quota")
	if f.App == allApps {
		all = append(all, "tier", "disk", "memory", "clock", "early", "audit", "verify", "channel")
	}
	return all
}

// Get and Wrong are for the template: an input's value, and what is wrong.
func (f *Form) Get(name string) string { return f.Values.Get(name) }

// Wrong is what the API said of a field.
func (f *Form) Wrong(name string) string { return f.Errors[name] }

// Has reports whether a value of several is chosen.
func (f *Form) Has(name, value string) bool { return slices.Contains(f.Values[name], value) }

// Name is what the rule or channel is called.
func (f *Form) Name() string { return f.Values.Get("name") }

// NewForm is a form for a new rule or channel of an app ("": of all apps).
func NewForm(kind, app string) *Form {
	if app == "" {
		app = allApps
	}
	f := &Form{Kind: kind, App: app, Values: url.Values{}}
	if kind == "rules" {
		f.Values = url.Values{"on": {"failed", "dead"}, "by": {"timer"}, "severity": {"warning"}, "recovered": {"yes"}}
	}
	return f
}

// Open is the form of what stands.
func Open(ctx context.Context, api *client.Client, kind, app, name string) (*Form, error) {
	b, err := api.Alert(ctx, app, kind, name)
	if err != nil {
		return nil, err
	}
	f := NewForm(kind, app)
	if kind == "channels" {
		var c Channel
		err = json.Unmarshal(b, &c)
		f.ofChannel(&c)
		return f, err
	}
	var r Rule
	err = json.Unmarshal(b, &r)
	f.ofRule(&r)
	return f, err
}

func (f *Form) ofRule(r *Rule) {
	f.Version = r.Version
	f.Values = url.Values{
		"name": {r.Name}, "on": r.On, "match.name_prefix": {r.Match.NamePrefix}, "match.label": {r.Match.Label}, "match.target": {r.Match.Target},
		"within": {r.Within}, "late": {r.Late}, "for": {r.For}, "by": {r.By}, "channels": r.Channels, "repeat": {r.Repeat}, "severity": {r.Severity},
	}
	f.number("after", r.After)
	f.number("streak", r.Streak)
	f.number("over", r.Over)
	if r.Recovered {
		f.Values.Set("recovered", "yes")
	}
}

// ofChannel fills in a channel. The URL of a robot is not shown: an empty input keeps it.
func (f *Form) ofChannel(c *Channel) {
	f.Version = c.Version
	f.Values = url.Values{
		"name": {c.Name}, "kind": {c.Kind}, "url_secret": {c.URL.Secret}, "secret": {c.Secret.Secret}, "lang": {c.Lang},
		"proxy": {c.Proxy.Value}, "proxy_secret": {c.Proxy.Secret}, "mention": {strings.Join(c.Mention, " ")},
	}
	f.number("per_minute", c.PerMinute)
	if s := c.SMTP; s != nil {
		for name, v := range map[string]string{"host": s.Host, "tls": s.TLS, "user": s.User, "password": s.Password.Secret, "from": s.From, "to": strings.Join(s.To, "\n")} {
			f.Values.Set("smtp."+name, v)
		}
		f.number("smtp.port", s.Port)
	}
}

func (f *Form) number(name string, n int) {
	if n != 0 {
		f.Values.Set(name, strconv.Itoa(n))
	}
}

// ReadForm is what was sent.
func ReadForm(kind, app string, sent url.Values) *Form {
	f := NewForm(kind, app)
	f.Values = url.Values{}
	for name, values := range sent {
		for _, v := range values {
			f.Values.Add(name, strings.TrimSpace(v))
		}
	}
	f.Version, _ = strconv.Atoi(f.Get("version"))
	return f
}

// Save puts what the form says in force. It reports false when the API refused that: the form
// then says why.
func (f *Form) Save(ctx context.Context, api *client.Client) (bool, error) {
	if f.Name() == "" {
		f.Errors = map[string]string{"name": "is required"}
		return false, nil
	}
	stands, err := api.Alert(ctx, f.App, f.Kind, f.Name())
	switch {
	case err == nil && f.Version == 0:
		f.Errors = map[string]string{"name": "exists already"}
		return false, nil
	case err != nil && (!client.IsNotFound(err) || f.Version != 0):
		return f.refused(err)
	}
	doc := f.rule()
	if f.Kind == "channels" {
		doc = f.channel(stands)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return false, err
	}
	var options []client.CallOption
	if f.Version != 0 {
		options = append(options, client.IfMatch(f.Version))
	}
	if _, err = api.PutAlert(ctx, f.App, f.Kind, f.Name(), b, options...); err != nil {
		return f.refused(err)
	}
	return true, nil
}

// refused keeps what the API says of the fields.
func (f *Form) refused(err error) (bool, error) {
	var problem *client.Error
	if !errors.As(err, &problem) || problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden || problem.Status >= 500 {
		return false, err
	}
	f.Error, f.Errors = problem.Detail, map[string]string{}
	for _, x := range problem.Fields {
		name := x.Field
		for _, list := range []string{"on", "channels", "mention", "smtp.to", "url", "proxy", "secret", "smtp.password"} {
			if strings.HasPrefix(name, list+".") || strings.HasPrefix(name, list+"[") {
				name = list
			}
		}
		f.Errors[name] = x.Detail
	}
	return false, nil
}

// put sets a member, if there is something to set: a number where one is typed.
func (f *Form) put(doc map[string]any, member, input string, number bool) {
	v := f.Get(input)
	switch {
	case v == "":
	case number && json.Valid([]byte(v)):
		doc[member] = json.Number(v)
	default:
		doc[member] = v
	}
}

func (f *Form) rule() map[string]any {
	doc := map[string]any{"on": f.list("on"), "channels": f.list("channels"), "recovered": f.Get("recovered") != ""}
	match := map[string]any{}
	for _, name := range []string{"name_prefix", "label", "target"} {
		f.put(match, name, "match."+name, false)
	}
	doc["match"] = match
	for _, name := range []string{"within", "late", "for", "by", "repeat", "severity"} {
		f.put(doc, name, name, false)
	}
	for _, name := range []string{"after", "streak", "over"} {
		f.put(doc, name, name, true)
	}
	return doc
}

func (f *Form) list(name string) []string { return append([]string{}, f.Values[name]...) }

// channel is the channel that the form says; stands is the one in force, or nil.
func (f *Form) channel(stands json.RawMessage) map[string]any {
	doc := map[string]any{}
	for _, name := range []string{"kind", "lang"} {
		f.put(doc, name, name, false)
	}
	f.put(doc, "per_minute", "per_minute", true)
	if mention := strings.Fields(f.Get("mention")); len(mention) > 0 {
		doc["mention"] = mention
	}
	if name := f.Get("secret"); name != "" {
		doc["secret"] = secret(name)
	}
	if f.Get("kind") == "email" {
		doc["smtp"] = f.smtp()
		return doc
	}
	var was Channel
	_ = json.Unmarshal(stands, &was) // of a new one there is nothing
	f.web(doc, "url", was.URL)
	f.web(doc, "proxy", Text{}) // it is shown, so that an empty input removes it
	return doc
}

// web sets a URL that is typed, or that a secret has; without one, what was typed before stays.
func (f *Form) web(doc map[string]any, member string, was Text) {
	switch name, to := f.Get(member+"_secret"), f.Get(member); {
	case to != "":
		doc[member] = to
	case name != "":
		doc[member] = secret(name)
	case was.Value != "":
		doc[member] = was.Value
	}
}

func (f *Form) smtp() map[string]any {
	s := map[string]any{"to": strings.FieldsFunc(f.Get("smtp.to"), func(c rune) bool { return c == '\n' || c == '\r' || c == ',' })}
	for _, name := range []string{"host", "tls", "user", "from"} {
		f.put(s, name, "smtp."+name, false)
	}
	f.put(s, "port", "smtp.port", true)
	if name := f.Get("smtp.password"); name != "" {
		s["password"] = secret(name)
	}
	return s
}

func secret(name string) map[string]string { return map[string]string{"secret": name} }

// Channels fills in which channels the app has, for a rule to choose from.
func (f *Form) Channels(ctx context.Context, api *client.Client) error {
	all, _, err := listed[Channel](ctx, api, f.App, "channels")
	for i := range all {
		f.Known = append(f.Known, all[i].Name)
	}
	return err
}
