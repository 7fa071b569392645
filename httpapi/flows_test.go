package httpapi

import (
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/limit"
	"xtimer/httpapi/nodes"
)

// A flow is limited, paused and resumed; its pause stays when its limit changes.
func TestFlows(t *testing.T) {
	n := newNode(t)
	const one = "/v1/apps/shop/flows/stripe:eu"
	n.do("PUT", one, `{"rate":10}`).want(201)
	if a := n.do("PUT", one, `{"rate":10,"per":"1s","burst":1}`).want(200); a.str("result") != "unchanged" {
		t.Error(a.body)
	}
	n.do("POST", one+"/pause", `{"reason":"why","until":"2099-01-01T00:00:00Z"}`).want(200)
	n.do("PUT", one, `{"rate":20,"per":"1m","burst":5,"concurrency":3,"hold":"task","cooldown":true,"breaker":{"of":10}}`).want(200)
	a := n.do("GET", one, "").want(200)
	for _, want := range []string{`"rate":20,"per":"1m","burst":5,"concurrency":3,"hold":"task","cooldown":true`, `"breaker":{"share":0.5,"of":10`, `"paused":true,"paused_until":"2099-01-01T00:00:00.000Z","reason":"why"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	if a := n.do("POST", one+"/resume", "").want(200); strings.Contains(a.body, "paused") {
		t.Error(a.body)
	}
	n.do("POST", one+"/cooldown", `{"until":"2099-01-01T00:00:00Z"}`).want(200)
	n.do("POST", one+"/cooldown", "").want(422)
	n.do("PUT", "/v1/apps/shop/flows/user-*", `{"concurrency":1}`).want(201)
	n.do("PUT", "/v1/apps/shop/flows/z%2Fa", `{"concurrency":1}`).want(201)
	if a := n.do("PUT", "/v1/apps/shop/flows/user-*-x", `{"concurrency":1}`).want(422); a.str("code") != "star_inside" {
		t.Error(a.body)
	}
	if a := n.do("GET", "/v1/apps/shop/flows", "").want(200); a.str("flows", 1, "name") != "user-*" {
		t.Error(a.body)
	}
	for body, code := range map[string]string{
		`{}`: "nothing_limited", `{"rate":1,"burst":2}`: "burst_over_rate", `{"rate":1,"per":"1ms"}`: "out_of_range", `{"rate":0}`: "out_of_range",
		`{"rate":1000001}`: "out_of_range", `{"rate":1,"more":1}`: "unknown_field", `{"rate":1,"hold":"x"}`: "unknown_value",
	} {
		if a := n.do("PUT", one, body); a.str("code") != code {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	n.do("DELETE", one, "").want(200)
	if a := n.do("POST", one+"/resume", "").want(404); !strings.HasPrefix(a.str("detail"), "flow shop/") {
		t.Error(a.body)
	}
	if a := n.do("POST", "/v1/apps/shop/resume", "").want(404); a.str("detail") != "pause shop not found" {
		t.Error(a.body)
	}
	if a := n.do("POST", "/v1/apps/shop/pause", `{"reason":"why"}`).want(200); a.get("paused") != true || a.str("reason") != "why" {
		t.Error(a.body)
	}
	if a := n.do("POST", "/v1/apps/shop/resume", "").want(200); a.get("paused") != false {
		t.Error(a.body)
	}
}

// A key that a pattern matches has the pattern's limit and pause, and is opened by itself after a response has closed it.
func TestAKeyOfAPattern(t *testing.T) {
	var calls atomic.Int64
	n := serve(t, newEngine(t, func(c *engine.Call) engine.Outcome {
		calls.Add(1)
		o := answers(429)(c)
		o.RetryAfter = 100 * time.Second
		return o
	}, nil), ServerConfig{})
	const pattern, one, two = "/v1/apps/shop/flows/user-*", "/v1/apps/shop/flows/user-1", "/v1/apps/shop/flows/user-2"
	n.do("GET", one, "").want(404)
	n.do("PUT", pattern, `{"rate":1000,"cooldown":true}`).want(201)
	if a := n.do("GET", one, "").want(200); a.body != `{"app":"shop","name":"user-1","rate":1000,"per":"1s","burst":1,"cooldown":true,"pattern":"user-*"}` {
		t.Error(a.body)
	}
	n.do("DELETE", one, "").want(404)
	n.do("GET", "/v1/apps/shop/flows/user", "").want(404)
	n.do("POST", "/v1/apps/shop/flows/user/resume", "").want(404)

	create := func(name string) {
		n.do("POST", "/v1/timers", `{"app":"shop","name":"`+name+`","flow":["user-1"],"schedule":{"delay":"1ms"},"callback":{"url":"http://127.0.0.1:9/"}}`).want(201)
	}
	create("first")
	until(t, func() bool { return calls.Load() == 1 && n.do("GET", one, "").get("cooldown_until") != nil })
	create("second")
	until(t, func() bool { return n.do("GET", one, "").get("waiting") == 1.0 })
	if a := n.do("GET", two, "").want(200); a.get("cooldown_until") != nil {
		t.Error(a.body)
	}
	n.do("POST", one+"/resume", "").want(200)
	until(t, func() bool { return calls.Load() == 2 })

	n.do("POST", pattern+"/pause", `{"reason":"why","until":"2099-01-01T00:00:00Z"}`).want(200)
	for _, a := range []answer{n.do("GET", one, ""), n.do("GET", two, ""), n.do("POST", one+"/resume", "")} {
		if a.want(200); a.get("paused") != true || a.str("reason") != "why" || a.str("paused_until") != "2099-01-01T00:00:00.000Z" || a.get("rate") != 1000.0 || a.str("pattern") != "user-*" {
			t.Error(a.body)
		}
	}
	n.do("PUT", one, `{"rate":5}`).want(200)
	if a := n.do("GET", one, "").want(200); a.get("rate") != 5.0 || a.get("pattern") != nil || a.get("paused") != true {
		t.Error(a.body)
	}
	n.do("DELETE", one, "").want(200)
	n.do("DELETE", pattern, "").want(200)
	n.do("GET", one, "").want(404)
}

// The pause of an app, and that of all apps, is told where apps and figures are. Only an admin
// of all apps changes the latter.
func TestPausesAreTold(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	as := func(token string) *testNode {
		n.token = token
		return n
	}
	as("root").do("POST", "/v1/timers", hourly("a", "n", "")).want(201)
	for _, token := range []string{"a-admin", "all-read"} {
		as(token).do("POST", "/v1/apps/*/pause", "").want(403)
		as(token).do("POST", "/v1/apps/*/resume", "").want(403)
	}
	if a := as("a-read").do("GET", "/v1/apps/a/pause", "").want(200); a.get("paused") != false || a.get("all") != nil {
		t.Error(a.body)
	}
	as("a-write").do("POST", "/v1/apps/a/pause", `{"reason":"why","until":"2099-01-01T00:00:00Z"}`).want(200)
	one := as("a-read").do("GET", "/v1/apps/a/pause", "").want(200)
	if one.get("paused") != true || one.str("reason") != "why" || one.str("paused_by") == "" || one.str("paused_since") == "" || one.str("paused_until") != "2099-01-01T00:00:00.000Z" {
		t.Error(one.body)
	}
	as("a-admin").do("POST", "/v1/apps/a/pause", "").want(200)
	again := as("a-read").do("GET", "/v1/apps/a/pause", "").want(200)
	if again.str("paused_since") != one.str("paused_since") || again.str("paused_by") == one.str("paused_by") || again.get("paused_until") != nil || again.get("reason") != nil {
		t.Errorf("%s, after %s", again.body, one.body)
	}
	if a := as("all-read").do("GET", "/v1/apps?app=a", "").want(200); a.str("apps", 0, "pause", "since") != one.str("paused_since") || a.get("apps", 0, "pause", "until") != nil {
		t.Error(a.body)
	}
	if a := as("all-read").do("GET", "/v1/stats", "").want(200); a.get("pause") != nil {
		t.Error(a.body)
	}
	if a := as("a-read").do("GET", "/v1/stats", "").want(200); a.get("pause") == nil {
		t.Error(a.body)
	}
	as("root").do("POST", "/v1/apps/*/pause", `{"reason":"all"}`).want(200)
	if a := as("all-read").do("GET", "/v1/apps/*/pause", "").want(200); a.get("paused") != true || a.str("reason") != "all" {
		t.Error(a.body)
	}
	as("a-read").do("GET", "/v1/apps/*/pause", "").want(403)
	if a := as("a-read").do("GET", "/v1/apps/a/pause", "").want(200); a.str("all", "reason") != "all" {
		t.Error(a.body)
	}
	for _, token := range []string{"a-read", "all-read"} {
		if a := as(token).do("GET", "/v1/stats", "").want(200); a.str("pause", "reason") != "all" {
			t.Error(a.body)
		}
	}
	as("root").do("POST", "/v1/apps/*/resume", "").want(200)
	as("a-write").do("POST", "/v1/apps/a/resume", "").want(200)
	if a := as("a-read").do("GET", "/v1/apps/a/pause", "").want(200); a.get("paused") != false || a.get("all") != nil || a.get("paused_since") != nil {
		t.Error(a.body)
	}
}

// A pause of all apps holds each task until it ends, and none is lost.
func TestAllAppsHold(t *testing.T) {
	n := newNode(t)
	n.do("POST", "/v1/apps/*/pause", "").want(200)
	var keys []string
	for _, app := range []string{"a", "b"} {
		id := n.do("POST", "/v1/timers", hourly(app, "n", "")).want(201).str("id")
		keys = append(keys, n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key"))
	}
	for _, key := range keys {
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("reason") == "pause *" })
	}
	n.do("POST", "/v1/apps/*/resume", "").want(200)
	for _, key := range keys {
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
	}
}

// A target is limited and paused for all apps, by an admin of all apps; each spelling of a URL
// leads to the same one.
func TestTargets(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	as := func(token string) *testNode {
		n.token = token
		return n
	}
	const one = "/v1/targets/http/127.0.0.1/9"
	for _, token := range []string{"a-read", "a-write", "a-admin", "all-read"} {
		as(token).do("PUT", one, `{"rate":1}`).want(403)
		as(token).do("GET", "/v1/targets", "").want(403)
		as(token).do("GET", one, "").want(403)
		as(token).do("POST", one+"/pause", "").want(403)
	}
	as("root").do("GET", one, "").want(404)
	n.do("POST", one+"/resume", "").want(404)
	if a := n.do("PUT", "/v1/targets/HTTP/127.0.0.1/0009", `{"rate":1000}`).want(201); a.str("target", "target") != "http://127.0.0.1:9" {
		t.Error(a.body)
	}
	n.do("PUT", "/v1/targets/https/partner/443", `{"cooldown":true}`).want(201)
	n.do("PUT", one, `{}`).want(422)
	for _, bad := range []string{"ftp/h/1", "http/h/0", "http/h/x", "http/a%2Fb/1"} {
		n.do("PUT", "/v1/targets/"+bad, `{"rate":1}`).want(422)
	}
	n.do("POST", one+"/pause", `{"reason":"why"}`).want(200)
	if a := n.do("GET", "/v1/targets?limit=1", "").want(200); a.str("targets", 0, "target") != "http://127.0.0.1:9" || a.get("targets", 0, "paused") != true || a.str("next_cursor") == "" {
		t.Error(a.body)
	} else if a = n.do("GET", "/v1/targets?limit=1&cursor="+a.str("next_cursor"), "").want(200); a.str("targets", 0, "target") != "https://partner:443" {
		t.Error(a.body)
	}

	var keys []string
	for _, app := range []string{"a", "b"} {
		id := n.do("POST", "/v1/timers", hourly(app, "n", "")).want(201).str("id")
		keys = append(keys, n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key"))
	}
	for _, key := range keys {
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("reason") == "pause http://127.0.0.1:9" })
	}
	if a := n.do("GET", one, "").want(200); a.get("waiting") != 2.0 || a.get("rate") != 1000.0 {
		t.Error(a.body)
	}
	n.do("POST", one+"/resume", "").want(200)
	for _, key := range keys {
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
	}
	n.do("DELETE", one, "").want(200)
	n.do("GET", one, "").want(404)
}

// A forced run is held by a pause, and by no limit.
func TestForcedRun(t *testing.T) {
	n := newNode(t)
	const one = "/v1/apps/a/flows/k"
	n.do("PUT", one, `{"rate":1,"per":"24h"}`).want(201)
	n.do("POST", one+"/cooldown", `{"until":"2099-01-01T00:00:00Z"}`).want(200)
	id := n.do("POST", "/v1/timers", hourly("a", "n", `,"flow":["k"],"overlap":"allow"`)).want(201).str("id")
	run := func(body string) string {
		return n.do("POST", "/v1/timers/"+id+"/run", body).want(202).str("key")
	}
	held, forced := run(""), run(`{"force":true}`)
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+forced, "").str("status") == "succeeded" })
	n.do("POST", one+"/pause", "").want(200)
	forced = run(`{"force":true}`)
	for _, key := range []string{held, forced} {
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("reason") == "pause k" })
	}
	n.do("POST", "/v1/timers/"+id+"/run", `{"force":1}`).want(400)
	n.do("POST", "/v1/timers/"+id+"/run", `{"forced":true}`).want(400)
}

// Whoever resumes says which of the held dues are called; the others are recorded.
func TestResumeSaysWhatBecomesOfTheBacklog(t *testing.T) {
	n := newNode(t)
	for _, one := range []string{"/v1/apps/shop", "/v1/apps/shop/flows/partner"} {
		key := func(backlog string) string {
			n.do("POST", one+"/pause", "").want(200)
			due := time.Now().Add(20 * time.Millisecond).UnixMilli()
			timer := fmt.Sprintf(`{"app":"shop","name":"%s of %s","schedule":{"at":%d},"callback":{"url":"http://127.0.0.1:9/"},"flow":["partner"]}`, backlog, path.Base(one), due)
			task := fmt.Sprintf("/v1/tasks/%s_%d", n.do("POST", "/v1/timers", timer).want(201).str("id"), due)
			until(t, func() bool { return strings.HasPrefix(n.do("GET", task, "").str("reason"), "pause") })
			n.do("POST", one+"/resume", `{"backlog":"`+backlog+`"}`).want(200)
			return task
		}
		for backlog, status := range map[string]string{"call": "succeeded", "latest": "succeeded", "skip": "skipped"} {
			task := key(backlog)
			until(t, func() bool { return n.do("GET", task, "").str("status") == status })
		}
		if a := n.do("POST", one+"/resume", `{"backlog":"none"}`).want(422); a.str("code") != "unknown_value" || a.str("errors", 0, "field") != "backlog" {
			t.Error(a.body)
		}
		n.do("POST", one+"/resume", `{"until":"2099-01-01T00:00:00Z"}`).want(400)
	}
}

// A flow key or a target tells that a resume goes on at any node, whether or not anything waits for it.
func TestAResumeIsTold(t *testing.T) {
	k := limit.FlowKey("a", "k")
	var all nodes.Gate
	all.Add(nodes.Gate{Resuming: "skip"})
	all.Add(nodes.Gate{})
	g := gates{of: map[engine.ObjectKey]nodes.Gate{k: all}}
	if got := string(g.append([]byte(`{"a":1`), &engine.Object{ObjectKey: k})); got != `{"a":1,"resuming":"skip"` {
		t.Error(got)
	}
}

// A response closes a key: the key says until when, resume ends that.
func TestResponsesCloseAKey(t *testing.T) {
	var calls atomic.Int64
	n := serve(t, newEngine(t, func(c *engine.Call) engine.Outcome {
		calls.Add(1)
		o := answers(429)(c)
		o.RetryAfter = 100 * time.Second
		return o
	}, nil), ServerConfig{})
	const one = "/v1/apps/shop/flows/k"
	n.do("PUT", one, `{"rate":1000,"cooldown":true}`).want(201)
	create := func(name string) {
		n.do("POST", "/v1/timers", `{"app":"shop","name":"`+name+`","flow":["k"],"schedule":{"delay":"1ms"},"callback":{"url":"http://127.0.0.1:9/"}}`).want(201)
	}
	create("first")
	until(t, func() bool { return calls.Load() == 1 && n.do("GET", one, "").get("cooldown_until") != nil })
	create("second")
	until(t, func() bool { return n.do("GET", one, "").get("waiting") == 1.0 })
	a := n.do("GET", one, "").want(200)
	if at, err := time.Parse(time.RFC3339, a.str("cooldown_until")); err != nil || at.Before(time.Now().Add(80*time.Second)) || at.After(time.Now().Add(101*time.Second)) {
		t.Errorf("%v in %s", err, a.body)
	}
	n.do("PUT", one, `{"rate":100,"cooldown":true}`).want(200)
	if a := n.do("GET", one, ""); calls.Load() != 1 || a.get("cooldown_until") == nil {
		t.Errorf("%d calls after another limit: %s", calls.Load(), a.body)
	}
	n.do("POST", one+"/resume", "").want(200)
	until(t, func() bool { return calls.Load() == 2 })
}
