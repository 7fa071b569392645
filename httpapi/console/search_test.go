package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"xtimer/httpapi/client"
)

// TestSearch: timers are found by a part of the name, counted, and changed all at once.
func TestSearch(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	for _, name := range []string{"order-1-expire", "order-2-expire", "reminder"} {
		n.timer("shop", name, "/ok")
	}
	page := v.get("/timers?q=DER-").body
	if !strings.Contains(page, "order-1-expire") || !strings.Contains(page, "order-2-expire") || strings.Contains(page, "reminder<") || !strings.Contains(page, `id="total">2 timers<`) {
		t.Error(page)
	}
	if page := v.get("/timers").body; !strings.Contains(page, `id="total">3 timers<`) {
		t.Error(page)
	}
	v.ended(v.confirm("/timers/act", v.post("/timers/act", url.Values{"action": {"disable"}, "all": {"yes"}, "q": {"der-"}})))
	l, err := n.api.TimerPage(t.Context(), client.TimerFilter{Status: client.Enabled}, 10, "")
	if err != nil || len(l.Timers) != 1 || l.Timers[0].Name != "reminder" {
		t.Errorf("%+v, %v", l, err)
	}
	if page := v.get("/timers?failing=yes").body; strings.Contains(page, `id="all"`) || strings.Contains(page, `id="total"`) {
		t.Error("all that match are offered, and the filter would count for nothing")
	}
	many := fakeAPI(func(*http.Request) (int, any) {
		return 200, client.TimerList{Total: &client.Total{Count: 10_000}, Timers: []client.Timer{{ID: "7"}}}
	}).page("/timers")
	if !strings.Contains(many, "at least 10\u202f000 timers") {
		t.Error(many)
	}
}

// TestTasksFound: by the code of the last answer, and by a part of the name or the failure.
func TestTasksFound(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	bad, no := n.run(n.timer("shop", "stock", "/bad").ID).Key, n.run(n.timer("shop", "orders", "/no").ID).Key
	n.run(n.timer("shop", "fine", "/ok").ID)
	for query, want := range map[string][2]bool{"code=503": {true, false}, "code=4xx": {false, true}, "q=STO": {true, false}, "q=nothing": {}, "status=problems": {true, true}} {
		page := v.get("/tasks?" + query).body
		if got := [2]bool{strings.Contains(page, bad), strings.Contains(page, no)}; got != want || strings.Contains(page, ">fine<") {
			t.Errorf("%s: %v", query, got)
		}
		file := v.get("/tasks.csv?" + query).body
		if got := [2]bool{strings.Contains(file, bad), strings.Contains(file, no)}; got != want {
			t.Errorf("%s as a file: %v", query, got)
		}
	}
}

// TestDismiss: what was dismissed leaves the list of what failed, and stays what it is.
func TestDismiss(t *testing.T) {
	n := serve(t, tokens...)
	v := n.signedIn("all-admin")
	stock := n.timer("shop", "stock", "/bad")
	one, two, three := n.run(stock.ID).Key, n.run(stock.ID).Key, n.run(n.timer("shop", "orders", "/no").ID).Key
	v.ended(v.confirm("/dead/dismiss", v.post("/dead/dismiss", url.Values{"key": {one}})))
	if a := v.post("/tasks/"+three+"/dismiss", nil); a.status != http.StatusSeeOther {
		t.Fatal(a)
	}
	shown := func(path string) (found []string) {
		for _, m := range regexp.MustCompile(`name="key" value="([^"]+)"`).FindAllStringSubmatch(v.get(path).body, -1) {
			found = append(found, m[1])
		}
		return found
	}
	if got := shown("/dead"); len(got) != 1 || got[0] != two {
		t.Errorf("%v are shown", got)
	}
	if got := strings.Join(shown("/dead?dismissed=yes"), " "); !strings.Contains(got, one) || !strings.Contains(got, three) || strings.Contains(got, two) {
		t.Errorf("%v are shown as dismissed", got)
	}
	page := v.get("/tasks/" + one).body
	if !strings.Contains(page, "<dt>Dismissed</dt>") || strings.Contains(page, `id="dismiss"`) || !strings.Contains(page, `id="retry"`) || !strings.Contains(page, "s-dead") {
		t.Error(page)
	}
	// A group is dismissed as a whole, of those that the list shows.
	group := regexp.MustCompile(`name="group" value="([^"]+)"`).FindStringSubmatch(v.get("/dead").body)
	v.ended(v.confirm("/dead/dismiss", v.post("/dead/dismiss", url.Values{"group": {html.UnescapeString(group[1])}})))
	if got := shown("/dead"); len(got) != 0 {
		t.Errorf("%v are shown", got)
	}
	if a := n.signedIn("shop-read").post("/tasks/"+two+"/dismiss", nil); a.status != http.StatusForbidden {
		t.Errorf("a token that may only look: %d", a.status)
	}
	if page := v.get("/timers/" + stock.ID).body; !regexp.MustCompile(`Version 1 .*· by [^<]+`).MatchString(page) {
		t.Error("the version does not say who made it")
	}
}
