package alert

import (
	"net/mail"
	"slices"
	"strings"
	"unicode"

	"xtimer/engine"
)

// Channel is where messages go.
type Channel struct {
	Kind      string   `json:"kind"`
	URL       Text     `json:"url,omitzero"` // of all kinds but email
	SMTP      *SMTP    `json:"smtp,omitempty"`
	Secret    Text     `json:"secret,omitzero"`
	Proxy     Text     `json:"proxy,omitzero"` // through which messages go to URL; zero: they go straight there
	Lang      string   `json:"lang"`
	Mention   []string `json:"mention,omitempty"`
	PerMinute int      `json:"per_minute"`
}

// SMTP is the mail server of a channel of the kind email, and the addresses of its mails.
type SMTP struct {
	Host     string   `json:"host"`
	Port     int      `json:"port"`
	TLS      string   `json:"tls"` // starttls, tls, none
	User     string   `json:"user,omitempty"`
	Password Text     `json:"password,omitzero"` // the name of a secret
	From     string   `json:"from"`
	To       []string `json:"to"`
}

// Text is a text, or the name of a secret of the channel's app.
type Text struct {
	Value  string `json:"value,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// IsZero reports whether there is none.
func (t Text) IsZero() bool { return t == Text{} }

// NewSMTP is a mail server with every default filled in.
func NewSMTP() SMTP { return SMTP{Port: 587, TLS: "starttls"} }

// PerMinute is how many messages a minute each kind of channel takes, by default.
var PerMinute = map[string]int{"webhook": 60, "slack": 30, "feishu": 60, "wecom": 18, "dingtalk": 18, "email": 10}

// Check returns an error for a channel that cannot be in force.
func (c *Channel) Check() error {
	most, ok := PerMinute[c.Kind]
	if !ok {
		return engine.Invalid("kind", "unknown_value", "must be webhook, slack, wecom, dingtalk, feishu or email")
	}
	if c.PerMinute == 0 {
		c.PerMinute = most
	}
	switch {
	case c.PerMinute < 1 || c.PerMinute > 1000:
		return engine.Invalid("per_minute", "out_of_range", "must be between 1 and 1000")
	case c.Lang != "en" && c.Lang != "zh":
		return engine.Invalid("lang", "unknown_value", "must be en or zh")
	case len(c.Mention) > 20:
		return engine.Invalid("mention", "out_of_range", "must have at most 20 entries")
	case c.Kind == "email" && !c.URL.IsZero():
		return engine.Invalid("url", "bad_url", "must not be given: the kind email has smtp instead")
	case c.Kind == "email" && !c.Proxy.IsZero():
		return engine.Invalid("proxy", "bad_url", "must not be given: mails do not go through a proxy")
	case c.Kind == "email" && c.SMTP == nil:
		return engine.Invalid("smtp", "required", "must be given: the kind email sends through a mail server")
	case c.Kind == "email":
		return c.SMTP.check()
	case c.SMTP != nil:
		return engine.Invalid("smtp", "unknown_value", "must not be given: only the kind email has it")
	case !c.URL.isWeb():
		return engine.Invalid("url", "bad_url", "must begin with http:// or https://, or name a secret")
	case !c.Proxy.IsZero() && !c.Proxy.isWeb():
		return engine.Invalid("proxy", "bad_url", "must begin with http:// or https://, or name a secret")
	}
	return nil
}

// isWeb reports whether a text begins as a URL of HTTP, or is a secret.
func (t Text) isWeb() bool {
	return t.Secret != "" || strings.HasPrefix(t.Value, "http://") || strings.HasPrefix(t.Value, "https://")
}

func (s *SMTP) check() error {
	switch {
	case s.Host == "" || len(s.Host) > 253 || strings.ContainsFunc(s.Host, isNoHost):
		return engine.Invalid("smtp.host", "bad_host", "must be the name or the address of a mail server, without its port")
	case s.Port < 1 || s.Port > 65535:
		return engine.Invalid("smtp.port", "out_of_range", "must be between 1 and 65535")
	case !slices.Contains([]string{"starttls", "tls", "none"}, s.TLS):
		return engine.Invalid("smtp.tls", "unknown_value", "must be starttls, tls or none")
	case !isMail(s.From):
		return engine.Invalid("smtp.from", "bad_address", "must be a mail address, such as xtimer@example.com")
	case len(s.To) < 1 || len(s.To) > 20:
		return engine.Invalid("smtp.to", "out_of_range", "must have 1 to 20 mail addresses")
	case slices.ContainsFunc(s.To, func(a string) bool { return !isMail(a) }):
		return engine.Invalid("smtp.to", "bad_address", "must have mail addresses, such as team@example.com")
	}
	return s.checkUser()
}

func (s *SMTP) checkUser() error {
	switch {
	case (s.User == "") != s.Password.IsZero():
		return engine.Invalid("smtp.password", "required", "must be given together with user")
	case s.User != "" && s.TLS == "none":
		return engine.Invalid("smtp.tls", "out_of_range", "must be starttls or tls with a password, which is never sent in the clear")
	case len(s.User) > 256 || strings.ContainsFunc(s.User, unicode.IsControl):
		return engine.Invalid("smtp.user", "out_of_range", "must have at most 256 bytes, and no control characters")
	}
	return nil
}

func isNoHost(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune(".-_:", c))
}

// isMail reports whether a text is one mail address, which may have a name.
func isMail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && len(s) <= 320 && !strings.ContainsFunc(s+a.Name+a.Address, unicode.IsControl)
}

// channelsOf are the channels that name a secret.
func (a *Alerter) channelsOf(of engine.ObjectKey) (users []string) {
	for _, o := range a.cfg.Objects.List(ChannelKind, of.App) {
		c, _ := read[Channel](o)
		texts := []Text{c.URL, c.Secret, c.Proxy}
		if c.SMTP != nil {
			texts = append(texts, c.SMTP.Password)
		}
		if slices.ContainsFunc(texts, func(t Text) bool { return t.Secret == of.Name }) {
			users = append(users, "channel "+o.Name)
		}
	}
	return users
}
