package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestFlows: keys are shown with their limits, paused with a reason, and resumed; a token
// that reads has no buttons, and a token of one app sees that app alone.
func TestFlows(t *testing.T) {
	n := serve(t, tokens...)
	if _, err := n.api.PutFlow(t.Context(), "shop", "stripe", client.FlowLimit{Rate: 20, Concurrency: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.api.PauseFlow(t.Context(), "shop", "mail", client.Pause{Reason: "why" + evil}); err != nil {
		t.Fatal(err)
	}
	v := n.signedIn("shop-write")
	page := v.get("/flows?app=bank").body
	for _, want := range []string{"<code>stripe</code>", `aria-label="Pause stripe"`, `aria-label="Resume mail"`, `aria-label="Held dues mail"><option value="call">`, `<option value="latest">`, `<option value="skip">`, "why&lt;script", `<span class="tag s-dead">paused</span>`, ">20 / 1.00 s<", ">3<", "· shop"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "<script>d") || strings.Contains(page, "<img") {
		t.Error("the page has a script in it")
	}
	act := func(key, action string, want bool) {
		t.Helper()
		if a := v.post("/flows", url.Values{"app": {"shop"}, "key": {key}, "action": {action}, "backlog": {"skip"}}); a.status != http.StatusSeeOther {
			t.Errorf("%s %q: %d %s", action, key, a.status, a.body)
		}
		if key == "" {
			return
		}
		if f, err := n.api.Flow(t.Context(), "shop", key); err != nil || f.Paused != want {
			t.Errorf("%s %q: %+v %v", action, key, f, err)
		}
	}
	if a := v.post("/flows", url.Values{"app": {"shop"}, "key": {"mail"}, "action": {"resume"}, "backlog": {"sunk"}}); a.status == http.StatusSeeOther || !strings.Contains(a.body, "backlog") {
		t.Errorf("a backlog that does not exist: %d %s", a.status, a.body)
	}
	act("", "resume", false)
	act("", "pause", true)
	act("", "resume", false)
	act("stripe", "pause", true)
	act("mail", "resume", false)
	if a := v.post("/flows", url.Values{"app": {"bank"}, "action": {"pause"}}); a.status != http.StatusForbidden {
		t.Errorf("another app was paused: %d", a.status)
	}
	if page := n.signedIn("shop-read").get("/flows").body; strings.Contains(page, "pause-app") || strings.Contains(page, `value="resume"`) || !strings.Contains(page, "stripe") {
		t.Error(page)
	}
	if _, err := n.api.PutTarget(t.Context(), "https://partner", client.FlowLimit{Rate: 7}); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{"all-admin": true, "all-read": false, "shop-write": false} {
		page := n.signedIn(token).get("/flows").body
		if is := strings.Contains(page, "<code>https://partner:443</code>") && strings.Contains(page, ">7 / 1.00 s<"); is != want {
			t.Errorf("%s sees the target: %v: %s", token, is, page)
		}
	}
	if page := n.signedIn("all-read").get("/flows", "Accept-Language", "zh").body; !strings.Contains(page, "输入应用名称") {
		t.Error(page)
	}
}

// TestFlowWaiting: the page of a key lists what waits for the key, and links to the tasks.
func TestFlowWaiting(t *testing.T) {
	n := serve(t, tokens...)
	if _, err := n.api.PauseFlow(t.Context(), "shop", "mail", client.Pause{}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.api.PutFlow(t.Context(), "shop", "user-*", client.FlowLimit{Rate: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		d := client.Definition{App: "shop", Name: fmt.Sprint("mail-", i), Flow: []string{"mail"}, Schedule: client.Schedule{Delay: new(time.Millisecond)}, Callback: client.Callback{URL: "http://127.0.0.1:9/"}}
		if _, err := n.api.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var l *client.TaskList
	for l == nil || len(l.Tasks) < 3 {
		var err error
		if l, err = n.api.WaitingPage(t.Context(), "shop", "mail", 10, ""); err != nil {
			t.Fatal(err)
		}
	}
	v := n.signedIn("shop-read")
	if page := v.get("/flows").body; !strings.Contains(page, `href="/flows?app=shop&amp;key=mail#waiting"`) || strings.Contains(page, "key=user-") || strings.Contains(page, "h-waiting") {
		t.Error(page)
	}
	page := v.get("/flows?key=mail").body
	for _, k := range l.Tasks {
		if !strings.Contains(page, `href="/tasks/`+k.Key+`"`) || !strings.Contains(page, ">"+k.Name+"<") {
			t.Errorf("the page lacks %s: %s", k.Name, page)
		}
	}
	if page := v.get("/flows?key=mail", "Accept-Language", "zh").body; !strings.Contains(page, "等待 mail 的任务") {
		t.Error(page)
	}
}

// TestPausesShow: while all apps or the app of a page are paused, each page says so, with a
// button for whoever may end the pause.
func TestPausesShow(t *testing.T) {
	n := serve(t, tokens...)
	made, err := n.api.Create(t.Context(), client.Definition{App: "shop", Name: "n", Schedule: client.Schedule{Cron: "0 0 1 1 *"}, Callback: client.Callback{URL: "http://127.0.0.1:9/"}})
	if err != nil {
		t.Fatal(err)
	}
	all, shop := "All apps are paused", "App shop is paused"
	shows := func(token, path string, want ...string) {
		t.Helper()
		page := n.signedIn(token).get(path, "Accept", "text/html").body
		for _, text := range []string{all, shop, ">Resume all apps<", "why&lt;script"} {
			if is, should := strings.Contains(page, text), slices.Contains(want, text); is != should {
				t.Errorf("%s for %s has %q: %v", path, token, text, is)
			}
		}
	}
	timer := "/timers/" + made.Timer.ID
	shows("all-admin", timer)
	if err := n.api.PauseApp(t.Context(), "shop", client.Pause{}); err != nil {
		t.Fatal(err)
	}
	shows("all-admin", "/system")
	shows("all-admin", timer, shop)
	shows("all-admin", "/tasks?app=shop", shop)
	shows("shop-read", "/", shop)
	v := n.signedIn("all-admin")
	if a := v.post("/flows", url.Values{"app": {"*"}, "action": {"pause"}, "reason": {"why" + evil}}); a.status != http.StatusSeeOther {
		t.Fatal(a.status, a.body)
	}
	for _, path := range []string{"/", "/timers", "/system", "/live", "/flows", "/timers/1"} {
		shows("all-admin", path, all, ">Resume all apps<", "why&lt;script")
	}
	shows("all-read", "/", all, "why&lt;script")
	shows("shop-write", "/", all, shop, "why&lt;script")
	shows("all-admin", timer, all, shop, ">Resume all apps<", "why&lt;script")
	if a := n.signedIn("shop-write").post("/flows", url.Values{"app": {"*"}, "action": {"resume"}}); a.status != http.StatusForbidden {
		t.Errorf("a token of an app resumed all: %d", a.status)
	}
	if a := v.post("/flows", url.Values{"app": {"*"}, "action": {"resume"}, "to": {"/timers"}}); a.status != http.StatusSeeOther || a.header.Get("Location") != "/timers" {
		t.Error(a.status, a.header)
	}
	shows("all-admin", "/")
}

// TestAResumeIsShown: a key says what its resume is doing with the held dues, since when the oldest
// task waits, and about how long one waits that becomes due now.
func TestAResumeIsShown(t *testing.T) {
	page := fakeAPI(func(r *http.Request) (int, any) {
		if strings.HasSuffix(r.URL.Path, "/flows") {
			return 200, map[string]any{"flows": []client.Flow{{App: "shop", Name: "mail", FlowState: client.FlowState{Resuming: "skip", Waiting: 3, OldestAt: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), WaitEstimate: new(client.Duration(90 * time.Minute))}}, {App: "shop", Name: "sms", FlowState: client.FlowState{Resuming: "latest"}}}}
		}
		return 404, nil
	}).page("/flows?app=shop", "Accept-Language", "zh")
	for _, want := range []string{"暂停期间的到期正在跳过", "只调用暂停期间的最后一次到期", `data-label="最早的任务">2026-11-27 `, "约等待 90 分钟"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
}
