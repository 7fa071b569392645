package console

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// alert is a rule or a channel as the API has it.
func (n *node) alert(app, kind, name string) map[string]any {
	n.t.Helper()
	b, err := n.api.Alert(n.t.Context(), app, kind, name)
	if err != nil {
		n.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		n.t.Fatal(err)
	}
	for _, k := range []string{"app", "name", "version", "updated_at", "updated_by", "deliveries"} {
		delete(m, k)
	}
	return m
}

var (
	inputTag  = regexp.MustCompile(`<input [^>]*>`)
	areaTag   = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]+)"[^>]*>(.*?)</textarea>`)
	selectTag = regexp.MustCompile(`(?s)<select [^>]*name="([^"]+)">(.*?)</select>`)
	chosen    = regexp.MustCompile(`value="([^"]*)" selected`)
	attribute = regexp.MustCompile(`(name|value|type)="([^"]*)"`)
)

// reads is the form of a page as a browser sends it when nothing is changed.
func (v *visitor) reads(path string) url.Values {
	v.t.Helper()
	_, page, _ := strings.Cut(v.get(path).body, `id="edit-form"`)
	page, _, _ = strings.Cut(page, "</form>")
	form := url.Values{}
	for _, tag := range inputTag.FindAllString(page, -1) {
		is := map[string]string{}
		for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
			is[m[1]] = html.UnescapeString(m[2])
		}
		if is["name"] != "" && is["name"] != "csrf" && (is["type"] != "checkbox" || strings.Contains(tag, " checked")) {
			form.Add(is["name"], is["value"])
		}
	}
	for _, m := range areaTag.FindAllStringSubmatch(page, -1) {
		form.Add(m[1], html.UnescapeString(m[2]))
	}
	for _, m := range selectTag.FindAllStringSubmatch(page, -1) {
		if option := chosen.FindStringSubmatch(m[2]); option != nil {
			form.Add(m[1], option[1])
		}
	}
	return form
}

// TestAlertForms: rules and channels are made and changed, what the API refuses is said at its
// input, and saving an unchanged form changes nothing. The URL of a robot is in no form, and
// is kept.
func TestAlertForms(t *testing.T) {
	n := serve(t, tokens...)
	v := n.signedIn("shop-write")
	save := func(kind string, form url.Values, want int, texts ...string) {
		t.Helper()
		form.Set("app", "shop")
		a := v.post("/alerts/"+kind, form)
		if a.status != want {
			t.Errorf("%s: %d %s", kind, a.status, a.body)
		}
		for _, text := range texts {
			if !strings.Contains(a.body, text) {
				t.Errorf("%s: the form lacks %q: %s", kind, text, a.body)
			}
		}
	}
	const secret = "https://hooks.slack.test/very-secret"
	save("channel", url.Values{"kind": {"slack"}, "url": {secret}}, 422, `id="e-name">is required`)
	save("channel", url.Values{"name": {"ops"}, "kind": {"slack"}, "url": {"ftp://x"}, "lang": {"en"}}, 422, `id="e-url">must begin with http`, `value="ops"`)
	save("channel", url.Values{"name": {"ops"}, "kind": {"slack"}, "url": {secret}, "lang": {"en"}, "mention": {"all u1"}}, 303)
	save("channel", url.Values{"name": {"ops"}, "kind": {"slack"}, "url": {"http://x/"}, "lang": {"en"}}, 422, `id="e-name">exists already`)
	save("channel", url.Values{
		"name": {"mail"}, "kind": {"email"}, "smtp.host": {"smtp.test"}, "smtp.port": {"x"}, "smtp.tls": {"starttls"}, "smtp.from": {"a@b.test"}, "smtp.to": {"c@d.test"},
	}, 422, `id="e-smtp.port"`)
	save("channel", url.Values{
		"name": {"mail"}, "kind": {"email"}, "lang": {"zh"}, "smtp.host": {"smtp.test"}, "smtp.user": {"u"}, "smtp.password": {"mail"}, "smtp.tls": {"starttls"}, "smtp.from": {"a@b.test"}, "smtp.to": {"c@d.test\r\ne@f.test"},
	}, 303)
	save("channel", url.Values{"name": {"feishu"}, "kind": {"feishu"}, "url_secret": {"hook"}, "secret": {"sign"}, "lang": {"zh"}, "proxy": {"ftp://p"}}, 422, `id="e-proxy">must begin with http`)
	save("channel", url.Values{"name": {"feishu"}, "kind": {"feishu"}, "url_secret": {"hook"}, "secret": {"sign"}, "lang": {"zh"}, "proxy": {"http://p:3128"}}, 303)
	save("rule", url.Values{"name": {"r"}, "on": {"failed"}, "channels": {"none"}}, 422, "the app has no channel")
	save("rule", url.Values{"name": {"r"}, "on": {"failed"}, "channels": {"ops"}, "after": {"2"}, "streak": {"3"}}, 422, `id="e-streak">must not be given together with after`)
	save("rule", url.Values{"name": {"r"}, "on": {"failed", "late"}, "channels": {"mail", "ops"}, "after": {"2"}, "within": {"1h"}, "late": {"5s"}, "match.label": {"team=a"}, "severity": {"critical"}, "repeat": {"0s"}}, 303)
	save("rule", url.Values{"name": {"s"}, "on": {"dead"}, "channels": {"ops"}, "streak": {"3"}, "recovered": {"yes"}}, 303)
	if got := n.alert("shop", "rules", "r"); got["after"] != 2.0 || got["recovered"] != false || got["severity"] != "critical" || got["late"] != "5s" {
		t.Errorf("%v", got)
	}
	for kind, names := range map[string][]string{"channel": {"ops", "mail", "feishu"}, "rule": {"r", "s"}} {
		for _, name := range names {
			was := n.alert("shop", kind+"s", name)
			path := "/alerts/" + kind + "?app=shop&name=" + name
			if strings.Contains(v.get(path).body, "very-secret") {
				t.Errorf("%s shows a URL", path)
			}
			form := v.reads(path)
			save(kind, form, 303)
			if now := n.alert("shop", kind+"s", name); text(now) != text(was) {
				t.Errorf("%s %s: was %v, is %v: %v", kind, name, was, now, form)
			}
		}
	}
	old := v.reads("/alerts/rule?app=shop&name=r")
	form := v.reads("/alerts/rule?app=shop&name=r")
	form.Set("severity", "warning")
	save("rule", form, 303)
	old.Set("within", "2h")
	save("rule", old, 422, "If-Match")
	if a := v.post("/alerts", url.Values{"of": {"shop"}, "kind": {"channels"}, "name": {"ops"}, "action": {"delete"}, "confirmed": {"yes"}}); a.status != http.StatusConflict || !strings.Contains(a.body, "rule r") {
		t.Errorf("a channel in use was deleted: %d %s", a.status, a.body)
	}
	if a := v.post("/alerts", url.Values{"of": {"shop"}, "kind": {"rules"}, "name": {"r"}, "action": {"delete"}}); a.status != 200 || !strings.Contains(a.body, "Delete the rule r") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := v.post("/alerts", url.Values{"of": {"shop"}, "kind": {"rules"}, "name": {"r"}, "action": {"delete"}, "confirmed": {"yes"}}); a.status != 303 || strings.Contains(v.get("/alerts").body, "name=r\"") {
		t.Errorf("%d %s", a.status, a.body)
	}
	reader := n.signedIn("shop-read")
	if a := reader.get("/alerts/rule?name=s"); a.status != http.StatusForbidden {
		t.Errorf("%d", a.status)
	}
	if a := reader.post("/alerts/rule", url.Values{"app": {"shop"}, "name": {"x"}, "on": {"dead"}, "channels": {"ops"}}); a.status != http.StatusForbidden {
		t.Errorf("%d %s", a.status, a.body)
	}
}
