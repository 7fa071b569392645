package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/engine/object"
	"xtimer/engine/scheduler"
	"xtimer/tier/memory"
)

// alertNode is a server whose calls fail, with an alerter; told gets what channels are sent.
func alertNode(t *testing.T) (n *testNode, told chan *alert.Delivery) {
	t.Helper()
	told = make(chan *alert.Delivery, 100)
	var a *alert.Alerter
	e, open := builtEngineOn(t, answers(400), nil, func(c *scheduler.Config) {
		log := slog.New(slog.DiscardHandler)
		c.Objects = object.New(c.Cold, time.Now, log)
		a = alert.New(alert.Config{Objects: c.Objects, Cold: c.Cold, Log: log, Metrics: metrics.NewSet(), Link: "http://console", Send: func(_ context.Context, d *alert.Delivery) alert.Result {
			told <- d
			return alert.Result{Delivered: true, Status: 200, Answer: "ok"}
		}})
		c.Ended = a.Ended
	})
	open()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return serve(t, e, ServerConfig{Alerts: a}), told
}

const (
	aChannel = `{"kind":"webhook","url":{"secret":"hook"},"secret":{"secret":"sign"},"lang":"zh","mention":["all"],"per_minute":10}`
	aRule    = `{"on":["failed","dead"],"match":{"name_prefix":"n"},"after":1,"within":"10m","by":"timer","channels":["ops"],"repeat":"4h","recovered":true,"severity":"critical"}`
)

// A failed task opens an incident, which is told, listed and acknowledged.
func TestAlerts(t *testing.T) {
	n, told := alertNode(t)
	n.do("PUT", "/v1/apps/a/alerts/rules/r", aRule).want(422) // no such channel
	n.do("PUT", "/v1/apps/a/alerts/channels/ops", aChannel).want(201)
	n.do("PUT", "/v1/apps/a/alerts/channels/ops", aChannel).want(200)
	if a := n.do("GET", "/v1/apps/a/alerts/channels/ops", "").want(200); a.str("url", "secret") != "hook" || a.str("mention", 0) != "all" {
		t.Error(a.body)
	}
	n.do("PUT", "/v1/apps/a/alerts/rules/r", aRule).want(201)
	if a := n.do("GET", "/v1/apps/a/alerts/rules/r", "").want(200); a.str("within") != "10m" || a.str("match", "name_prefix") != "n" {
		t.Error(a.body)
	}
	if a := n.do("DELETE", "/v1/apps/a/alerts/channels/ops", "").want(409); a.str("code") != "in_use" || !strings.Contains(a.str("detail"), "rule r") {
		t.Error(a.body)
	}
	id := n.do("POST", "/v1/timers", hourly("a", "n1", "")).str("id")
	n.do("POST", "/v1/timers/"+id+"/run", "").want(202)
	d := <-told
	if i := d.Message.Incident; d.App != "a" || d.Message.Type != "incident.opened" || i.By != "n1" || i.Severity != "critical" || i.Tasks[0].Code != 400 || d.Message.Link != "http://console" {
		t.Errorf("%+v %+v", d, i)
	}
	list := n.do("GET", "/v1/alerts/incidents?app=a&state=open", "").want(200)
	incident := list.str("incidents", 0, "id")
	if list.get("total") != 1.0 || incident != d.Message.Incident.ID {
		t.Error(list.body)
	}
	for range 3 {
		id := n.do("POST", "/v1/timers", hourly("a", fmt.Sprint("n", rand.Int()), "")).str("id")
		n.do("POST", "/v1/timers/"+id+"/run", "").want(202)
		<-told
	}
	var seen []string
	for path := "/v1/alerts/incidents?app=a&limit=3"; ; {
		a := n.do("GET", path, "").want(200)
		for _, i := range a.get("incidents").([]any) {
			seen = append(seen, i.(map[string]any)["id"].(string))
		}
		cursor, more := a.get("next_cursor").(string)
		if !more {
			break
		}
		path = "/v1/alerts/incidents?app=a&limit=3&cursor=" + cursor
	}
	if sorted := slices.Sorted(slices.Values(seen)); len(slices.Compact(sorted)) != 4 || len(seen) != 4 {
		t.Errorf("the pages have %q", seen)
	}
	opened := d.Message.Incident.Opened
	if a := n.do("GET", fmt.Sprintf("/v1/alerts/incidents?app=a&from=%d&to=%d", opened, opened+1), "").want(200); !strings.Contains(a.body, incident) {
		t.Error(a.body)
	}
	if a := n.do("GET", fmt.Sprintf("/v1/alerts/incidents?app=a&to=%d", opened), "").want(200); a.get("total") != 0.0 {
		t.Error(a.body)
	}
	n.do("GET", "/v1/alerts/incidents?app=a&from=2&to=1", "").want(400)
	n.do("GET", "/v1/alerts/incidents?app=a&cursor=x", "").want(400)
	if a := n.do("POST", "/v1/alerts/incidents/"+incident+"/ack", `{"note":"on it"}`).want(200); a.str("note") != "on it" || a.str("acked") == "" {
		t.Error(a.body)
	}
	if a := n.do("POST", "/v1/alerts/incidents/none/ack", "").want(404); a.str("detail") != "incident none not found" {
		t.Error(a.body)
	}
	until(t, func() bool {
		return n.do("POST", "/v1/apps/a/alerts/rules/r/preview", `{"from":"1h"}`).want(200).get("incidents") == 4.0
	})
	n.do("POST", "/v1/apps/a/alerts/rules/none/preview", "").want(404)
	for _, from := range []string{"59s", "169h"} {
		if a := n.do("POST", "/v1/apps/a/alerts/rules/r/preview", `{"from":"`+from+`"}`).want(422); a.str("errors", 0, "field") != "from" {
			t.Error(a.body)
		}
	}
	if a := n.do("POST", "/v1/apps/a/alerts/channels/ops/test", "").want(200); a.get("delivered") != true || (<-told).Message.Type != "test" {
		t.Error(a.body)
	}
	for range 5 {
		n.do("POST", "/v1/apps/a/alerts/channels/ops/test", "").want(200)
	}
	n.do("POST", "/v1/apps/a/alerts/channels/ops/test", "").want(429)
	n.do("PUT", "/v1/apps/a/alerts/mutes/m", `{"match":{"name_prefix":"n"},"until":`+until30m()+`,"reason":"a move"}`).want(201)
	n.do("GET", "/v1/apps/a/alerts/mutes", "").want(200)
	n.do("DELETE", "/v1/apps/a/alerts/rules/r", "").want(200)
	n.do("DELETE", "/v1/apps/a/alerts/channels/ops", "").want(200)
	until(t, func() bool { return n.do("GET", "/v1/alerts/incidents?state=open", "").get("total") == 0.0 })
}

func until30m() string {
	return `"` + engine.FormatInstant(time.Now().Add(30*time.Minute).UnixMilli()) + `"`
}

func TestAlertsRefused(t *testing.T) {
	n, _ := alertNode(t)
	n.do("PUT", "/v1/apps/a/alerts/channels/ops", aChannel).want(201)
	for body, code := range map[string]string{
		`{"channels":["ops"]}`:                                      "out_of_range",
		`{"on":["sunk"],"channels":["ops"]}`:                        "unknown_value",
		`{"on":["dead"],"channels":[]}`:                             "out_of_range",
		`{"on":["dead"],"channels":["none"]}`:                       "unknown_channel",
		`{"on":["dead"],"channels":["ops"],"streak":3,"after":2}`:   "streak_and_after",
		`{"on":["dead"],"channels":["ops"],"within":"1s"}`:          "out_of_range",
		`{"on":["dead"],"channels":["ops"],"repeat":"1s"}`:          "out_of_range",
		`{"on":["dead"],"channels":["ops"],"by":"x"}`:               "unknown_value",
		`{"on":["dead"],"channels":["ops"],"match":{"labels":"a"}}`: "unknown_field",
		`{"on":["dead"],"channels":["ops"],"match":{"label":"a"}}`:  "out_of_range",
		`{"on":["dead"],"channels":["ops"],"severity":"mild"}`:      "unknown_value",
	} {
		if a := n.do("PUT", "/v1/apps/a/alerts/rules/r", body); a.str("code") != code {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	for body, code := range map[string]string{
		`{"kind":"sms","url":"http://x"}`: "unknown_value", `{}`: "bad_url", `{"url":"ftp://x"}`: "bad_url",
		`{"url":"http://x","proxy":"x:3128"}`: "bad_url", `{"kind":"email","proxy":"http://p","smtp":{"host":"x","from":"a@x","to":["a@x"]}}`: "bad_url",
		`{"url":"http://x","lang":"fr"}`: "unknown_value", `{"url":"http://x","secret":"plain"}`: "wrong_type",
	} {
		if a := n.do("PUT", "/v1/apps/a/alerts/channels/c", body); a.str("code") != code {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	n.do("PUT", "/v1/apps/a/alerts/channels/far", `{"url":"http://x","proxy":{"secret":"p"}}`).want(201)
	if a := n.do("PUT", "/v1/apps/a/alerts/channels/far", `{"url":"http://x","proxy":"http://p:3128"}`).want(200); a.str("channel", "proxy") != "http://p:3128" {
		t.Error(a.body)
	}
	n.do("PUT", "/v1/apps/a/alerts/mutes/m", `{"until":"2020-01-01T00:00:00Z"}`).want(422)
	n.do("GET", "/v1/alerts/incidents?state=x", "").want(400)
}

// idleAlerts is an alerter that does not run.
// A channel of mails has a server instead of a URL, and a password that is the name of a secret.
func TestMailChannel(t *testing.T) {
	n, _ := alertNode(t)
	const path = "/v1/apps/a/alerts/channels/mail"
	channel := func(edit string) string {
		return `{"kind":"email","smtp":{"host":"mail.example.com","user":"me","password":{"secret":"pw"},"from":"Timer <t@example.com>","to":["a@example.com"]` + edit + `}}`
	}
	n.do("PUT", path, channel("")).want(201)
	a := n.do("GET", path, "").want(200)
	if a.get("smtp", "port") != 587.0 || a.str("smtp", "tls") != "starttls" || a.str("smtp", "password", "secret") != "pw" || a.get("per_minute") != 10.0 || a.get("url") != nil {
		t.Error(a.body)
	}
	for body, field := range map[string]string{
		`{"kind":"email"}`: "smtp",
		`{"kind":"email","url":"http://x/","smtp":{"host":"x","from":"a@x","to":["a@x"]}}`: "url",
		`{"kind":"slack","url":"http://x/","smtp":{"host":"x","from":"a@x","to":["a@x"]}}`: "smtp",
		`{"kind":"email","smtp":{"host":"x\r\nQUIT","from":"a@x","to":["a@x"]}}`:           "smtp.host",
		`{"kind":"email","smtp":{"host":"x","from":"a@x\r\nBcc: b@x","to":["a@x"]}}`:       "smtp.from",
		`{"kind":"email","smtp":{"host":"x","from":"a@x","to":["a@x, b@x"]}}`:              "smtp.to",
		channel(`,"tls":"none"`):              "smtp.tls",
		channel(`,"tls":"starttls","port":0`): "smtp.port",
	} {
		if a := n.do("PUT", path, body).want(422); a.str("errors", 0, "field") != field {
			t.Errorf("%s: %s", body, a.body)
		}
	}
}

func idleAlerts(e *scheduler.Scheduler) *alert.Alerter {
	return alert.New(alert.Config{Objects: e.Objects(), Cold: memory.NewCold(), Log: slog.New(slog.DiscardHandler), Metrics: metrics.NewSet()})
}

// A page of incidents ends at some 2 MiB of what is rendered, and the next one goes on from there.
func TestPagesOfIncidents(t *testing.T) {
	n, _ := alertNode(t)
	for i := range 700 {
		x := alert.Incident{
			ID: fmt.Sprint("i", i), Rule: "r", RuleApp: "a", App: "a", By: strings.Repeat(`"`, 256), Severity: "warning", On: []string{"dead"},
			Opened: int64(i + 1), Last: 5, Closed: time.Now().UnixMilli(), Why: "recovered", Note: strings.Repeat("\x01", 1000),
		}
		b, err := json.Marshal(&x)
		if err == nil {
			_, _, err = n.s.e.Objects().Put(t.Context(), engine.ObjectKey{Kind: "alert_incident", App: "a", Name: x.ID}, b, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{100, 1000} {
		if got := n.pages(fmt.Sprint("/v1/alerts/incidents?limit=", limit), "incidents", "id", 10_000); got != 700 {
			t.Errorf("limit %d: %d incidents", limit, got)
		}
	}
}

// One preview of an app and two in all may run.
func TestPreviewsTakeTurns(t *testing.T) {
	n, _ := alertNode(t)
	n.do("PUT", "/v1/apps/a/alerts/channels/ops", aChannel).want(201)
	n.do("PUT", "/v1/apps/a/alerts/rules/r", aRule).want(201)
	preview := func() answer { return n.do("POST", "/v1/apps/a/alerts/rules/r/preview", "") }
	leave, err := n.s.previewing.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := preview().want(429); got.str("code") != "previewing" || got.header["Retry-After"] == "" {
		t.Error(got.body)
	}
	leave()
	preview().want(200)
}
