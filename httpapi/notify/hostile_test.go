package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/engine/object"
	"xtimer/tier/memory"
)

// hostile is a name of a user that mentions, marks up, links, begins a line and a header.
const hostile = "x\r\nBcc: e@evil.test\r\n\r\n# <!channel> <@all> <at user_id=\"all\"></at> @all **b** `c` [l](http://evil.test) &lt; \u202e\u2028~|"

// forbidden must not be in what people are told.
var forbidden = []string{"<!", "<@", "<at", "@all", "**", "`", "](", "://evil", "&lt;", "\u202e", "\u2028", "\r", "Bcc: e@"}

// hostileMessages are messages of all kinds in which every name of a user is hostile.
func hostileMessages() []alert.Message {
	i := alert.Incident{
		ID: "1", Rule: hostile, RuleApp: "shop", App: hostile, By: hostile, Severity: "warning", On: []string{"dead"}, Opened: 1, Count: 2,
		Tasks: []alert.Task{{Key: "1_2", Name: hostile, Due: 1, Status: "dead", Code: 503, Class: "status"}},
	}
	state, closed := i, i
	state.State, state.On, state.Tasks = "paused", []string{"paused"}, nil
	closed.Closed, closed.Why, closed.Note = 2, "recovered", hostile
	return []alert.Message{
		{Type: "incident.opened", ID: "al_1_1", Incident: &i},
		{Type: "incident.opened", ID: "al_1_1", Incident: &state},
		{Type: "incident.repeated", ID: "al_1_2", Incident: &i},
		{Type: "incident.recovered", ID: "al_1_3", Incident: &closed},
		{Type: "digest", ID: "al_digest", Count: 2, Incidents: []alert.Incident{i, state}},
	}
}

// Names of users steer no channel: in no message of no kind do they mention, mark up or link,
// and they add no line.
func TestHostileNames(t *testing.T) {
	for _, m := range hostileMessages() {
		lines := map[string]int{"digest": 3}[m.Type]
		if m.Incident != nil {
			lines = 2
			if m.Incident.State == "" {
				lines = 4
			}
			if m.Incident.Closed != 0 {
				lines++
			}
		}
		check := func(kind, title, text string) {
			t.Helper()
			for _, part := range forbidden {
				if strings.Contains(title+text, part) {
					t.Errorf("%s %s has %q: %s", kind, m.Type, part, title+text)
				}
			}
			if n := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1; n != lines || strings.Contains(title, "\n") {
				t.Errorf("%s %s has %d lines, want %d: %q", kind, m.Type, n, lines, text)
			}
		}
		for kind, where := range map[string][]string{
			"slack": {"text"}, "wecom": {"markdown", "content"}, "dingtalk": {"markdown", "text"}, "feishu": {"content", "text"},
		} {
			_, got := sends(t, kind, 200, "ok", func(d *alert.Delivery) { d.Message = m })
			if title, _ := at(got.json, "markdown", "title").(string); kind == "dingtalk" && title == "" {
				t.Errorf("%s has no title", m.Type)
			} else if text, _ := at(got.json, where...).(string); text == "" {
				t.Errorf("%s %s: %s", kind, m.Type, got.body)
			} else {
				check(kind, title, text)
			}
		}
		mail, err := mailOf(&alert.Delivery{Message: m, Channel: alert.Channel{Lang: "en", SMTP: &alert.SMTP{From: "x@example.com", To: []string{"a@example.com"}}}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		parts := mail.GetParts()
		text, err := parts[0].GetContent()
		if err != nil || len(parts) != 1 {
			t.Fatal(err)
		}
		check("email", title(&alert.Delivery{Message: m, Channel: alert.Channel{Lang: "en"}}), string(text))
		_, got := sends(t, "webhook", 200, "", func(d *alert.Delivery) { d.Message = m })
		if by, _ := at(got.json, "incident", "by").(string); m.Incident != nil && (by != hostile || strings.ContainsAny(got.body, "\r\n<>\u2028")) {
			t.Errorf("the webhook gets %s", got.body)
		}
	}
}

func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// Of a channel whose URL, secret and password are secrets, nothing of these is in what the
// server answers, logs, counts and stores, whatever the channel answers.
func TestSecretsStay(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusBadRequest)
		key := strings.TrimPrefix(r.URL.Path, "/hook/")
		if !bytes.Contains(b, []byte(`{"type":`)) { // a webhook, which has no secret here
			fmt.Fprint(w, "MARK-secret-sign|")
		}
		fmt.Fprintf(w, "%s|%s|%s|%s|http://%s%s|%s", r.RequestURI, r.URL.Path, key, r.URL.Query().Get("access_token"), r.Host, r.RequestURI, b)
		fmt.Fprint(w, strings.Repeat(".", max(0, 1015-len(key)*4))+key) // around the end of what is shown
	}))
	defer echo.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	values := map[string]string{
		"url": echo.URL + "/hook/MARK-secret-path?access_token=MARK-secret-token", "dead": "http://" + closed.Addr().String() + "/MARK-secret-path", "bad": "http://MARK secret\x7f/",
		"sign": "MARK-secret-sign", "password": "MARK-secret-password",
	}
	var mu sync.Mutex
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(b)
	}), nil))
	cold, counted := memory.NewCold(), metrics.NewSet()
	set := object.New(cold, time.Now, log)
	sender := New(Config{Secret: func(_, name string) (string, bool) { v, ok := values[name]; return v, ok }})
	a := alert.New(alert.Config{Objects: set, Cold: cold, Log: log, Metrics: counted, Send: sender.Send})
	if err := set.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(kind, name string, v any) {
		t.Helper()
		body, err := json.Marshal(v)
		if err == nil {
			_, _, err = set.Put(t.Context(), engine.ObjectKey{Kind: kind, App: "shop", Name: name}, body, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rule := alert.NewRule()
	rule.On = []string{"dead"}
	for _, kind := range []string{"webhook", "slack", "wecom", "dingtalk", "feishu"} {
		for _, to := range []string{"url", "dead", "bad"} {
			c := alert.Channel{Kind: kind, URL: alert.Text{Secret: to}, Lang: "en", PerMinute: 60}
			if kind != "webhook" { // whose secret is base64
				c.Secret.Secret = "sign"
			}
			put(alert.ChannelKind, kind+"-"+to, c)
			if len(rule.Channels) < 9 {
				rule.Channels = append(rule.Channels, kind+"-"+to)
			}
		}
	}
	smtp := alert.NewSMTP()
	smtp.Host, smtp.Port, smtp.User, smtp.Password.Secret, smtp.From, smtp.To = "127.0.0.1", closed.Addr().(*net.TCPAddr).Port, "u", "password", "x@example.com", []string{"a@example.com"}
	put(alert.ChannelKind, "mail", alert.Channel{Kind: "email", SMTP: &smtp, Lang: "en", PerMinute: 60})
	rule.Channels = append(rule.Channels, "mail")
	put(alert.RuleKind, "r", rule)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx)
	}()
	a.Ended(&engine.Task{Key: engine.Key{Timer: 1, Due: 1}, App: "shop", Name: "n", Status: engine.Dead, Ended: time.Now().UnixMilli()})
	var all strings.Builder
	for _, name := range rule.Channels {
		for len(a.Deliveries("shop", name)) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Fprintf(&all, "%+v\n", a.Deliveries("shop", name))
	}
	for i, o := range set.List(alert.ChannelKind, "shop") {
		if i < 6 {
			r, err := a.Test(t.Context(), "shop", o.Name)
			fmt.Fprintf(&all, "%+v %v\n", r, err)
		}
		all.Write(o.Body)
	}
	cancel()
	<-ended
	fmt.Fprintf(&all, "%+v\n", a.Incidents(""))
	counted.WritePrometheus(&all)
	mu.Lock()
	all.Write(logged.Bytes())
	mu.Unlock()
	for line := range strings.Lines(all.String()) {
		if strings.Contains(line, "MARK") {
			t.Errorf("a secret is in %.600s", line)
		}
	}
	if !strings.Contains(all.String(), "an alert channel refuses a message") || strings.Count(all.String(), "Outcome:") < len(rule.Channels) {
		t.Errorf("nothing was refused: %s", all.String())
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
