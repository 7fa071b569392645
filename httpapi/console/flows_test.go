package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

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
	for _, want := range []string{"<code>stripe</code>", `aria-label="Pause stripe"`, `aria-label="Resume mail"`, "why&lt;script", `<span class="tag s-dead">paused</span>`, ">20 / 1.00 s<", ">3<", "· shop"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "<script>d") || strings.Contains(page, "<img") {
		t.Error("the page has a script in it")
	}
	act := func(key, action string, want bool) {
		t.Helper()
		if a := v.post("/flows", url.Values{"app": {"shop"}, "key": {key}, "action": {action}}); a.status != http.StatusSeeOther {
			t.Errorf("%s %q: %d %s", action, key, a.status, a.body)
		}
		if key == "" {
			return
		}
		if f, err := n.api.Flow(t.Context(), "shop", key); err != nil || f.Paused != want {
			t.Errorf("%s %q: %+v %v", action, key, f, err)
		}
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
	if page := n.signedIn("all-read").get("/flows", "Accept-Language", "zh").body; !strings.Contains(page, "输入应用名称") {
		t.Error(page)
	}
}
