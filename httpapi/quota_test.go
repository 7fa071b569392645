package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// A quota is set, read with what is used of it, and deleted.
func TestQuota(t *testing.T) {
	n := newNode(t)
	const one = "/v1/apps/shop/quota"
	n.do("GET", one, "").want(404)
	n.do("PUT", one, `{"creates_per_second":3,"in_flight":2}`).want(201)
	if a := n.do("PUT", one, `{"creates_per_second":3,"in_flight":2,"fires_per_second":0}`).want(200); a.str("result") != "unchanged" {
		t.Error(a.body)
	}
	a := n.do("GET", one, "").want(200)
	for _, want := range []string{`{"app":"shop","timers":0,"bytes":0,"creates_per_second":3,"fires_per_second":0,"in_flight":2,"use":{`, `"in_flight":0,"held":0}`, `"version":1`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	for body, code := range map[string]string{
		`{}`: "nothing_limited", `{"in_flight":0}`: "nothing_limited", `{"in_flight":-1}`: "out_of_range", `{"more":1}`: "unknown_field",
	} {
		if a := n.do("PUT", one, body); a.str("code") != code {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	n.do("PUT", "/v1/apps/*/quota", `{"in_flight":1}`).want(422)
	n.do("PUT", one, `{"in_flight":7}`, "If-Match", `"1"`).want(200)
	n.do("PUT", one, `{"in_flight":8}`, "If-Match", `"1"`).want(412)
	n.do("DELETE", one, "").want(200)
	n.do("GET", one, "").want(404)
}

// Only an admin of all apps sets a quota; who may read the app may read it.
func TestWhoSetsAQuota(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	const one = "/v1/apps/a/quota"
	n.token = "root"
	n.do("PUT", one, `{"in_flight":1}`).want(201)
	n.token = "a-admin"
	n.do("PUT", one, `{"in_flight":2}`).want(403)
	n.do("DELETE", one, "").want(403)
	n.do("GET", one, "").want(200)
	n.token = "b-admin"
	n.do("GET", one, "").want(403)
}

// Creates beyond the quota are refused, of a batch each by itself; what was valid and was
// refused can be created a second later, and changes are no creates.
func TestCreatesPerSecond(t *testing.T) {
	n := newNode(t)
	n.do("PUT", "/v1/apps/shop/quota", `{"creates_per_second":3}`).want(201)
	timer := func(app, name string) string {
		return fmt.Sprintf(`{"app":%q,"name":%q,"schedule":{"delay":"1h"},"callback":{"url":"http://127.0.0.1:1/"}}`, app, name)
	}
	bad := `{"app":"shop","name":"bad","schedule":{"cron":"x"},"callback":{"url":"http://127.0.0.1:1/"}}`
	lines := []string{bad, timer("shop", "a"), timer("shop", "b"), timer("shop", "c"), timer("shop", "d"), timer("else", "a"), timer("shop", "e")}
	a := n.do("POST", batchPath, `{"timers":[`+strings.Join(lines, ",")+`]}`).want(200)
	for i, want := range []float64{422, 201, 201, 201, 429, 201, 429} {
		if got := a.get("results", i, "status"); got != want {
			t.Errorf("timer %d: %v, want %v", i, got, want)
		}
	}
	if a.str("results", 4, "error", "code") != "rate_limited" {
		t.Error(a.body)
	}
	a = n.do("POST", "/v1/timers", timer("shop", "f")).want(429)
	if a.str("code") != "rate_limited" || a.header["Retry-After"] > "2" || a.header["Ratelimit-Policy"] != `"creates";q=3;w=1` || a.header["Ratelimit"] != `"creates";r=0;t=`+a.header["Retry-After"] {
		t.Error(a.body, a.header["Retry-After"], a.header["Ratelimit-Policy"], a.header["Ratelimit"])
	}
	n.do("PUT", "/v1/apps/shop/timers/g", timer("shop", "g")).want(429)
	n.do("PUT", "/v1/apps/shop/timers/a", strings.Replace(timer("shop", "a"), "1h", "2h", 1)).want(200)
	n.do("DELETE", "/v1/apps/shop/quota", "").want(200)
	n.do("POST", "/v1/timers", timer("shop", "f")).want(201)
}

// What is beyond the stock of an app gets 429 without Retry-After, and the error has the figures.
func TestAQuotaOfTimers(t *testing.T) {
	n := newNode(t)
	const one = "/v1/apps/shop/quota"
	timer := func(name, body string) string {
		return fmt.Sprintf(`{"app":"shop","name":%q,"schedule":{"delay":"1h"},"callback":{"url":"http://127.0.0.1:1/","body":%q}}`, name, body)
	}
	n.do("POST", "/v1/timers", timer("a", "1")).want(201)
	n.do("PUT", one, `{"timers":2,"bytes":100}`).want(201)
	n.do("POST", "/v1/timers", timer("b", "1")).want(201)
	n.do("POST", "/v1/timers", timer("b", "1")).want(200)
	a := n.do("POST", "/v1/timers", timer("c", "1")).want(429)
	if want := "the quota of app shop allows 2 timers: the app has 2, and the request adds 1"; a.str("code") != "quota_exceeded" || a.str("detail") != want || a.header["Retry-After"] != "" {
		t.Error(a.body, a.header)
	}
	a = n.do("PUT", "/v1/apps/shop/timers/b", timer("b", strings.Repeat("x", 200))).want(429)
	if a.str("code") != "quota_exceeded" || !strings.Contains(a.str("detail"), "100 bytes") {
		t.Error(a.body)
	}
	// A dry run refuses what the request would be refused for; it takes no room and counts as no refusal.
	path := func(name string) string { return "/v1/apps/shop/timers/" + name + "?dry_run=true" }
	a = n.do("PUT", path("c"), timer("c", "1")).want(429)
	if want := "the quota of app shop allows 2 timers: the app has 2, and the request adds 1"; a.str("code") != "quota_exceeded" || a.str("detail") != want {
		t.Error(a.body)
	}
	a = n.do("PUT", path("b"), timer("b", strings.Repeat("x", 200))).want(429)
	if a.str("code") != "quota_exceeded" || !strings.Contains(a.str("detail"), "100 bytes") {
		t.Error(a.body)
	}
	for what, body := range map[string]string{"unchanged": "1", "updated": "2"} {
		if a = n.do("PUT", path("b"), timer("b", body)).want(200); a.str("result") != what {
			t.Error(a.body)
		}
	}
	n.do("PUT", path("b"), timer("b", strings.Repeat("x", 200)), "If-None-Match", "*").want(412)
	a = n.do("POST", batchPath, `{"timers":[`+timer("a", "1")+","+timer("d", "1")+`]}`).want(200)
	if a.get("results", 0, "status") != 200.0 || a.get("results", 1, "status") != 429.0 {
		t.Error(a.body)
	}
	a = n.do("GET", one, "").want(200)
	if a.get("use", "timers") != 2.0 || a.get("use", "bytes") == nil {
		t.Error(a.body)
	}
	n.do("DELETE", "/v1/apps/shop/timers/a", "").want(200)
	for range 2 {
		n.do("PUT", path("c"), timer("c", "1")).want(200)
	}
	n.do("POST", "/v1/timers", timer("c", "1")).want(201)
}
