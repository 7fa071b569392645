package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/httpapi/client"
)

// ended waits until the work that an answer leads to has ended, and shows it.
func (v *visitor) ended(a answer) string {
	v.t.Helper()
	if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/work/") {
		v.t.Fatalf("no work was begun: %d %s", a.status, a.body)
	}
	var body string
	v.until(func() bool {
		body = v.get(a.header.Get("Location")).body
		return strings.Contains(body, `data-ended="true"`)
	})
	return body
}

var hidden1 = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// confirm sends the form of a page that asks.
func (v *visitor) confirm(path string, a answer) answer {
	v.t.Helper()
	if a.status != http.StatusOK || !strings.Contains(a.body, `id="confirm"`) {
		v.t.Fatalf("it does not ask: %d %s", a.status, a.body)
	}
	form := url.Values{}
	for _, m := range hidden1.FindAllStringSubmatch(a.body, -1) {
		form.Add(m[1], strings.NewReplacer("&amp;", "&", "&#43;", "+", "&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'").Replace(m[2]))
	}
	if m := rateInput.FindStringSubmatch(a.body); m != nil {
		form.Set("rate", m[1])
	}
	return v.post(path, form)
}

var rateInput = regexp.MustCompile(`name="rate" type="number" min="1" max="1000" value="(\d+)"`)

// TestTyped: many timers are not changed by a click alone: their number has to be typed.
func TestTyped(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	for i := range mostUntyped + 1 {
		n.timer("shop", "typed-"+strconv.Itoa(i), "/ok")
	}
	tm := n.timer("bank", "gone", "/no")
	key := n.run(tm.ID).Key
	form := func(typed string) url.Values {
		return url.Values{"action": {"disable"}, "all": {"yes"}, "app": {"shop"}, "confirmed": {"yes"}, "typed": {typed}}
	}
	for _, typed := range []string{"", "20", "x"} {
		if a := v.post("/timers/act", form(typed)); a.status != http.StatusOK || !strings.Contains(a.body, `id="typed"`) || !strings.Contains(a.body, "type the number: 21") {
			t.Errorf("%q: %d %s", typed, a.status, a.body)
		}
	}
	v.ended(v.post("/timers/act", form("21")))
	if l, err := n.api.TimerPage(t.Context(), client.TimerFilter{Status: "disabled"}, 100, ""); err != nil || len(l.Timers) != 21 {
		t.Errorf("%d timers are disabled, %v", len(l.Timers), err)
	}
	if a := v.post("/timers/act", url.Values{"action": {"run"}, "id": {tm.ID}, "confirmed": {"yes"}, "rate": {"0"}}); a.status != http.StatusBadRequest {
		t.Errorf("runs without a rate: %d", a.status)
	}

	// What was deleted is said so.
	if _, err := n.api.Delete(t.Context(), tm.ID); err != nil {
		t.Fatal(err)
	}
	if body := v.ended(v.confirm("/dead/retry", v.post("/dead/retry", url.Values{"key": {key}, "rate": {"10"}}))); !strings.Contains(body, "timer was deleted") {
		t.Error(body)
	}
	if a := v.do(http.MethodPost, "/tasks/"+key+"/retry", url.Values{"csrf": {v.csrf()}}.Encode(), "Sec-Fetch-Site", "same-origin", "Accept", "text/html"); a.status != http.StatusNotFound || !strings.Contains(a.body, "timer was deleted") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := v.get("/timers/1", "Accept", "text/html"); a.status != http.StatusNotFound || strings.Contains(a.body, "no such thing") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestAct: on a selection or on all that match, the count first, and nothing
// before it is confirmed.
func TestAct(t *testing.T) {
	n := serve(t, tokens...)
	v := n.signedIn("shop-write")
	var ids []string
	for i := range 12 {
		ids = append(ids, n.timer("shop", "act-"+strconv.Itoa(i), "/ok").ID)
	}
	others := n.timer("bank", "act-other", "/ok").ID
	counts := func() (enabled, disabled, gone int) {
		for _, id := range ids {
			switch tm, err := n.api.Get(t.Context(), id); {
			case client.IsNotFound(err):
				gone++
			case err != nil:
				t.Fatal(err)
			case tm.Status == "enabled":
				enabled++
			default:
				disabled++
			}
		}
		return
	}
	want := func(e, d, g int) {
		t.Helper()
		if e2, d2, g2 := counts(); e2 != e || d2 != d || g2 != g {
			t.Errorf("%d enabled, %d disabled, %d gone; want %d, %d, %d", e2, d2, g2, e, d, g)
		}
	}

	ask := v.post("/timers/act", url.Values{"action": {"disable"}, "id": ids[:3]})
	if !strings.Contains(ask.body, "3 timers") {
		t.Error("it does not say how many")
	}
	want(12, 0, 0)
	v.ended(v.confirm("/timers/act", ask))
	want(9, 3, 0)

	ask = v.post("/timers/act", url.Values{"action": {"disable"}, "all": {"yes"}, "name": {"act-1"}, "reason": {"quiet"}})
	if !strings.Contains(ask.body, "3 timers") || !strings.Contains(ask.body, "name=act-1") { // act-1, act-10, act-11
		t.Error("it does not say how many match")
	}
	if body := v.ended(v.confirm("/timers/act", ask)); !strings.Contains(body, "3 of 3") {
		t.Error(body)
	}
	want(7, 5, 0)

	v.ended(v.confirm("/timers/act", v.post("/timers/act", url.Values{"action": {"run"}, "all": {"yes"}, "name": {"act-"}})))
	for _, id := range ids {
		n.until(func() bool {
			tm, err := n.api.Get(t.Context(), id)
			return err == nil && tm.LastTask != nil && tm.LastTask.Status == "succeeded"
		})
	}
	v.ended(v.confirm("/timers/act", v.post("/timers/act", url.Values{"action": {"enable"}, "all": {"yes"}})))
	want(12, 0, 0)
	v.ended(v.confirm("/timers/act", v.post("/timers/act", url.Values{"action": {"delete"}, "all": {"yes"}})))
	want(0, 0, 12)
	if tm, err := n.api.Get(t.Context(), others); err != nil || tm.Version != 1 {
		t.Errorf("another app's timer was changed: %v", err)
	}
	for _, form := range []url.Values{{"action": {"explode"}, "id": ids}} {
		if a := v.post("/timers/act", form); a.status != http.StatusBadRequest {
			t.Errorf("%v: %d", form, a.status)
		}
	}
}

// TestDead: by target and error; a group or single tasks are retried.
func TestDead(t *testing.T) {
	n := serve(t, tokens...)
	v := n.signedIn("all-admin")
	bad, no := n.timer("shop", "bad", "/bad"), n.timer("shop", "no", "/no")
	var keys []string
	for range 3 {
		keys = append(keys, n.run(bad.ID).Key)
	}
	single := n.run(no.ID).Key
	page := v.get("/dead").body
	if !strings.Contains(page, "4 tasks in 2 groups.") || !strings.Contains(page, "status 503") || !strings.Contains(page, "http://target.test") {
		t.Error(page)
	}
	attempts := func(key string) int {
		task, err := n.api.Task(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return len(task.Attempts)
	}
	group := groupName(client.FailureGroup{Target: "http://target.test", Error: "status 503"})
	ask := v.post("/dead/retry", url.Values{"group": {group}, "rate": {"100"}})
	if !strings.Contains(ask.body, "3 tasks, 100 a second") {
		t.Error(ask.body)
	}
	if attempts(keys[0]) != 2 {
		t.Error("it was retried before anybody confirmed it")
	}
	if body := v.ended(v.confirm("/dead/retry", ask)); !strings.Contains(body, "3 of 3") || strings.Contains(body, "failed") {
		t.Error(body)
	}
	for _, key := range keys {
		n.until(func() bool { return attempts(key) == 4 })
	}
	if attempts(single) != 1 {
		t.Error("a task of another group was retried")
	}
	v.ended(v.confirm("/dead/retry", v.post("/dead/retry", url.Values{"key": {single}, "rate": {"1"}})))
	n.until(func() bool { return attempts(single) == 2 })
	if a := v.post("/tasks/"+single+"/retry", nil); a.header.Get("Location") != "/tasks/"+single {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, form := range []url.Values{{"key": {single}, "rate": {"0"}}, {"key": {single}, "rate": {"x"}}} {
		if a := v.post("/dead/retry", form); a.status != http.StatusBadRequest {
			t.Errorf("%v: %d", form, a.status)
		}
	}
}

// TestWorkIsOnes: nobody else sees or stops a work.
func TestWorkIsOnes(t *testing.T) {
	n := serve(t, tokens...)
	v, other := n.signedIn("shop-write"), n.signedIn("all-admin")
	a := v.post("/timers/act", url.Values{"action": {"run"}, "id": {n.timer("shop", "x", "/ok").ID}, "confirmed": {"yes"}, "rate": {"50"}})
	v.ended(a)
	if got := other.get(a.header.Get("Location")); got.status != http.StatusNotFound {
		t.Errorf("another visitor sees it: %d", got.status)
	}
	if got := other.post(a.header.Get("Location")+"/stop", nil); got.status != http.StatusNotFound {
		t.Errorf("another visitor stops it: %d", got.status)
	}
}

// TestRate: no more than so many a second; a stop ends it at once.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &work{}
		begin := time.Now()
		var at []time.Duration
		err := w.each(t.Context(), named(make([]string, 5)), 2, func(string) error {
			at = append(at, time.Since(begin))
			return errors.New("no")
		})
		look := w.look("")
		if err != nil || len(at) != 5 || at[4] != 2*time.Second || look.Done != 5 || look.Failed != 5 || look.Error != "no" {
			t.Errorf("%v at %v: %+v", err, at, look)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1200*time.Millisecond, cancel)
		w = &work{}
		if err := w.each(ctx, named(make([]string, 50)), 2, func(string) error { return nil }); err == nil || w.look("").Done != 3 {
			t.Errorf("%v after %d", err, w.look("").Done)
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Now()
	first := s.begin("t", now)
	if _, ok := s.find(first, now.Add(sessionLength-time.Second)); !ok {
		t.Error("a session ends early")
	}
	if _, ok := s.find(first, now.Add(sessionLength)); ok {
		t.Error("a session does not end")
	}
	other := s.begin("other", now)
	for range 3 * maxSessions {
		s.begin("t", now)
	}
	if _, ok := s.find(first, now); ok || len(s.byID) != maxSessions+1 {
		t.Errorf("%d sessions", len(s.byID))
	}
	if _, ok := s.find(other, now); !ok {
		t.Error("the sessions of one token end that of another")
	}
	s.end(other)
	s.end(other)
	s.begin("t", now.Add(2*sessionLength))
	if len(s.byID) != 1 || len(s.of) != 1 {
		t.Errorf("%d sessions after all have ended", len(s.byID))
	}
}
