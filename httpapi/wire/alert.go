package wire

import (
	"encoding/json"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/alert"
)

// The objects of alerts: each is decoded over its defaults, and rendered as it is stored.

var ruleFields = []Field[alert.Rule]{
	{"on", func(d *Decoder, v *alert.Rule) { d.texts(&v.On) }},
	{"match", func(d *Decoder, v *alert.Rule) { Object(d, &v.Match, matchFields) }},
	{"after", func(d *Decoder, v *alert.Rule) { d.Count(&v.After, 1, 10_000) }},
	{"within", func(d *Decoder, v *alert.Rule) { d.positive(&v.Within) }},
	{"streak", func(d *Decoder, v *alert.Rule) { d.Count(&v.Streak, 2, 1000) }},
	{"late", func(d *Decoder, v *alert.Rule) { d.positive(&v.Late) }},
	{"over", func(d *Decoder, v *alert.Rule) { d.Count(&v.Over, 1, 1_000_000_000) }},
	{"for", func(d *Decoder, v *alert.Rule) { d.positive(&v.For) }},
	{"by", func(d *Decoder, v *alert.Rule) { d.Text(&v.By) }},
	{"channels", func(d *Decoder, v *alert.Rule) { d.texts(&v.Channels) }},
	{"repeat", func(d *Decoder, v *alert.Rule) { d.duration(&v.Repeat) }},
	{"recovered", func(d *Decoder, v *alert.Rule) { d.Flag(&v.Recovered) }},
	{"severity", func(d *Decoder, v *alert.Rule) { d.Text(&v.Severity) }},
}

var matchFields = []Field[alert.Match]{
	{"name_prefix", func(d *Decoder, v *alert.Match) { d.Text(&v.NamePrefix) }},
	{"label", func(d *Decoder, v *alert.Match) { d.Text(&v.Label) }},
	{"target", func(d *Decoder, v *alert.Match) { d.Text(&v.Target) }},
}

var muteFields = []Field[alert.Mute]{
	{"match", func(d *Decoder, v *alert.Mute) { Object(d, &v.Match, matchFields) }},
	{"until", func(d *Decoder, v *alert.Mute) { d.Instant(&v.Until) }},
	{"reason", func(d *Decoder, v *alert.Mute) { d.Text(&v.Reason) }},
}

var channelFields = []Field[alert.Channel]{
	{"kind", func(d *Decoder, v *alert.Channel) { d.Text(&v.Kind) }},
	{"url", func(d *Decoder, v *alert.Channel) { d.TextOrSecret(&v.URL.Value, &v.URL.Secret) }},
	{"smtp", func(d *Decoder, v *alert.Channel) {
		to := alert.NewSMTP()
		v.SMTP = &to
		Object(d, v.SMTP, smtpFields)
	}},
	{"secret", func(d *Decoder, v *alert.Channel) { d.secret(&v.Secret.Secret) }},
	{"proxy", func(d *Decoder, v *alert.Channel) { d.TextOrSecret(&v.Proxy.Value, &v.Proxy.Secret) }},
	{"lang", func(d *Decoder, v *alert.Channel) { d.Text(&v.Lang) }},
	{"mention", func(d *Decoder, v *alert.Channel) { d.texts(&v.Mention) }},
	{"per_minute", func(d *Decoder, v *alert.Channel) { d.Count(&v.PerMinute, 1, 1000) }},
}

var smtpFields = []Field[alert.SMTP]{
	{"host", func(d *Decoder, v *alert.SMTP) { d.Text(&v.Host) }},
	{"port", func(d *Decoder, v *alert.SMTP) { d.Count(&v.Port, 1, 65535) }},
	{"tls", func(d *Decoder, v *alert.SMTP) { d.Text(&v.TLS) }},
	{"user", func(d *Decoder, v *alert.SMTP) { d.Text(&v.User) }},
	{"password", func(d *Decoder, v *alert.SMTP) { d.secret(&v.Password.Secret) }},
	{"from", func(d *Decoder, v *alert.SMTP) { d.Text(&v.From) }},
	{"to", func(d *Decoder, v *alert.SMTP) { d.texts(&v.To) }},
}

// PreviewFields are those of the preview of a rule: from how long ago on it looks.
var PreviewFields = []Field[time.Duration]{{"from", func(d *Decoder, v *time.Duration) { d.positive(v) }}}

// texts reads an array of strings.
func (d *Decoder) texts(to *[]string) {
	list := []string{}
	d.List(func(int) {
		var s string
		d.Text(&s)
		list = append(list, s)
	})
	*to = list
}

// DecodeRule reads a rule; it does not check whether the rule can be in force.
func DecodeRule(b []byte) (alert.Rule, error) {
	r := alert.NewRule()
	r.After = 0 // not given
	err := Decode(b, func(d *Decoder) { Object(d, &r, ruleFields) })
	if err == nil && r.Streak != 0 && r.After != 0 {
		err = engine.Invalid("streak", "streak_and_after", "must not be given together with after")
	}
	r.After = max(r.After, 1)
	return r, err
}

// DecodeMute reads a mute likewise.
func DecodeMute(b []byte) (m alert.Mute, err error) {
	return m, Decode(b, func(d *Decoder) { Object(d, &m, muteFields) })
}

// DecodeChannel reads a channel likewise.
func DecodeChannel(b []byte) (alert.Channel, error) {
	c := alert.Channel{Kind: "webhook", Lang: "en"}
	return c, Decode(b, func(d *Decoder) { Object(d, &c, channelFields) })
}

func textList(b []byte, name string, list []string) []byte {
	b = append(Member(b, name), '[')
	for _, s := range list {
		b = AppendText(Comma(b), s)
	}
	return append(b, ']')
}

func appendMatch(b []byte, m *alert.Match) []byte {
	b = append(Member(b, "match"), '{')
	for _, x := range [...]struct{ name, v string }{{"name_prefix", m.NamePrefix}, {"label", m.Label}, {"target", m.Target}} {
		if x.v != "" {
			b = TextMember(b, x.name, x.v)
		}
	}
	return append(b, '}')
}

func secretMember(b []byte, name string, t alert.Text) []byte {
	if t.Secret == "" {
		return TextMember(b, name, t.Value)
	}
	return append(TextMember(append(Member(b, name), '{'), "secret", t.Secret), '}')
}

// AppendRule appends the members of a stored rule.
func AppendRule(b, stored []byte) []byte {
	var r alert.Rule
	_ = json.Unmarshal(stored, &r) // what does not decode has no members
	b = appendMatch(textList(b, "on", r.On), &r.Match)
	if r.Streak != 0 {
		b = IntMember(b, "streak", int64(r.Streak))
	} else {
		b = DurationMember(IntMember(b, "after", int64(r.After)), "within", r.Within)
	}
	if slices.Contains(r.On, "late") {
		b = DurationMember(b, "late", r.Late)
	}
	if slices.Contains(r.On, "backlog") {
		b = DurationMember(IntMember(b, "over", int64(r.Over)), "for", r.For)
	}
	b = textList(TextMember(b, "by", r.By), "channels", r.Channels)
	b = BoolMember(DurationMember(b, "repeat", r.Repeat), "recovered", r.Recovered)
	return TextMember(b, "severity", r.Severity)
}

// AppendMute appends the members of a stored mute.
func AppendMute(b, stored []byte) []byte {
	var m alert.Mute
	_ = json.Unmarshal(stored, &m) // likewise
	b = TimeMember(appendMatch(b, &m.Match), "until", m.Until)
	return TextMember(b, "reason", m.Reason)
}

// AppendChannel appends the members of a stored channel.
func AppendChannel(b, stored []byte) []byte {
	var c alert.Channel
	_ = json.Unmarshal(stored, &c) // likewise
	b = TextMember(b, "kind", c.Kind)
	if c.SMTP != nil {
		b = appendSMTP(b, c.SMTP)
	} else {
		b = secretMember(b, "url", c.URL)
	}
	if !c.Secret.IsZero() {
		b = secretMember(b, "secret", c.Secret)
	}
	if !c.Proxy.IsZero() {
		b = secretMember(b, "proxy", c.Proxy)
	}
	b = textList(TextMember(b, "lang", c.Lang), "mention", c.Mention)
	return IntMember(b, "per_minute", int64(c.PerMinute))
}

// AppendDeliveries appends the member deliveries.
func AppendDeliveries(b []byte, all []alert.Delivered) []byte {
	b = append(Member(b, "deliveries"), '[')
	for i := range all {
		d := &all[i]
		b = TextMember(TextMember(TimeMember(append(Comma(b), '{'), "at", d.At), "id", d.ID), "type", d.Type)
		if d.Incident != "" {
			b = TextMember(TextMember(b, "incident", d.Incident), "by", d.By)
		}
		if d.Count != 0 {
			b = IntMember(b, "count", int64(d.Count))
		}
		b = TextMember(IntMember(b, "attempts", int64(d.Attempts)), "outcome", d.Outcome)
		if d.Status != 0 {
			b = TextMember(IntMember(b, "status", int64(d.Status)), "answer", d.Answer)
		}
		if d.Error != "" {
			b = TextMember(b, "error", d.Error)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendSMTP(b []byte, s *alert.SMTP) []byte {
	b = TextMember(append(Member(b, "smtp"), '{'), "host", s.Host)
	b = TextMember(IntMember(b, "port", int64(s.Port)), "tls", s.TLS)
	if s.User != "" {
		b = secretMember(TextMember(b, "user", s.User), "password", s.Password)
	}
	return append(textList(TextMember(b, "from", s.From), "to", s.To), '}')
}

// AppendIncident appends an incident.
func AppendIncident(b []byte, i *alert.Incident) []byte {
	b = TextMember(append(b, '{'), "id", i.ID)
	b = TextMember(TextMember(TextMember(b, "app", i.App), "rule", i.Rule), "rule_app", i.RuleApp)
	b = textList(TextMember(TextMember(b, "by", i.By), "severity", i.Severity), "on", i.On)
	state := "open"
	if i.Closed != 0 {
		state = "closed"
	}
	b = IntMember(TextMember(b, "state", state), "count", i.Count)
	b = TimeMember(TimeMember(b, "opened", i.Opened), "last", i.Last)
	if i.Closed != 0 {
		b = TextMember(TimeMember(b, "closed", i.Closed), "why", i.Why)
	}
	if i.Acked != 0 {
		b = TextMember(TextMember(TimeMember(b, "acked", i.Acked), "acked_by", i.AckedBy), "note", i.Note)
	}
	b = append(Member(BoolMember(b, "muted", i.Muted), "tasks"), '[')
	for k := range i.Tasks {
		t := &i.Tasks[k]
		b = TextMember(append(Comma(b), '{'), "key", t.Key)
		b = TextMember(TimeMember(TextMember(b, "name", t.Name), "due", t.Due), "status", t.Status)
		if t.Reason != "" {
			b = TextMember(b, "reason", t.Reason)
		}
		if t.Code != 0 {
			b = IntMember(b, "code", int64(t.Code))
		}
		if t.Class != "" {
			b = TextMember(b, "error_class", t.Class)
		}
		b = append(b, '}')
	}
	return append(b, ']', '}')
}
