package httpapi

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"xtimer/engine/inspect"
	"xtimer/httpapi/nodes"

	"xtimer/engine"
	"xtimer/httpapi/access"
)

func TestVersions(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	n.token = "a-write"
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	n.do("PATCH", "/v1/timers/"+id, `{"priority":7}`).want(200)
	n.do("POST", "/v1/timers/"+id+"/disable", `{"reason":"r"}`).want(200)
	got := n.do("GET", "/v1/timers/"+id+"/versions", "").want(200)
	for i, want := range []float64{3, 2, 1} {
		if v := got.get("versions", i, "version"); v != want {
			t.Errorf("version %d is %v, want %v", i, v, want)
		}
	}
	if got.get("versions", 0, "status") != "disabled" || got.get("versions", 1, "priority") != 7.0 || got.get("versions", 2, "priority") != 5.0 {
		t.Error(got.body)
	}
	if got := n.do("GET", "/v1/timers/"+id+"/versions?limit=1", "").want(200); len(got.get("versions").([]any)) != 1 {
		t.Error(got.body)
	}
	n.do("GET", "/v1/timers/123/versions", "").want(404)
	n.do("DELETE", "/v1/timers/"+id, "").want(200)
	if got := n.do("GET", "/v1/timers/"+id+"/versions", "").want(200); len(got.get("versions").([]any)) != 3 {
		t.Errorf("a deleted timer is not what it was: %s", got.body)
	}
	n.token = "b-admin"
	n.do("GET", "/v1/timers/"+id+"/versions", "").want(404)
}

// TestComing: the first due of each timer in a minute, in order.
func TestComing(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	n.token = "root"
	minute := time.Now().Truncate(time.Minute).Add(time.Minute)
	at := func(d time.Duration) string { return minute.Add(d).UTC().Format("2006-01-02T15:04:05.000Z") }
	for i, d := range []time.Duration{30*time.Second + 250*time.Millisecond, 2 * time.Second, 61 * time.Second, 30 * time.Second} {
		n.do("POST", "/v1/timers", fmt.Sprintf(`{"app":"%c","name":"t%d","schedule":{"at":%q},"callback":{"url":"http://x/"}}`, "abab"[i], i, at(d))).want(201)
	}
	path := "/v1/upcoming?at=" + at(0)
	got := n.do("GET", path, "").want(200)
	names := func(a answer) (s string) {
		for _, d := range a.get("dues").([]any) {
			s += d.(map[string]any)["name"].(string) + " "
		}
		return s
	}
	if names(got) != "t1 t3 t0 " || got.str("minute") != at(0) || got.get("partial") != false {
		t.Error(got.body)
	}
	if s := got.get("due_by_second").([]any); s[2] != 1.0 || s[30] != 2.0 || s[31] != 0.0 {
		t.Error(got.body)
	}
	if got := n.do("GET", path+"&limit=1", "").want(200); names(got) != "t1 " || got.get("partial") != true {
		t.Error(got.body)
	}
	if got := n.do("GET", path+"&app=a", "").want(200); names(got) != "t0 " {
		t.Error(got.body)
	}
	n.token = "a-read"
	if got := n.do("GET", path, "").want(200); names(got) != "t0 " {
		t.Errorf("a token of one app sees %s", got.body)
	}
	n.do("GET", path+"&app=b", "").want(403)
	for _, out := range []time.Duration{-2 * time.Minute, 62 * time.Minute} {
		n.do("GET", "/v1/upcoming?at="+at(out), "").want(422)
	}
}

// TestFailures: by target and error, the largest first, of one app.
func TestFailures(t *testing.T) {
	caller := callerFunc(func(c *engine.Call) engine.Outcome {
		if strings.Contains(c.Timer.Callback.URL, "away") {
			return engine.Outcome{Class: engine.ClassRejected, ErrorClass: "refused"}
		}
		return engine.Outcome{Class: engine.ClassRejected, ErrorClass: "status", Code: 410, Sent: time.Now()}
	})
	n := serve(t, newEngine(t, caller, nil), ServerConfig{Tokens: tokens()})
	n.token = "root"
	run := func(app, name, url string) (key string) {
		id := n.do("PUT", "/v1/apps/"+app+"/timers/"+name, `{"schedule":{"every":"1h"},"callback":{"url":"`+url+`"}}`).str("timer", "id")
		key = n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "failed" })
		return key
	}
	run("a", "x", "http://one/x")
	run("a", "y", "http://one/y?q")
	away := run("b", "z", "http://away")
	got := n.do("GET", "/v1/tasks/failures", "").want(200)
	if got.str("groups", 0, "target") != "http://one" || got.str("groups", 0, "error") != "status 410" || got.get("groups", 0, "count") != 2.0 {
		t.Error(got.body)
	}
	if got.str("groups", 1, "target") != "http://away" || got.str("groups", 1, "error") != "refused" || got.str("groups", 1, "keys", 0) != away {
		t.Error(got.body)
	}
	n.do("GET", "/v1/tasks/failures?status=succeeded", "").want(422)
	n.token = "a-read"
	if got := n.do("GET", "/v1/tasks/failures", "").want(200); strings.Contains(got.body, "away") {
		t.Errorf("a token of one app sees %s", got.body)
	}
}

func TestTokenGrant(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	n.token = "a-read"
	if got := n.do("GET", "/v1/token", "").want(200); got.body != `{"app":"a","role":"read","name":"read token of a","needed":true}` {
		t.Error(got.body)
	}
	n.token = "nobody"
	n.do("GET", "/v1/token", "").want(401)
	if got := newNode(t).do("GET", "/v1/token", "").want(200); got.body != `{"app":"*","role":"admin","name":"anonymous","needed":false}` {
		t.Error(got.body)
	}
}

// TestTrend: the minutes that were taken, and the present one.
func TestTrend(t *testing.T) {
	n := newNode(t)
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).str("id")
	n.s.trends[access.AllApps].take(n.e)
	key := n.do("POST", "/v1/timers/"+id+"/run", "").str("key")
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
	for range trendLength - 1 {
		n.s.trends[access.AllApps].take(n.e)
	}
	got := n.do("GET", "/v1/stats/trend?minutes=1440", "").want(200)
	if len(got.get("minutes").([]any)) != 1440 || got.get("minutes", 0, "ended") != 1.0 || got.get("minutes", 1439, "ended") != 0.0 {
		t.Errorf("%.300s", got.body)
	}
	n.s.trends[access.AllApps].take(n.e)
	if len(n.s.trends[access.AllApps].points) != trendLength {
		t.Errorf("%d minutes are kept", len(n.s.trends[access.AllApps].points))
	}
}

// TestConsole: it has all paths but the API's, and asks the API with the rights
// of a token.
func TestConsole(t *testing.T) {
	var api http.RoundTripper
	build := func(to http.RoundTripper) http.Handler {
		api = to
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic("a bug")
			}
			io.WriteString(w, "page "+r.URL.Path)
		})
	}
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens(), Console: build, Log: slog.New(slog.DiscardHandler)})
	n.do("GET", "/panic", "").want(500)
	for _, path := range []string{"/", "/timers", "/v2", "/v1"} {
		if got := n.do("GET", path, "").want(200); got.body != "page "+path {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	for _, path := range []string{"/timers", "/nope"} { // a program that forgot its /v1
		if got := n.do("GET", path, "", "Accept", "application/json").want(404); got.header["Content-Type"] != "application/problem+json" {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	for _, path := range []string{"/v1/", "/v1/nothing", "/debug/pprof/"} {
		if got := n.do("GET", path, "").want(404); got.header["Content-Type"] != "application/problem+json" {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	ask := func(method, path, token, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://xtimer"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		p, err := api.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Body.Close()
		b, err := io.ReadAll(p.Body)
		if err != nil {
			t.Fatal(err)
		}
		return p.StatusCode, string(b)
	}
	if status, body := ask("POST", "/v1/timers", "a-write", hourly("a", "n", "")); status != 201 || !strings.Contains(body, `"name":"n"`) {
		t.Errorf("%d %s", status, body)
	}
	for token, want := range map[string]int{"a-read": 403, "nobody": 401, "b-admin": 403} {
		if status, body := ask("POST", "/v1/timers", token, hourly("a", "m", "")); status != want {
			t.Errorf("%s: %d %s", token, status, body)
		}
	}
}

// TestRebound: where nobody needs a token, a page at a name that was pointed at
// loopback reads and changes nothing, neither over the API nor over the console.
func TestRebound(t *testing.T) {
	changed := 0 // or read
	build := func(http.RoundTripper) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { changed++ })
	}
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Console: build, LocalOnly: true})
	for origin, refused := range map[string]bool{
		"http://evil.example": true, "http://evil.example:8080": true, "http://localhost.evil.example": true, "null": true,
		"http://localhost:8080": false, "http://127.0.0.1:8080": false, "http://[::1]:8080": false,
	} {
		was := changed
		api := n.do("PUT", "/v1/apps/a/timers/n", hourly("a", "n", ""), "Host", "127.0.0.1", "Sec-Fetch-Site", "same-origin", "Origin", origin)
		page := n.do("POST", "/timers/act", "", "Host", "127.0.0.1", "Sec-Fetch-Site", "same-origin", "Origin", origin)
		if refused != (api.status == 403) || refused != (page.status == 403) || refused != (changed == was) {
			t.Errorf("%s: API %d, page %d: %s", origin, api.status, page.status, api.body)
		}
	}
	for host, refused := range map[string]bool{
		"evil.example": true, "evil.example:8080": true, "localhost.evil.example": true, "127.0.0.1.evil.example:8080": true, "evil.": true,
		"localhost": false, "LocalHost:8080": false, "build-7:8080": false, "console.localhost:8080": false, "127.0.0.1": false, "10.0.0.7:8080": false, "[::1]": false, "[::1]:8080": false,
	} {
		was := changed
		for _, got := range []answer{
			n.do("GET", "/v1/timers", "", "Host", host),
			n.do("HEAD", "/v1/apps/a/timers/n", "", "Host", host),
			n.do("PUT", "/v1/apps/a/timers/n", hourly("a", "n", ""), "Host", host), // no page asks
			n.do("GET", "/timers", "", "Host", host),
		} {
			if refused != (got.status == 403) || !refused && got.status != 200 {
				t.Errorf("%s: %d %s", host, got.status, got.body)
			}
		}
		if refused != (changed == was) {
			t.Errorf("%s: the console answers, %v", host, !refused)
		}
		for _, path := range []string{"/livez", "/readyz", "/metrics", "/metrics?x=/", "/v1/version"} {
			if got := n.do("GET", path, "", "Host", host); got.status == 403 {
				t.Errorf("%s%s: %s", host, path, got.body)
			}
		}
		for _, path := range []string{"/v1/../livez", "/livez/../timers", "/debug/pprof/"} {
			if got := n.do("GET", path, "", "Host", host); refused && got.status != 403 {
				t.Errorf("%s%s: %d %s", host, path, got.status, got.body)
			}
		}
	}
	for request, want := range map[string]int{
		"GET http://evil.example/v1/timers HTTP/1.1\nHost: 127.0.0.1\n\n":  403, // the target's host counts
		"GET http://127.0.0.1/v1/timers HTTP/1.1\nHost: evil.example\n\n":  200,
		"GET /v1/timers HTTP/1.0\n\n":                                      200,
		"GET /%6civez HTTP/1.1\nHost: evil.example\nAccept: text/html\n\n": 403, // the console's
	} {
		c := n.raw()
		c.send(request)
		if got := c.receive(); got.status != want {
			t.Errorf("%q: %d %s", request, got.status, got.body)
		}
	}
}

// What is not a path is the client's fault, with the console and without.
func TestTargetsThatAreNoPaths(t *testing.T) {
	e := newEngine(t, answers(200), nil)
	build := func(http.RoundTripper) http.Handler { return http.NotFoundHandler() }
	for _, cfg := range []ServerConfig{{}, {Console: build}, {Console: build, LocalOnly: true}} {
		n := serve(t, e, cfg)
		for request, want := range map[string]int{
			"CONNECT example.com:443": 501,
			"CONNECT /v1/timers":      501,
			"OPTIONS *":               400,
			"GET example.com:80":      400,
			"GET %zz":                 400,
			"GET /%zz":                400,
		} {
			c := n.raw()
			c.send(request + " HTTP/1.1\nHost: localhost\nAccept: text/html\n\n")
			if got := c.receive(); got.status != want {
				t.Errorf("%s: %d, want %d: %s", request, got.status, want, got.body)
			}
		}
	}
}

// TestConsoleStream: a stream goes through, and ends when the server does.
func TestConsoleStream(t *testing.T) {
	ended := make(chan struct{})
	build := func(api http.RoundTripper) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			q, _ := http.NewRequestWithContext(r.Context(), "GET", "http://xtimer/v1/tasks/stream", nil)
			p, err := api.RoundTrip(q)
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Body.Close()
			w.Header().Set("Content-Type", p.Header.Get("Content-Type"))
			b := make([]byte, 4096)
			for {
				k, err := p.Body.Read(b)
				if err != nil {
					return
				}
				w.Write(b[:k])
				w.(http.Flusher).Flush()
			}
		})
	}
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Console: build})
	c := n.raw()
	c.send("GET /live HTTP/1.1\nHost: x\n\n")
	line := func(want string) {
		t.Helper()
		for {
			s, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatalf("no %q: %v", want, err)
			}
			if strings.Contains(s, want) {
				return
			}
		}
	}
	line("text/event-stream")
	line(": xtimer")
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).str("id")
	key := n.do("POST", "/v1/timers/"+id+"/run", "").str("key")
	line("-" + key)
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	<-ended
}

// The dues of one minute are not added to those of another.
func TestComingOfTwoMinutes(t *testing.T) {
	c, next := inspect.Coming{Minute: 1_800_000_000_000}, time.UnixMilli(1_800_000_060_000).UTC().Format(time.RFC3339)
	other := fmt.Sprintf(`{"minute":%q,"due_by_second":[7%s],"dues":[{"timer_id":"12","app":"a","due":%q}],"partial":false}`, next, strings.Repeat(",0", 59), next)
	whole := addComing(&c, nodeAnswer{Answer: nodes.Answer{Status: fasthttp.StatusOK, Body: []byte(other)}})
	if whole || c.Seconds[0] != 0 || len(c.Dues) != 0 {
		t.Errorf("whole %v: %d in the first second, %v", whole, c.Seconds[0], c.Dues)
	}
}
