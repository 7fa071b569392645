package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/access"
)

func tokens() []access.Token {
	sum := sha256.Sum256([]byte("root"))
	return []access.Token{
		{App: "a", Role: access.RoleRead, Token: "a-read"},
		{App: "a", Role: access.RoleWrite, Token: "a-write"},
		{App: "a", Role: access.RoleAdmin, Token: "a-admin"},
		{App: "b", Role: access.RoleAdmin, Token: "b-admin"},
		{App: access.AllApps, Role: access.RoleRead, Token: "all-read"},
		{App: access.AllApps, Role: access.RoleAdmin, SHA256: hex.EncodeToString(sum[:])},
	}
}

// TestEveryRouteAsksForItsRole walks the routing table with every token.
func TestEveryRouteAsksForItsRole(t *testing.T) {
	e := newEngine(t, answers(200), nil)
	n := serve(t, e, ServerConfig{Tokens: tokens(), Pprof: true, Alerts: idleAlerts(e)})
	fill := strings.NewReplacer("{id}", "7", "{key}", "7_8", "{app}", "a", "{name}", "n", "{profile}", "cmdline", "{scheme}", "http", "{host}", "h", "{port}", "1")
	for _, rt := range routes(ServerConfig{Pprof: true}) {
		path := fill.Replace(rt.path)
		for _, c := range []struct {
			token string
			role  access.Role
			known bool
		}{
			{"", 0, false},
			{"wrong", 0, false},
			{"a-read", access.RoleRead, true},
			{"a-write", access.RoleWrite, true},
			{"a-admin", access.RoleAdmin, true},
			{"all-read", access.RoleRead, true},
			{"root", access.RoleAdmin, true},
		} {
			if strings.HasSuffix(path, "/stream") {
				continue // TestStream
			}
			n.token = c.token
			got := n.do(rt.method, path, "")
			switch {
			case rt.role == access.RoleOpen, rt.path == "/debug/pprof/" && c.token == "root":
				got.want(200)
			case !c.known:
				if got.want(401).header["Www-Authenticate"] == "" {
					t.Errorf("%s %s: no WWW-Authenticate", rt.method, path)
				}
			case c.role < rt.role:
				if got.want(403).str("code") != "forbidden" {
					t.Errorf("%s %s: %s", rt.method, path, got.body)
				}
			case got.status == 401 || got.status == 403 && path != "/v1/admin/backup" && path != "/v1/apps/a/quota" && !strings.HasPrefix(path, "/v1/cluster") && !strings.HasPrefix(path, "/v1/targets") && !strings.HasPrefix(path, "/v1/system") && !strings.HasPrefix(path, "/debug/pprof/") || got.status >= 500:
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

// watchedCold notes which reads a request makes.
type watchedCold struct {
	engine.Cold
	mu    sync.Mutex
	reads []string
}

func (c *watchedCold) note(read string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, read)
}

// asked are the reads since the last time.
func (c *watchedCold) asked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := strings.Join(c.reads, " ")
	c.reads = nil
	return s
}

func (c *watchedCold) Timer(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	c.note("Timer")
	return c.Cold.Timer(ctx, id)
}

func (c *watchedCold) TimerByName(ctx context.Context, app, name string) (*engine.Timer, error) {
	c.note("TimerByName")
	return c.Cold.TimerByName(ctx, app, name)
}

func (c *watchedCold) Versions(ctx context.Context, id engine.TimerID, before uint32, limit int) ([]*engine.Timer, error) {
	c.note("Versions")
	return c.Cold.Versions(ctx, id, before, limit)
}

func (c *watchedCold) Task(ctx context.Context, k engine.Key) (*engine.Task, error) {
	c.note("Task")
	return c.Cold.Task(ctx, k)
}

func (c *watchedCold) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
	c.note("Tasks")
	return c.Cold.Tasks(ctx, f, before, limit)
}

func (c *watchedCold) LastTask(ctx context.Context, id engine.TimerID) (*engine.Task, error) {
	c.note("LastTask")
	return c.Cold.LastTask(ctx, id)
}

// TestAnotherAppsThingsAreNotThere: reading and changing is 404 whether they
// are there or not; making is 403, and names the app that the token is for.
func TestAnotherAppsThingsAreNotThere(t *testing.T) {
	var cold watchedCold
	e, open := builtEngineOn(t, answers(400), nil, func(cfg *scheduler.Config) {
		cold.Cold = cfg.Cold
		cfg.Cold = &cold
	})
	open()
	n := serve(t, e, ServerConfig{Tokens: tokens()})
	n.token = "a-write"
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "failed" })
	op := n.do("POST", "/v1/timers/enable", `{"all":true}`).want(200).str("id")
	n.do("POST", "/v1/timers", `{"name":"mine","schedule":{"every":"1h"},"callback":{"url":"http://x/"}}`).want(201)

	n.token = "b-admin"
	for _, rt := range []string{
		"GET /v1/timers/" + id, "PATCH /v1/timers/" + id, "DELETE /v1/timers/" + id, "POST /v1/timers/" + id + "/enable",
		"POST /v1/timers/" + id + "/disable", "POST /v1/timers/" + id + "/run", "GET /v1/timers/" + id + "/upcoming",
		"GET /v1/timers/" + id + "/versions", "GET /v1/apps/a/timers/n", "DELETE /v1/apps/a/timers/n",
		"GET /v1/tasks/" + key, "POST /v1/tasks/" + key + "/retry", "POST /v1/tasks/" + key + "/dismiss", "GET /v1/operations/" + op,
		"GET /v1/tasks?timer_id=" + id, "GET /v1/tasks/failures?timer_id=" + id, "POST /v1/tasks/retry?timer_id=" + id,
	} {
		method, path, _ := strings.Cut(rt, " ")
		body := map[string]string{"PATCH": "{}"}[method]
		cold.asked()
		there := n.do(method, path, body)
		lookups := cold.asked()
		absent := n.do(method, strings.NewReplacer(id, "77", op, "78", "timers/n", "timers/m").Replace(path), body)
		named := strings.NewReplacer(id, "77", op, "78", "a/n", "a/m").Replace(there.body) // the answer repeats the path
		if there.status != absent.status || named != absent.body || (there.status != 404) != strings.Contains(rt, "?timer_id") {
			t.Errorf("%s tells that it is there: %s, and else %s", rt, there.body, absent.body)
		}
		if not := cold.asked(); lookups != not {
			t.Errorf("%s looks up %s, and what is not there %s", rt, lookups, not)
		}
		if strings.Contains(lookups, "LastTask") {
			t.Errorf("%s reads history: %s", rt, lookups)
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
	for _, path := range []string{"/v1/timers?q=n", "/v1/tasks?q=n", "/v1/tasks?code=4xx"} {
		if got := n.do("GET", path, "").want(200); strings.Contains(got.body, `"app":"a"`) {
			t.Errorf("%s finds what is of another app: %s", path, got.body)
		}
	}
	if got := n.do("GET", "/v1/timers?total=true", "").want(200); got.get("total", "count") != 1.0 {
		t.Errorf("the total has other apps' timers: %s", got.body)
	}
	if got := n.do("GET", "/v1/tasks", "").want(200); len(got.get("tasks").([]any)) != 0 {
		t.Error(got.body)
	}
	deleted := n.do("POST", "/v1/timers/delete", `{"all":true}`).want(200)
	if deleted.get("count") != 1.0 {
		t.Error(deleted.body)
	}
	n.token = "a-read"
	n.do("GET", "/v1/operations/"+deleted.str("id"), "").want(404)
	n.token = "all-read"
	n.do("GET", "/v1/operations/"+deleted.str("id"), "").want(200)
	if got := n.do("GET", "/v1/timers", "").want(200); len(got.get("timers").([]any)) != 2 {
		t.Error(got.body)
	}
}

// A cursor tells nothing, is good for its own list and app alone, and for as long as the
// key is the same.
func TestCursors(t *testing.T) {
	e := newEngine(t, answers(200), nil)
	key := []byte(strings.Repeat("k", CursorKeySize))
	n := serve(t, e, ServerConfig{Tokens: tokens(), CursorKey: key})
	n.token = "root"
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		id := n.do("POST", "/v1/timers", hourly("a", name, "")).want(201).str("id")
		n.do("POST", "/v1/timers/"+id+"/run", "").want(202)
		ids = append(ids, id)
	}
	cursor := func(token, path string) string {
		t.Helper()
		n.token = token
		return n.do("GET", path+"?limit=1", "").want(200).str("next_cursor")
	}
	timers, tasks := cursor("a-read", "/v1/timers"), cursor("a-read", "/v1/tasks")
	for _, c := range []string{timers, tasks} {
		b, err := base64.RawURLEncoding.DecodeString(c)
		if err != nil || c == "" {
			t.Fatalf("%q: %v", c, err)
		}
		for _, id := range ids {
			if strings.Contains(string(b), id) {
				t.Errorf("a cursor tells of timer %s", id)
			}
		}
	}
	n.do("GET", "/v1/timers?cursor="+timers, "").want(200)
	n.do("GET", "/v1/tasks?cursor="+tasks, "").want(200)
	n.do("GET", "/v1/tasks?cursor="+timers, "").want(400)
	n.do("GET", "/v1/tasks?cursor="+base64.RawURLEncoding.EncodeToString([]byte(ids[0]+"_1763658000250")), "").want(400)
	n.token = "b-admin"
	n.do("GET", "/v1/tasks?cursor="+tasks, "").want(400)

	again := serve(t, e, ServerConfig{Tokens: tokens(), CursorKey: key})
	again.token = "a-read"
	again.do("GET", "/v1/timers?cursor="+timers, "").want(200)
	other := serve(t, e, ServerConfig{Tokens: tokens()})
	other.token = "a-read"
	other.do("GET", "/v1/timers?cursor="+timers, "").want(400)
	if _, err := NewServer(e, ServerConfig{CursorKey: key[1:]}); err == nil {
		t.Error("a short key is taken")
	}
}

func TestTokensThatCannotBe(t *testing.T) {
	for _, ts := range [][]access.Token{
		{{App: "a", Role: access.RoleRead}},
		{{App: "a", Token: "x"}},
		{{Role: access.RoleRead, Token: "x"}},
		{{App: "a", Role: access.RoleRead, SHA256: "12"}},
		{{App: "a", Role: access.RoleRead, Token: "x"}, {App: "b", Role: access.RoleRead, Token: "x"}},
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
