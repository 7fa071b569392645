package httpapi

import (
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/access"
)

// A token of one app sees its own figures, of which nothing of another app can be told.
func TestFiguresAreOfTheApp(t *testing.T) {
	n := serve(t, newEngine(t, answers(404), nil), ServerConfig{Tokens: tokens()})
	n.token = "a-write"
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	for range 3 {
		n.do("POST", "/v1/timers/"+id+"/run", "").want(202)
	}
	failed := func(token string) any {
		n.token = token
		return n.do("GET", "/v1/stats", "").want(200).get("tasks", "since_start", "failed")
	}
	until(t, func() bool { return failed("a-read") == 3.0 })
	if got := failed("root"); got != 3.0 {
		t.Errorf("the service has %v failures", got)
	}
	if got := failed("b-admin"); got != 0.0 {
		t.Errorf("another app sees %v failures", got)
	}
	b := n.do("GET", "/v1/stats", "").want(200)
	if b.str("app") != "b" || b.get("last_minute", "fires_per_second") != 0.0 {
		t.Error(b.body)
	}
	for _, of := range []string{"timers", "due_by_minute", "wheel", "warm", "settle_backlog", "journal", "watermark"} {
		if b.get(of) != nil {
			t.Errorf("a token of one app sees %s of all: %s", of, b.body)
		}
	}
	n.token = "root"
	if got := n.do("GET", "/v1/stats", "").want(200); got.get("app") != nil || got.get("timers", "enabled") != 1.0 {
		t.Error(got.body)
	}

	for token, want := range map[string]float64{"a-read": 3, "b-admin": 0, "all-read": 3} {
		n.token = token
		got := n.do("GET", "/v1/stats/trend?minutes=1", "").want(200)
		if got.get("minutes", 0, "failures") != want || (got.get("minutes", 0, "fires_per_second") == 0.0) != (want == 0) {
			t.Errorf("%s: %s", token, got.body)
		}
	}

	at := time.Now().Truncate(time.Minute).Add(90 * time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
	n.token = "a-write"
	for _, name := range []string{"x", "y"} {
		n.do("POST", "/v1/timers", strings.Replace(hourly("a", name, ""), `"every":"1h"`, `"at":"`+at+`"`, 1)).want(201)
	}
	for token, want := range map[string]float64{"a-read": 2, "b-admin": 0, "root": 2} {
		n.token = token
		until(t, func() bool { return n.do("GET", "/v1/upcoming?limit=1&at="+at, "").get("due_by_second", 30) == want })
	}
}

// What each app has and what became of its tasks; a token of one app sees that one only.
func TestApps(t *testing.T) {
	n := serve(t, newEngine(t, answers(404), nil), ServerConfig{Tokens: tokens()})
	n.token = "root"
	for _, app := range []string{"c", "b", "a"} {
		id := n.do("POST", "/v1/timers", hourly(app, "n", "")).want(201).str("id")
		if app == "a" {
			key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
			until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "failed" })
		}
	}
	page := n.do("GET", "/v1/apps?limit=2", "").want(200)
	if page.str("apps", 0, "app") != "a" || page.str("apps", 1, "app") != "b" || page.get("exact") != true {
		t.Error(page.body)
	}
	if page.get("apps", 0, "last_hour", "failed") != 1.0 || page.get("apps", 0, "last_minute", "success_rate") != 0.0 || page.get("apps", 1, "last_hour", "success_rate") != nil {
		t.Error(page.body)
	}
	if page.get("apps", 0, "targets", 0, "attempts_failed") != 1.0 || page.get("apps", 0, "timers", "enabled") != 1.0 {
		t.Error(page.body)
	}
	if page = n.do("GET", "/v1/apps?limit=2&cursor="+page.str("next_cursor"), "").want(200); page.str("apps", 0, "app") != "c" || page.get("next_cursor") != nil {
		t.Error(page.body)
	}
	n.token = "b-admin"
	if page = n.do("GET", "/v1/apps", "").want(200); page.str("apps", 0, "app") != "b" || len(page.get("apps").([]any)) != 1 {
		t.Error(page.body)
	}
	n.do("GET", "/v1/apps?app=a", "").want(403)
	n.do("GET", "/v1/upcoming/hours?app=a", "").want(403)
	f := n.do("GET", "/v1/upcoming/hours?hours=3", "").want(200)
	if f.get("timers") != 1.0 || f.get("hours", 1, "dues") != 1.0 || len(f.get("hours").([]any)) != 3 {
		t.Error(f.body)
	}
}

// A node whose tokens are older (a rolling restart adds an app) answers the trend of that app.
func TestTrendOfAnAppWithoutTokens(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Tokens: tokens()})
	a := c.n[0]
	a.token = "a-read"
	c.cfg.Tokens = []access.Token{}
	for _, x := range tokens() {
		if x.App != "a" {
			c.cfg.Tokens = append(c.cfg.Tokens, x)
		}
	}
	old := c.idle()
	got := a.do("GET", "/v1/stats/trend", "").want(200)
	if n := old.s.stats.panics.Get(); n != 0 || got.get("partial") != nil {
		t.Errorf("%d panics at the other node: %s", n, got.body)
	}
}
