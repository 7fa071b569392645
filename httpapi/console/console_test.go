package console

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/callback"
	"xtimer/httpapi/client"
)

// pages of a node that has all there is to show, by path.
func (n *node) pages() []string {
	n.t.Helper()
	ok, bad := n.timer("shop", "stock", "/ok"), n.hostile()
	no := n.timer("shop", "orders", "/no")
	failed := n.run(bad.ID)
	n.run(no.ID)
	n.alerting("shop")
	n.incident("shop", "report")
	if _, err := n.api.PutFlow(n.t.Context(), "shop", "stripe", client.FlowLimit{Rate: 20, Concurrency: 3}); err != nil {
		n.t.Fatal(err)
	}
	return []string{
		"/", "/timers", "/timers?app=shop&sort=-name", "/timers/new", "/timers/" + ok.ID, "/timers/" + bad.ID, "/timers/" + bad.ID + "/edit",
		"/tasks/" + failed.Key, "/tasks/" + n.run(ok.ID).Key, "/dead", "/dead?since=24h&status=dead", "/system", "/live", "/upcoming", "/apps", "/apps?app=shop", "/upcoming/hours", "/tasks", "/tasks?status=problems&from=2026-01-01T00:00", "/timers/new?from=" + bad.ID, "/nothing",
		"/alerts?app=shop", "/alerts/rule?app=shop&name=twice", "/alerts/channel?app=shop&name=mail", "/flows?app=shop", "/cluster",
	}
}

// hostile is a timer with a script wherever somebody can put a text; its target
// answers with one, too.
func (n *node) hostile() *client.Timer {
	n.t.Helper()
	r, err := n.api.Create(n.t.Context(), client.Definition{
		App: "shop", Name: "name" + evil, Schedule: client.Schedule{Every: time.Hour}, Labels: map[string]string{"team": "label" + evil},
		Callback: client.Callback{
			URL: "http://target.test/bad", Headers: map[string]string{"X-A": "header" + evil}, Body: map[string]string{"k": "body" + evil},
		},
		Retry: client.Retry{MaxAttempts: 2, Backoff: time.Millisecond},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.api.Disable(n.t.Context(), r.Timer.ID, client.Disabling{Reason: "reason" + evil}); err != nil {
		n.t.Fatal(err)
	}
	return &r.Timer
}

// TestScripts: what somebody put there is shown, as it is and as a text.
func TestScripts(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	tm := n.hostile()
	task := n.run(tm.ID)
	quoted := strings.NewReplacer(`"`, `\"`, "<", `\u003c`, ">", `\u003e`).Replace(evil) // in JSON
	for path, texts := range map[string][]string{
		"/timers":                    {"name" + evil, "label" + evil, "reason" + evil},
		"/timers/" + tm.ID:           {"name" + evil, "reason" + evil, "label" + quoted, "header" + quoted, "body" + quoted},
		"/timers/" + tm.ID + "/edit": {"name" + evil, "label" + evil, "header" + evil, "body" + quoted},
		"/tasks":                     {"name" + evil},
		"/dead":                      {"name" + evil, evil},
		"/timers/new?from=" + tm.ID:  {"name" + evil, "label" + evil, "header" + evil, "body" + quoted},
		"/tasks/" + task.Key:         {"name" + evil, "header" + evil, "body" + strings.ReplaceAll(evil, `"`, `\"`), evil},
	} {
		page := v.get(path).body
		if strings.Contains(page, "<script>d") || strings.Contains(page, "<img") {
			t.Errorf("%s has a script in it", path)
		}
		for _, text := range texts {
			if !strings.Contains(html.UnescapeString(page), text) {
				t.Errorf("%s does not show %s", path, text)
			}
		}
	}
}

// TestLargeAnswer: of an answer of 10 MiB a page shows how it begins.
func TestLargeAnswer(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "it begins "+strings.Repeat("x", 10<<20))
	}))
	defer receiver.Close()
	calls, err := callback.New(callback.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer calls.Close()
	n := serveCalling(t, calls)
	r, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "large", Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: receiver.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	page := n.visitor().get("/tasks/" + n.run(r.Timer.ID).Key).body
	if !strings.Contains(page, "it begins xxx") || len(page) > 32<<10 {
		t.Errorf("a page of %d bytes", len(page))
	}
}

var (
	inlineScript = regexp.MustCompile(`(?i)<script(?:>|\s+[^s])|\son[a-z]+\s*=\s*["']|javascript:`)
	inlineStyle  = regexp.MustCompile(`(?i)<style|\sstyle\s*=`)
	foreign      = regexp.MustCompile(`(?i)(?:src|href|action|hx-[a-z]+)="(?:https?:)?//`)
)

// Who asks for no page is told as by the API that there is none.
func TestNothingForAProgram(t *testing.T) {
	a := serve(t).visitor().get("/nothing", "Accept", "*/*")
	if got := a.header.Get("Content-Type"); a.status != http.StatusNotFound || got != "application/problem+json" {
		t.Errorf("%d %s", a.status, got)
	}
}

// TestEveryPage: it is there, in both languages, with the headers that keep
// foreign scripts out, and without any of its own in the page.
func TestEveryPage(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	for _, path := range n.pages() {
		for _, lang := range []string{"en", "zh"} {
			a := v.get(path, "Accept-Language", lang, "Accept", "text/html,*/*")
			want := http.StatusOK
			if path == "/nothing" {
				want = http.StatusNotFound
			}
			if a.status != want {
				t.Errorf("%s: %d %s", path, a.status, a.body)
				continue
			}
			if !strings.Contains(a.body, `<html lang="`+lang) || !strings.HasSuffix(strings.TrimSpace(a.body), "</html>") {
				t.Errorf("%s is not whole, or not in %s", path, lang)
			}
			if got := a.header.Get("Content-Security-Policy"); got != policy {
				t.Errorf("%s: Content-Security-Policy %q", path, got)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8",
			} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s: %s is %q, want %q", path, name, got, want)
				}
			}
			for what, re := range map[string]*regexp.Regexp{"a script": inlineScript, "a style": inlineStyle, "another host": foreign} {
				if m := re.FindString(strings.ReplaceAll(a.body, `onerror=&#34;`, "")); m != "" {
					t.Errorf("%s has %s in it: %q", path, what, m)
				}
			}
			if strings.Contains(a.body, evil) {
				t.Errorf("%s shows a script as it is", path)
			}
		}
	}
	if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
}

// TestForgedRequests: a change that no page of ours asked for is refused.
func TestForgedRequests(t *testing.T) {
	for name, n := range map[string]*node{"open": serve(t), "token": serve(t, tokens...)} {
		tm := n.timer("shop", "stock", "/ok")
		v := n.visitor()
		if name == "token" {
			v = n.signedIn("all-admin")
		}
		good := v.csrf()
		forms := []string{
			"/timers/" + tm.ID + "/delete", "/timers/" + tm.ID + "/disable", "/timers/" + tm.ID + "/run", "/timers/act", "/timers/new", "/timers/preview",
			"/timers/" + tm.ID + "/edit", "/timers/" + tm.ID + "/enable", "/tasks/" + tm.ID + "_1/retry", "/work/x/stop", "/dead/retry", "/dead/dismiss", "/tasks/" + tm.ID + "_1/dismiss", "/system/backup", "/preferences", "/sign-in", "/sign-out",
			"/flows", "/alerts", "/alerts/rule", "/alerts/channel", "/cluster",
		}
		for _, path := range forms {
			body := func(csrf string) string {
				return url.Values{"csrf": {csrf}, "confirmed": {"yes"}, "action": {"delete"}, "id": {tm.ID}, "rate": {"1"}}.Encode()
			}
			for what, a := range map[string]answer{
				"a foreign page":         v.do("POST", path, body(good), "Sec-Fetch-Site", "cross-site"),
				"a sister host":          v.do("POST", path, body(good), "Sec-Fetch-Site", "same-site"),
				"an old browser":         v.do("POST", path, body(good), "Origin", "https://evil.example"),
				"no token":               v.do("POST", path, body("")),
				"another token":          v.do("POST", path, body("x"+good)),
				"another visitor's form": v.do("POST", path, body(n.visitor().csrf()+"x")),
			} {
				if a.status != http.StatusForbidden {
					t.Errorf("%s: %s from %s: %d", name, path, what, a.status)
				}
			}
		}
		got, err := n.api.Get(t.Context(), tm.ID)
		if err != nil || got.Version != tm.Version || got.Status != "enabled" || got.LastTask != nil {
			t.Errorf("%s: the timer was changed: %+v, %v", name, got, err)
		}
	}
}

// TestReadToken: who may only look is shown no button, and is refused.
func TestReadToken(t *testing.T) {
	n := serve(t, tokens...)
	pages := n.pages()
	mine := n.timer("shop", "mine", "/ok")
	v := n.signedIn("shop-read")
	buttons := regexp.MustCompile(`<button[^>]*id="(?:run|enable|disable|delete|save|retry|dismiss|backup|confirm|act-[a-z]+)"|id="(?:edit|clone|new-timer)"|type="checkbox" name`)
	for _, path := range pages {
		if strings.HasPrefix(path, "/timers/new") || strings.HasPrefix(path, "/alerts/") || strings.HasSuffix(path, "/edit") {
			if got := v.get(path); got.status != http.StatusForbidden {
				t.Errorf("%s: %d", path, got.status)
			}
			continue
		}
		if m := buttons.FindString(v.get(path).body); m != "" {
			t.Errorf("%s offers %s", path, m)
		}
	}
	failures, err := n.api.Failures(t.Context(), client.TaskFilter{})
	if err != nil || len(failures.Groups) == 0 {
		t.Fatal("nothing has failed", err)
	}
	key := failures.Groups[0].Keys[0]
	for path, form := range map[string]url.Values{
		"/timers/" + mine.ID + "/run":     nil,
		"/timers/" + mine.ID + "/enable":  nil,
		"/timers/" + mine.ID + "/disable": {"reason": {"x"}},
		"/timers/" + mine.ID + "/delete":  {"confirmed": {"yes"}},
		"/timers/" + mine.ID + "/edit":    {"version": {"1"}, "kind": {"every"}, "when": {"2h"}, "callback.url": {"http://x/"}},
		"/timers/new":                     {"app": {"shop"}, "name": {"new"}, "kind": {"every"}, "when": {"2h"}, "callback.url": {"http://x/"}},
		"/timers/act":                     {"action": {"delete"}, "all": {"yes"}, "confirmed": {"yes"}},
		"/tasks/" + key + "/retry":        nil,
		"/system/backup":                  nil,
	} {
		if a := v.post(path, form); a.status != http.StatusForbidden && a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for path, form := range map[string]url.Values{
		"/timers/act": {"action": {"delete"}, "id": {mine.ID}, "confirmed": {"yes"}},
		"/dead/retry": {"key": {key}, "rate": {"10"}, "confirmed": {"yes"}},
	} {
		a := v.post(path, form) // done in the background, and refused there
		n.until(func() bool { return strings.Contains(v.get(a.header.Get("Location")).body, `data-ended="true"`) })
		if body := v.get(a.header.Get("Location")).body; !strings.Contains(body, "1 failed") {
			t.Errorf("%s was not refused: %s", path, body)
		}
	}
	got, err := n.api.Get(t.Context(), mine.ID)
	if err != nil || got.Version != 1 || got.LastTask != nil {
		t.Errorf("the timer was changed: %+v, %v", got, err)
	}
}

// TestOtherApps: a token of one app sees nothing of another.
func TestOtherApps(t *testing.T) {
	n := serve(t, tokens...)
	other := n.timer("bank", "secret-name", "/no")
	key := n.run(other.ID).Key
	v := n.signedIn("shop-write")
	for _, path := range []string{"/", "/timers", "/tasks", "/tasks.csv", "/dead", "/live", "/upcoming", "/upcoming/hours", "/apps", "/apps?app=bank"} {
		if strings.Contains(v.get(path).body, "secret-name") {
			t.Errorf("%s shows a timer of another app", path)
		}
	}
	for _, path := range []string{"/timers/" + other.ID, "/timers/" + other.ID + "/edit", "/tasks/" + key, "/timers/new?from=" + other.ID} {
		if a := v.get(path); a.status != http.StatusNotFound || strings.Contains(a.body, "secret-name") {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := v.get("/system"); a.status != 200 || strings.Contains(a.body, "127.0.0.1:0") {
		t.Errorf("/system shows the settings to a token of one app: %d", a.status)
	}
}

// TestSession: the cookie, what it opens, and its end.
func TestSession(t *testing.T) {
	n := serve(t, tokens...)
	v := n.visitor()
	if a := v.get("/timers?app=shop"); a.status != http.StatusSeeOther || a.header.Get("Location") != "/sign-in?to=%2Ftimers%3Fapp%3Dshop" {
		t.Errorf("without a session: %d %v", a.status, a.header)
	}
	if a := v.post("/sign-in", url.Values{"token": {"wrong"}}); a.status != http.StatusUnauthorized || a.header.Get("Set-Cookie") != "" {
		t.Errorf("with a wrong token: %d %v", a.status, a.header)
	}
	for to, want := range map[string]string{"/dead": "/dead", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/", "": "/"} {
		if a := n.visitor().post("/sign-in", url.Values{"token": {"shop-read"}, "to": {to}}); a.header.Get("Location") != want {
			t.Errorf("after signing in to %q: %q", to, a.header.Get("Location"))
		}
	}
	form := url.Values{"token": {"shop-read"}, "csrf": {v.csrf()}}.Encode()
	cookie := v.do("POST", "/sign-in", form).header.Get("Set-Cookie")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "Secure") || strings.Contains(cookie, "shop-read") {
		t.Errorf("the cookie is %q", cookie)
	}
	if a := n.visitor().do("POST", "/sign-in", url.Values{"token": {"shop-read"}, "csrf": {n.visitor().csrf()}}.Encode(), "X-Forwarded-Proto", "https"); !strings.Contains(a.header.Get("Set-Cookie"), "Secure") {
		t.Errorf("the cookie over TLS is %q", a.header.Get("Set-Cookie"))
	}
	if a := v.get("/timers"); a.status != 200 || !strings.Contains(a.body, "shop · read") {
		t.Errorf("with a session: %d", a.status)
	}
	old := v.http.Jar.Cookies(mustURL(n.url))
	if a := v.post("/sign-out", nil); a.status != http.StatusSeeOther {
		t.Errorf("signing out: %d", a.status)
	}
	v.http.Jar.SetCookies(mustURL(n.url), old)
	if a := v.get("/timers"); a.status != http.StatusSeeOther {
		t.Errorf("a session goes on after its end: %d", a.status)
	}
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// TestSizes: the first view, and what all assets add to the binary.
func TestSizes(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	n.pages()
	page := v.get("/")
	wire := len(page.body)
	for _, m := range regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		a := v.get(strings.ReplaceAll(m[1], "&amp;", "&"), "Accept-Encoding", "gzip")
		if a.status != 200 || a.header.Get("Content-Encoding") != "gzip" || !strings.Contains(a.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", m[1], a.status, a.header)
		}
		wire += len(a.body)
	}
	if wire > 200<<10 {
		t.Errorf("the first view is %d bytes", wire)
	}
	all := 0
	for _, a := range assets() {
		all += len(a.plain)
	}
	if all > 512<<10 {
		t.Errorf("the assets are %d bytes", all)
	}
	t.Logf("first view %d bytes, assets %d bytes", wire, all)
	if a := v.get("/assets/app.css"); strings.Contains(a.header.Get("Cache-Control"), "immutable") {
		t.Error("an asset without its hash is kept for ever")
	}
	if a := v.get("/assets/package.json"); a.status != http.StatusNotFound {
		t.Errorf("an asset that is none: %d", a.status)
	}
}

// TestNoneSelected: a form without a selection leads back to its page, which says so.
func TestNoneSelected(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	n.run(n.timer("shop", "stock", "/bad").ID)
	for path, form := range map[string]url.Values{
		"/timers/act": {"action": {"disable"}, "back": {"/timers?app=shop"}},
		"/dead/retry": {"rate": {"10"}, "back": {"/dead?app=shop"}},
	} {
		back := form.Get("back")
		a := v.post(path, form)
		if to := a.header.Get("Location"); a.status != http.StatusSeeOther || to != back+"&note=none_selected" {
			t.Fatalf("%s: %d, to %q", path, a.status, to)
		}
		page := v.get(a.header.Get("Location")).body
		if !strings.Contains(page, "Nothing is selected.") || !strings.Contains(page, `name="back" value="`+back+`"`) {
			t.Errorf("%s: %s", path, page)
		}
		if strings.Contains(v.get(back).body, "Nothing is selected.") {
			t.Errorf("%s says so before anything was pressed", back)
		}
	}
}
