package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func tokens() []Token {
	sum := sha256.Sum256([]byte("root"))
	return []Token{
		{App: "a", Role: RoleRead, Token: "a-read"},
		{App: "a", Role: RoleWrite, Token: "a-write"},
		{App: "a", Role: RoleAdmin, Token: "a-admin"},
		{App: "b", Role: RoleAdmin, Token: "b-admin"},
		{App: AllApps, Role: RoleRead, Token: "all-read"},
		{App: AllApps, Role: RoleAdmin, SHA256: hex.EncodeToString(sum[:])},
	}
}

// TestEveryRouteAsksForItsRole walks the routing table with every token.
func TestEveryRouteAsksForItsRole(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens(), Pprof: true})
	fill := strings.NewReplacer("{id}", "7", "{key}", "7_8", "{app}", "a", "{name}", "n", "{profile}", "cmdline")
	for _, rt := range routes(ServerConfig{Pprof: true}) {
		path := fill.Replace(rt.path)
		for _, c := range []struct {
			token string
			role  Role
			known bool
		}{
			{"", 0, false},
			{"wrong", 0, false},
			{"a-read", RoleRead, true},
			{"a-write", RoleWrite, true},
			{"a-admin", RoleAdmin, true},
			{"all-read", RoleRead, true},
			{"root", RoleAdmin, true},
		} {
			if strings.HasSuffix(path, "/stream") {
				continue // TestStream
			}
			n.token = c.token
			got := n.do(rt.method, path, "")
			switch {
			case rt.role == roleOpen, rt.path == "/debug/pprof/" && c.token == "root":
				got.want(200)
			case !c.known:
				if got.want(401).header["Www-Authenticate"] == "" {
					t.Errorf("%s %s: no WWW-Authenticate", rt.method, path)
				}
			case c.role < rt.role:
				if got.want(403).str("code") != "forbidden" {
					t.Errorf("%s %s: %s", rt.method, path, got.body)
				}
			case got.status == 401 || got.status == 403 && path != "/v1/admin/backup" && path != "/v1/system" && !strings.HasPrefix(path, "/debug/pprof/") || got.status >= 500:
				t.Errorf("%s %s with %q: %d %s", rt.method, path, c.token, got.status, got.body)
			}
		}
	}
}

// TestProfilesAreOfAllApps: a profile has what is of every app, the command line among it.
func TestProfilesAreOfAllApps(t *testing.T) {
	for token, want := range map[string]int{"a-admin": 403, "root": 200} {
		n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens(), Pprof: true})
		n.token = token
		n.do("GET", "/debug/pprof/", "").want(want)
		n.do("GET", "/debug/pprof/cmdline", "").want(want)
	}
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Pprof: true})
	n.do("GET", "/debug/pprof/cmdline", "").want(200)
}

// TestAnotherAppsThingsAreNotThere: reading and changing is 404 whether they
// are there or not; making is 403, and names the app that the token is for.
func TestAnotherAppsThingsAreNotThere(t *testing.T) {
	n := serve(t, newEngine(t, answers(400), nil), ServerConfig{Tokens: tokens()})
	n.token = "a-write"
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "failed" })
	n.do("POST", "/v1/timers", `{"name":"mine","schedule":{"every":"1h"},"callback":{"url":"http://x/"}}`).want(201)

	n.token = "b-admin"
	for _, rt := range []string{
		"GET /v1/timers/" + id, "PATCH /v1/timers/" + id, "DELETE /v1/timers/" + id, "POST /v1/timers/" + id + "/enable",
		"POST /v1/timers/" + id + "/disable", "POST /v1/timers/" + id + "/run", "GET /v1/timers/" + id + "/upcoming",
		"GET /v1/apps/a/timers/n", "DELETE /v1/apps/a/timers/n", "GET /v1/tasks/" + key, "POST /v1/tasks/" + key + "/retry",
	} {
		method, path, _ := strings.Cut(rt, " ")
		there := n.do(method, path, map[string]string{"PATCH": "{}"}[method]).want(404)
		absent := n.do(method, strings.NewReplacer(id, "77", "timers/n", "timers/m").Replace(path), map[string]string{"PATCH": "{}"}[method]).want(404)
		if there.body != absent.body && !strings.Contains(absent.body, "no such thing") {
			t.Errorf("%s tells that it is there: %s", rt, there.body)
		}
	}
	for _, c := range []answer{
		n.do("POST", "/v1/timers", hourly("a", "x", "")),
		n.do("PUT", "/v1/apps/a/timers/x", `{}`),
		n.do("PUT", "/v1/apps/a/timers/x?dry_run=true", `{}`),
		n.do("GET", "/v1/timers?app=a", ""),
		n.do("GET", "/v1/tasks?app=a", ""),
		n.do("POST", "/v1/timers/delete?app=a", ""),
		n.do("POST", "/v1/admin/backup", ""),
	} {
		c.want(403)
	}
	if got := n.do("POST", batchPath, `{"timers":[`+hourly("a", "x", "")+`,`+hourly("b", "x", "")+`]}`).want(200); got.get("results", 0, "status") != 403.0 || got.get("results", 1, "status") != 201.0 {
		t.Error(got.body)
	}
	if got := n.do("GET", "/v1/timers", "").want(200); len(got.get("timers").([]any)) != 1 {
		t.Error(got.body)
	}
	if got := n.do("GET", "/v1/tasks", "").want(200); len(got.get("tasks").([]any)) != 0 {
		t.Error(got.body)
	}
	op := n.do("POST", "/v1/timers/delete", `{"all":true}`).want(200)
	if op.get("count") != 1.0 {
		t.Error(op.body)
	}
	n.token = "a-read"
	n.do("GET", "/v1/operations/"+op.str("id"), "").want(404)
	n.token = "all-read"
	n.do("GET", "/v1/operations/"+op.str("id"), "").want(200)
	if got := n.do("GET", "/v1/timers", "").want(200); len(got.get("timers").([]any)) != 2 {
		t.Error(got.body)
	}
}

func TestTokensThatCannotBe(t *testing.T) {
	for _, ts := range [][]Token{
		{{App: "a", Role: RoleRead}},
		{{App: "a", Token: "x"}},
		{{Role: RoleRead, Token: "x"}},
		{{App: "a", Role: RoleRead, SHA256: "12"}},
		{{App: "a", Role: RoleRead, Token: "x"}, {App: "b", Role: RoleRead, Token: "x"}},
	} {
		if _, err := NewServer(nil, ServerConfig{Tokens: ts}); err == nil {
			t.Errorf("%v is taken", ts)
		}
	}
}

func TestForeignPagesChangeNothing(t *testing.T) {
	n := newNode(t)
	body := hourly("a", "n", "")
	n.do("POST", "/v1/timers", body, "Origin", "https://evil.example").want(403)
	n.do("POST", "/v1/timers", body, "Origin", "null").want(403)
	n.do("POST", "/v1/timers", body, "Sec-Fetch-Site", "cross-site").want(403)
	n.do("POST", "/v1/timers", body, "Sec-Fetch-Site", "same-site").want(403)
	n.do("GET", "/v1/timers", "", "Origin", "https://evil.example").want(200)
	n.do("POST", "/v1/timers", body, "Origin", "http://xtimer.test").want(201)
	n.do("POST", "/v1/timers", body, "Sec-Fetch-Site", "same-origin").want(200)
}
