package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"xtimer/engine/alert"
)

// seen is a request that a channel got.
type seen struct {
	header http.Header
	query  url.Values
	body   string
	json   map[string]any
}

// sends sends a message to a channel that answers so, and returns what it got.
func sends(t *testing.T, kind string, status int, answer string, edit func(d *alert.Delivery)) (alert.Result, seen) {
	t.Helper()
	var got seen
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = seen{r.Header, r.URL.Query(), string(b), nil}
		_ = json.Unmarshal(b, &got.json)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	defer target.Close()
	s := New(Config{Secret: func(_, name string) (string, bool) { return "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=", name == "s" }})
	d := &alert.Delivery{App: "shop", Channel: alert.Channel{Kind: kind, URL: alert.Text{Value: target.URL + "/?key=1"}, Lang: "en"}}
	d.Message = alert.Message{Type: "incident.opened", ID: "al_1_1", Incident: &alert.Incident{
		ID: "1", Rule: "r", App: "shop", By: "<@all> *x*\n@all \u202ehttp://evil", Severity: "critical", On: []string{"dead"}, Opened: 1763640000000, Count: 3,
		Tasks: []alert.Task{{Key: "1_2", Name: "n", Due: 1763640000000, Status: "dead", Reason: "max_attempts", Code: 503, Class: "status"}},
	}}
	if edit != nil {
		edit(d)
	}
	return s.Send(t.Context(), d), got
}

func signed(d *alert.Delivery) { d.Channel.Secret = alert.Text{Secret: "s"} }

func hmacOf(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestWebhook(t *testing.T) {
	r, got := sends(t, "webhook", 204, "", signed)
	if !r.Delivered || got.json["type"] != "incident.opened" || got.json["id"] != "al_1_1" {
		t.Errorf("%+v %s", r, got.body)
	}
	tasks, _ := got.json["tasks"].([]any)
	if want := `{"code":503,"due":"2025-11-20T12:00:00.000Z","error_class":"status","key":"1_2","name":"n","reason":"max_attempts","status":"dead"}`; len(tasks) != 1 || string(marshal(tasks[0])) != want {
		t.Errorf("%s, want %s", marshal(tasks), want)
	}
	want := "v1," + hmacOf("secret-secret-secret", "al_1_1."+got.header.Get("Webhook-Timestamp")+"."+got.body)
	if got.header.Get("Webhook-Signature") != want || got.header.Get("Webhook-Id") != "al_1_1" {
		t.Errorf("%v", got.header)
	}
	_, got = sends(t, "webhook", 204, "", func(d *alert.Delivery) {
		i := d.Message.Incident
		d.Message.Type, i.By, i.Closed, i.Why = "incident.recovered", "report", i.Opened+90_500, "recovered"
	})
	if want := `{"app":"shop","by":"report","closed":"2025-11-20T12:01:30.500Z","count":3,"duration_ms":90500,"id":"1","on":["dead"],"opened":"2025-11-20T12:00:00.000Z","rule":"r","severity":"critical","why":"recovered"}`; string(marshal(got.json["incident"])) != want {
		t.Errorf("%s, want %s", marshal(got.json["incident"]), want)
	}
	if r, _ := sends(t, "webhook", 302, "", nil); r.Delivered || !r.Final {
		t.Errorf("a redirect: %+v", r)
	}
	if r, _ := sends(t, "webhook", 503, "", nil); r.Delivered || r.Final || r.After != 7*time.Second {
		t.Errorf("503: %+v", r)
	}
	if r, _ := sends(t, "webhook", 204, "", func(d *alert.Delivery) { d.Channel.Secret = alert.Text{Secret: "none"} }); r.Error != "secret_missing" || r.Secret != "none" {
		t.Errorf("%+v", r)
	}
}

// Names of users neither mention nor mark up anything, and the robots are signed and judged
// as each wants it.
func TestRobots(t *testing.T) {
	const secret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	for _, x := range []struct {
		kind, answer string
		want         alert.Result
	}{
		{"slack", "ok", alert.Result{Delivered: true}},
		{"slack", "no_text", alert.Result{Final: true}},
		{"wecom", `{"errcode":0}`, alert.Result{Delivered: true}},
		{"wecom", `{"errcode":45009}`, alert.Result{After: time.Minute}},
		{"wecom", `{"errcode":93000}`, alert.Result{Final: true}},
		{"wecom", `{"errcode":-1}`, alert.Result{}},
		{"wecom", `{"errcode":null}`, alert.Result{}},
		{"wecom", `<html>`, alert.Result{}},
		{"dingtalk", `{"errcode":0,"code":"ok"}`, alert.Result{Delivered: true}},
		{"dingtalk", `{"errcode":0}`, alert.Result{Delivered: true}},
		{"dingtalk", `{"errcode":310000}`, alert.Result{Final: true}},
		{"dingtalk", `{"errcode":130101}`, alert.Result{After: 10 * time.Minute}},
		{"feishu", `{"code":0}`, alert.Result{Delivered: true}},
		{"feishu", `{"code":19021}`, alert.Result{Final: true}},
		{"feishu", `{"code":11232}`, alert.Result{}},
	} {
		r, got := sends(t, x.kind, 200, x.answer, signed)
		if r.After < 20*time.Second && strings.Contains(x.answer, "11232") {
			r.After = 0 // it is spread
		}
		if r.Delivered != x.want.Delivered || r.Final != x.want.Final || r.After != x.want.After || r.Answer != x.answer {
			t.Errorf("%s %s: %+v", x.kind, x.answer, r)
		}
		var texts string
		_ = json.Unmarshal([]byte(got.body), &got.json)
		for _, v := range got.json {
			b, _ := json.Marshal(v)
			texts += string(b)
		}
		if strings.Contains(texts, "://evil") || strings.Contains(texts, "\u202e") || strings.Contains(texts, "@all") || strings.Contains(texts, `\u003c`) || strings.Contains(texts, "*x*") || !strings.Contains(texts, "shop/") {
			t.Errorf("%s says %s", x.kind, got.body)
		}
		switch x.kind {
		case "dingtalk":
			stamp := got.query.Get("timestamp")
			if got.query.Get("sign") != hmacOf(secret, stamp+"\n"+secret) || len(stamp) != 13 || got.query.Get("key") != "1" {
				t.Errorf("%v", got.query)
			}
		case "feishu":
			if stamp, _ := got.json["timestamp"].(string); got.json["sign"] != hmacOf(stamp+"\n"+secret, "") || len(stamp) != 10 {
				t.Errorf("%s", got.body)
			}
		}
	}
}

// A long answer is judged whole, and shown in part.
func TestLongAnswer(t *testing.T) {
	r, _ := sends(t, "dingtalk", 200, `{"errmsg":"`+strings.Repeat("x", 2000)+`","errcode":0}`, nil)
	if !r.Delivered || len(r.Answer) > mostAnswer {
		t.Errorf("%+v", r)
	}
}

// A message of many long names is no longer than its channel takes, and ends with the link and the
// mentions.
func TestLongNames(t *testing.T) {
	for kind, most := range map[string]int{"wecom": 4096, "dingtalk": 16 << 10, "feishu": 16 << 10} {
		_, got := sends(t, kind, 200, "", func(d *alert.Delivery) {
			name := strings.Repeat("失败🔥", 100)
			for range 20 {
				d.Message.Incidents = append(d.Message.Incidents, alert.Incident{App: "shop", By: name, Count: 1})
			}
			d.Message.Type, d.Message.Count, d.Message.Incident = "digest", 1000, nil
			d.Message.Link, d.Channel.Mention = "https://x.example.com", []string{"zhang", strings.Repeat("x", 5000), "all"}
		})
		text := ""
		for _, where := range [][]string{{"markdown", "content"}, {"markdown", "text"}, {"content", "text"}} {
			if s, _ := at(got.json, where...).(string); s != "" {
				text = s
			}
		}
		_, end, _ := strings.Cut(text, "\nhttps://x.example.com ")
		all := map[string]string{"wecom": "<@all>", "dingtalk": "@all", "feishu": `<at user_id="all"></at>`}[kind]
		if len(text) > most || !strings.HasSuffix(end, all) || !strings.Contains(end, "zhang") || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes, which end in %q", kind, len(text), end)
		}
	}
}

func TestMentionsAndLanguage(t *testing.T) {
	_, got := sends(t, "wecom", 200, `{"errcode":0}`, func(d *alert.Delivery) {
		d.Channel.Mention, d.Channel.Lang = []string{"all", "zhang"}, "zh"
	})
	text := got.json["markdown"].(map[string]any)["content"].(string)
	if !strings.Contains(text, "<@all> <@zhang>") || !strings.Contains(text, "出现失败") {
		t.Error(text)
	}
}

// A message to Slack has blocks: a header, the details, and the mentions with the link.
func TestSlackBlocks(t *testing.T) {
	blocks := func(edit func(d *alert.Delivery)) (texts []string) {
		t.Helper()
		_, got := sends(t, "slack", 200, "ok", edit)
		list, _ := got.json["blocks"].([]any)
		for i, b := range list {
			kind, text := at(b, "type"), at(b, "text", "text")
			if want := map[bool]string{true: "header", false: "section"}[i == 0]; kind != want || i > 0 && at(b, "text", "verbatim") != true {
				t.Errorf("block %d is %v", i, b)
			}
			texts = append(texts, text.(string))
		}
		return texts
	}
	got := blocks(func(d *alert.Delivery) {
		d.Message.Link, d.Channel.Mention, d.Message.Incident.By = "https://x.example.com", []string{"all", "U1"}, "report"
	})
	want := []string{"xtimer: shop/report failing", "rule: r (critical)\nfailures: 3\nlast: 2025-11-20T12:00:00.000Z dead 503 status", "<!channel> <@U1> <https://x.example.com>"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = blocks(func(d *alert.Delivery) { // the end mentions nobody, and says how long the incident was
		d.Message.Type, d.Channel.Mention, d.Message.Incident.By = "incident.recovered", []string{"all"}, "report"
		d.Message.Incident.Closed = d.Message.Incident.Opened + 3_725_400
	})
	if len(got) != 2 || !strings.Contains(got[1], "\nlasted: 1h2m5s\n") {
		t.Errorf("%q", got)
	}
	for _, m := range hostileMessages() {
		for i, text := range blocks(func(d *alert.Delivery) { d.Message = m }) {
			for _, part := range forbidden {
				if strings.Contains(text, part) || i == 0 && (len(text) > mostHeader || strings.Contains(text, "\n")) {
					t.Errorf("block %d of %s has %q: %s", i, m.Type, part, text)
				}
			}
		}
	}
}

func TestCut(t *testing.T) {
	if got := cut(strings.Repeat("失", 2000), 4096); len(got) > 4096 || !strings.HasSuffix(got, "失…") {
		t.Errorf("%d bytes", len(got))
	}
}

// An address that may not be called is not dialled, and no error has the URL.
func TestForbidden(t *testing.T) {
	s := New(Config{Allowed: func(string) error { return errors.New("may not be called") }})
	d := &alert.Delivery{Channel: alert.Channel{Kind: "webhook", URL: alert.Text{Value: "http://127.0.0.1:1/secret-path"}, Lang: "en"}}
	if r := s.Send(t.Context(), d); r.Delivered || !strings.Contains(r.Error, "may not be called") || strings.Contains(r.Error, "secret-path") {
		t.Errorf("%+v", r)
	}
}
