package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// putAlert makes a channel, a rule or a mute.
func (n *node) putAlert(app, kind, name, definition string) {
	n.t.Helper()
	if _, err := n.api.PutAlert(n.t.Context(), app, kind, name, json.RawMessage(definition)); err != nil {
		n.t.Fatal(err)
	}
}

// incident makes a timer whose task fails, and waits for its incident by the rule of an app.
func (n *node) incident(app, name string) client.Incident {
	n.t.Helper()
	n.run(n.timer(app, name, "/no").ID)
	var found client.Incident
	n.until(func() bool {
		for i, err := range n.api.Incidents(n.t.Context(), client.IncidentFilter{App: app, State: "open"}) {
			if err != nil {
				n.t.Fatal(err)
			}
			if found = i; i.By == name {
				return true
			}
		}
		return false
	})
	return found
}

// alerting gives an app channels, a rule and a mute.
func (n *node) alerting(app string) {
	n.putAlert(app, "channels", "ops", `{"kind":"slack","url":"https://hooks.slack.test/services/T0/B0/very-secret"}`)
	n.putAlert(app, "channels", "bad", `{"kind":"feishu","url":"http://robot.test/refuses"}`)
	n.putAlert(app, "channels", "mail", `{"kind":"email","smtp":{"host":"smtp.test","user":"u","password":{"secret":"mail"},"from":"x@test.test","to":["a@test.test"]}}`)
	n.putAlert(app, "rules", "all", `{"on":["dead","failed"],"channels":["ops","bad"],"severity":"critical"}`)
	n.putAlert(app, "rules", "twice", `{"on":["failed"],"match":{"name_prefix":"report"},"after":2,"channels":["ops"]}`)
	n.putAlert(app, "mutes", "night", `{"match":{"name_prefix":"test-"},"until":`+quoted(time.Now().Add(240*time.Hour).UTC().Format(time.RFC3339))+`,"reason":`+quoted("why"+evil)+`}`)
}

// TestAlerts: incidents are shown and acknowledged, rules say how often they would have fired,
// a channel is tested; nothing shows the URL of a robot, and a token that reads has no buttons.
func TestAlerts(t *testing.T) {
	n := serve(t, tokens...)
	n.alerting("shop")
	i := n.incident("shop", "name"+evil)
	v := n.signedIn("shop-write")
	var page string
	n.until(func() bool { // the failure is in history
		page = v.get("/alerts?app=bank").body
		return strings.Contains(page, "would have fired 1 time<")
	})
	for _, want := range []string{
		"name&lt;script", "· shop", ">critical<", `id="ack-0"`, "https://hooks.slack.test/…", `id="test-ops"`,
		"smtp.test:587 → a@test.test", "why&lt;script", "<code>report…</code>", "2 in 10m",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "very-secret") || strings.Contains(page, "<script>d") || strings.Contains(page, "<img") {
		t.Error("the page has a secret or a script in it")
	}
	test := func(name string) string {
		return v.post("/alerts", url.Values{"of": {"shop"}, "name": {name}, "action": {"test"}}).body
	}
	if got := test("ops"); !strings.Contains(got, "The channel ops took the test message.") {
		t.Error(got)
	}
	if got := test("bad"); !strings.Contains(got, "The channel bad did not take the test message. the answer has the code 19021 (200)") || !strings.Contains(got, "&lt;script") || strings.Contains(got, "<script>d") {
		t.Error(got)
	}
	page = v.get("/alerts").body
	for _, want := range []string{"refused by the channel", "Last messages to bad", `<td data-label="Message">test</td>`, "&#34;code&#34;:19021", "the answer has the code 19021"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if a := v.post("/alerts", url.Values{"of": {"shop"}, "action": {"mute"}, "prefix": {"test"}, "label": {""}, "for": {"4h"}, "reason": {"moving"}}); a.status != http.StatusSeeOther {
		t.Errorf("%d %s", a.status, a.body)
	}
	var mutes []string
	for b, err := range n.api.Alerts(t.Context(), "shop", "mutes") {
		if err != nil {
			t.Fatal(err)
		}
		mutes = append(mutes, string(b))
	}
	if len(mutes) != 2 || !strings.Contains(mutes[0], `"reason":"moving"`) || !strings.Contains(mutes[0], `"match":{"name_prefix":"test"}`) {
		t.Errorf("%q", mutes)
	}
	if a := v.post("/alerts", url.Values{"of": {"shop"}, "name": {"night"}, "action": {"unmute"}}); a.status != http.StatusSeeOther || strings.Contains(v.get("/alerts").body, "unmute-night") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := v.post("/alerts", url.Values{"of": {"shop"}, "action": {"mute"}, "for": {"9999h"}}); a.status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := v.post("/alerts", url.Values{"id": {i.ID}, "action": {"ack"}, "note": {" seen" + evil + " "}}); a.status != http.StatusSeeOther {
		t.Errorf("%d %s", a.status, a.body)
	}
	page = v.get("/alerts").body
	if !strings.Contains(page, "seen&lt;script") || strings.Contains(page, `id="ack-0"`) {
		t.Error(page)
	}
	if a := v.post("/alerts", url.Values{"id": {"none"}, "action": {"ack"}}); a.status != http.StatusConflict || !strings.Contains(a.body, "The incident is closed.") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if page := v.get("/alerts?app=shop&only=incidents").body; !strings.Contains(page, `hx-get="/alerts?app=shop&amp;only=incidents"`) || strings.Contains(page, `id="test-ops"`) {
		t.Error(page)
	}
	reader := n.signedIn("shop-read")
	if page := reader.get("/alerts").body; strings.Contains(page, `id="ack-`) || strings.Contains(page, `id="test-`) || strings.Contains(page, "very-secret") || !strings.Contains(page, "ops") {
		t.Error(page)
	}
	if a := reader.post("/alerts", url.Values{"of": {"shop"}, "name": {"ops"}, "action": {"test"}}); a.status != http.StatusForbidden {
		t.Errorf("a token that reads tested a channel: %d", a.status)
	}
	if page := n.signedIn("all-read").get("/alerts", "Accept-Language", "zh").body; !strings.Contains(page, "以下规则、静默和通道适用于所有应用") || !strings.Contains(page, ">严重<") {
		t.Error(page)
	}
}
