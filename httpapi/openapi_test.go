package httpapi

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is openapi.json with its schemas; every exchange of testNode.do is
// held against it.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex // the compiler's
}

var theContract = sync.OnceValue(func() *contract {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPI))
	if err != nil {
		panic(err)
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler()}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("openapi.json", doc); err != nil {
		panic(err)
	}
	return c
})

// at is the value at a path in the document, references followed; pointer is
// where it stands.
func (c *contract) at(parts ...string) (v any, pointer string) {
	v = c.doc
	for _, p := range parts {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, ""
		}
		pointer += "/" + url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1"))
		v = m[p]
		if m, ok := v.(map[string]any); ok {
			if ref, ok := m["$ref"].(string); ok {
				return c.at(append(strings.Split(strings.TrimPrefix(ref, "#/"), "/"), parts[slices.Index(parts, p)+1:]...)...)
			}
		}
	}
	return v, pointer
}

// check holds a JSON text against the schema at a path.
func (c *contract) check(body string, parts ...string) error {
	v, pointer := c.at(parts...)
	if v == nil {
		return fmt.Errorf("the document has no %s", strings.Join(parts, " "))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.compiler.Compile("openapi.json#" + pointer)
	if err != nil {
		return err
	}
	x, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return s.Validate(x)
}

// exchange checks a request and its answer.
func (c *contract) exchange(rt *route, request string, a answer) error {
	method := strings.ToLower(rt.method)
	status := fmt.Sprint(a.status)
	if v, _ := c.at("paths", rt.path, method, "responses", status); v == nil {
		return fmt.Errorf("status %s is not in the document", status)
	}
	kind, _, _ := strings.Cut(a.header["Content-Type"], ";")
	if a.status < 300 && rt.path != batchPath && request != "" && request[0] == '{' && strings.Count(request, "\n") == 0 {
		if err := c.check(request, "paths", rt.path, method, "requestBody", "content", "application/json", "schema"); err != nil {
			return fmt.Errorf("the request was taken: %w", err)
		}
	}
	if kind == "application/x-ndjson" {
		for line := range strings.Lines(a.body) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if err := c.check(line, "paths", rt.path, method, "responses", status, "content", kind, "schema"); err != nil {
				return err
			}
		}
		return nil
	}
	if strings.HasSuffix(kind, "json") && a.body != "" {
		return c.check(a.body, "paths", rt.path, method, "responses", status, "content", kind, "schema")
	}
	if a.status == 304 {
		return nil // it has no body, and so no type; the client reads its own default
	}
	if v, _ := c.at("paths", rt.path, method, "responses", status, "content", kind); v == nil {
		return fmt.Errorf("Content-Type %q is not in the document", kind)
	}
	return nil
}

// hold fails the test when an exchange is not as the document says.
func (n *testNode) hold(method, path, request string, a answer) {
	n.t.Helper()
	bare, _, _ := strings.Cut(path, "?")
	rt, _, err := n.s.root.Find(method, bare)
	if err != nil || strings.HasPrefix(rt.path, "/debug/") {
		return
	}
	if method == "HEAD" {
		return
	}
	if err := theContract().exchange(rt, request, a); err != nil {
		n.t.Errorf("%s %s: %v\n\t%s\n\t%s", method, path, err, request, a.body)
	}
}

// TestTheDocumentNamesTheRoutes: paths, methods, parameters and roles.
func TestTheDocumentNamesTheRoutes(t *testing.T) {
	c := theContract()
	said := map[string]bool{}
	for path, methods := range c.doc["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			said[strings.ToUpper(method)+" "+path] = true
		}
	}
	ids := map[any]bool{}
	for _, rt := range routes(ServerConfig{}) {
		line := rt.method + " " + rt.path
		if !said[line] {
			t.Errorf("the document does not name %s", line)
			continue
		}
		delete(said, line)
		v, _ := c.at("paths", rt.path, strings.ToLower(rt.method))
		op := v.(map[string]any)
		if op["x-role"] != rt.role.String() {
			t.Errorf("%s needs the role %s, the document says %v", line, rt.role, op["x-role"])
		}
		if id := op["operationId"]; id == nil || ids[id] {
			t.Errorf("%s: operationId %v", line, id)
		}
		ids[op["operationId"]] = true
		var query, inPath []string
		params, _ := op["parameters"].([]any)
		for _, p := range params {
			m := p.(map[string]any)
			switch m["in"] {
			case "query":
				query = append(query, m["name"].(string))
			case "path":
				inPath = append(inPath, m["name"].(string))
			}
		}
		if !slices.Equal(query, rt.query) {
			t.Errorf("%s takes %v, the document says %v", line, rt.query, query)
		}
		for _, p := range inPath {
			if !strings.Contains(rt.path, "{"+p+"}") {
				t.Errorf("%s has no {%s}", line, p)
			}
		}
		if len(inPath) != strings.Count(rt.path, "{") {
			t.Errorf("%s: the document has the variables %v", line, inPath)
		}
	}
	for line := range said {
		t.Errorf("the document names %s, which is no route", line)
	}
}

func TestEverySchemaCompiles(t *testing.T) {
	c := theContract()
	all, _ := c.at("components", "schemas")
	for name := range all.(map[string]any) {
		if _, err := c.compiler.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Error(err)
		}
		if used := bytes.Count(openAPI, []byte(`"#/components/schemas/`+name+`"`)); used == 0 {
			t.Errorf("nothing refers to the schema %s", name)
		}
	}
}

// testAlertsAnswer marks the routes that TestAlerts asks.
func testAlertsAnswer(well map[string]bool) {
	for _, rt := range append(objectRoutes(), alertRoutes()...) {
		if strings.Contains(rt.path, "/alerts/") {
			well[rt.method+" "+rt.path] = true
		}
	}
}

// TestEveryRouteKeepsTheDocument has each route answer well at least once; do
// holds what is sent and answered against the document.
func TestEveryRouteKeepsTheDocument(t *testing.T) {
	n := serve(t, newEngine(t, answers(400), nil), ServerConfig{BackupDir: t.TempDir()})
	well := map[string]bool{}
	do := func(method, pattern, path, body string, headers ...string) answer {
		t.Helper()
		a := n.do(method, path, body, headers...)
		if a.status >= 300 {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
		well[method+" "+pattern] = true
		return a
	}
	full := `{"app":"a","name":"full","schedule":{"cron":"0 9 * * MON-FRI","time_zone":"Asia/Shanghai","start_at":"2027-01-01T00:00:00Z","end_at":4102444800000,"max_runs":100,"jitter":"5s"},` +
		`"callback":{"url":"https://x.example/","method":"PUT","headers":{"A":"b"},"body":{"a":[1]},"timeout":"15s","success":"200,300-399","batch":{"max":100,"wait":"50ms"}},` +
		`"retry":{"max_attempts":4,"backoff":"1s","multiplier":4.5,"max_backoff":"5m","jitter":0.2,"max_age":86400000},` +
		`"misfire":{"policy":"all","window":"24h"},"overlap":"queue","delivery":"at_most_once","priority":9,"stale_after":"5s","labels":{"team":"a"}}`
	do("POST", "/v1/timers", "/v1/timers", full)
	id := do("POST", "/v1/timers", "/v1/timers", hourly("a", "n", "")).str("id")
	do("POST", batchPath, batchPath, `{"timers":[`+hourly("a", "m", "")+`]}`)
	do("GET", "/v1/timers", "/v1/timers", "")
	const byName = "/v1/apps/{app}/timers/{name}"
	do("PUT", byName, "/v1/apps/a/timers/p", `{"schedule":{"delay":"1h"},"callback":{"url":"http://x/","body_base64":"AAAA"}}`)
	do("GET", byName, "/v1/apps/a/timers/p", "")
	do("DELETE", byName, "/v1/apps/a/timers/p", "")
	const flow = "/v1/apps/{app}/flows/{name}"
	do("PUT", flow, "/v1/apps/a/flows/k", `{"rate":10,"burst":2,"concurrency":3,"hold":"task","cooldown":true,"breaker":{"of":5}}`)
	do("GET", flow, "/v1/apps/a/flows/k", "")
	do("POST", flow+"/pause", "/v1/apps/a/flows/k/pause", `{"reason":"why","until":4000000000000}`)
	do("GET", "/v1/apps/{app}/flows", "/v1/apps/a/flows", "")
	do("GET", flow+"/waiting", "/v1/apps/a/flows/k/waiting?limit=10", "")
	do("POST", flow+"/resume", "/v1/apps/a/flows/k/resume", "")
	do("POST", flow+"/cooldown", "/v1/apps/a/flows/k/cooldown", `{"until":4000000000000}`)
	do("DELETE", flow, "/v1/apps/a/flows/k", "")
	const target = "/v1/targets/{scheme}/{host}/{port}"
	do("PUT", target, "/v1/targets/https/h/443", `{"rate":10,"burst":2,"concurrency":3,"hold":"task","cooldown":true,"breaker":{"of":5}}`)
	do("GET", target, "/v1/targets/https/h/443", "")
	do("POST", target+"/pause", "/v1/targets/https/h/443/pause", `{"reason":"why","until":4000000000000}`)
	do("GET", "/v1/targets", "/v1/targets", "")
	do("POST", target+"/resume", "/v1/targets/https/h/443/resume", "")
	do("POST", target+"/cooldown", "/v1/targets/https/h/443/cooldown", `{"until":4000000000000}`)
	do("DELETE", target, "/v1/targets/https/h/443", "")
	do("POST", "/v1/apps/{app}/pause", "/v1/apps/*/pause", "")
	do("POST", "/v1/apps/{app}/pause", "/v1/apps/a/pause", `{"reason":"why","until":4000000000000}`)
	do("GET", "/v1/apps/{app}/pause", "/v1/apps/a/pause", "")
	do("GET", "/v1/apps", "/v1/apps?app=a", "")
	do("GET", "/v1/stats", "/v1/stats", "")
	do("POST", "/v1/apps/{app}/resume", "/v1/apps/*/resume", "")
	do("POST", "/v1/apps/{app}/resume", "/v1/apps/a/resume", "")
	const quota = "/v1/apps/{app}/quota"
	do("PUT", quota, "/v1/apps/q/quota", `{"timers":10,"bytes":1000,"creates_per_second":10,"fires_per_second":20,"in_flight":30}`)
	do("GET", quota, "/v1/apps/q/quota", "")
	do("DELETE", quota, "/v1/apps/q/quota", "")
	const secret = "/v1/apps/{app}/secrets/{name}"
	do("PUT", secret, "/v1/apps/a/secrets/s", `{"value":"v"}`)
	do("GET", secret, "/v1/apps/a/secrets/s", "")
	do("GET", "/v1/apps/{app}/secrets", "/v1/apps/a/secrets", "")
	do("DELETE", secret, "/v1/apps/a/secrets/s", "")
	testAlertsAnswer(well) // TestAlerts
	const timer = "/v1/timers/{id}"
	do("PATCH", timer, "/v1/timers/"+id, `{"priority":null}`)
	do("POST", timer+"/disable", "/v1/timers/"+id+"/disable", `{"reason":"r","until":"2099-01-01T00:00:00Z"}`)
	key := do("POST", timer+"/run", "/v1/timers/"+id+"/run", `{}`).str("key")
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "failed" })
	do("GET", timer, "/v1/timers/"+id, "")
	do("POST", timer+"/enable", "/v1/timers/"+id+"/enable", `{"catch_up":"latest"}`)
	do("GET", timer+"/upcoming", "/v1/timers/"+id+"/upcoming", "")
	do("GET", timer+"/versions", "/v1/timers/"+id+"/versions", "")
	do("GET", "/v1/upcoming", "/v1/upcoming?limit=1", "")
	do("GET", "/v1/tasks", "/v1/tasks", "")
	do("GET", "/v1/tasks/{key}", "/v1/tasks/"+key, "")
	do("GET", "/v1/tasks/failures", "/v1/tasks/failures", "")
	do("POST", "/v1/tasks/{key}/retry", "/v1/tasks/"+key+"/retry", "")
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "failed" })
	do("POST", "/v1/tasks/retry", "/v1/tasks/retry", `{"status":"failed,dead","code":"4xx","dismissed":false,"dry_run":true}`)
	do("POST", "/v1/tasks/{key}/dismiss", "/v1/tasks/"+key+"/dismiss", "")
	do("GET", "/v1/tasks", "/v1/tasks?dismissed=true&q=N&code=400", "")
	do("GET", "/v1/timers", "/v1/timers?q=N&total=true", "")
	do("POST", "/v1/timers/disable", "/v1/timers/disable", `{"app":"a","reason":"r","until":null}`)
	op := do("POST", "/v1/timers/enable", "/v1/timers/enable?app=a", "").str("id")
	do("GET", "/v1/operations/{id}", "/v1/operations/"+op, "")
	do("POST", "/v1/timers/delete", "/v1/timers/delete", `{"name_prefix":"m"}`)
	do("DELETE", timer, "/v1/timers/"+id, "")
	do("POST", "/v1/schedules/preview", "/v1/schedules/preview", `{"schedule":{"cron":"0 0 29 2 *"},"n":3,"from":1763658000250}`)
	do("POST", "/v1/system/clock/reset", "/v1/system/clock/reset?dry_run=true", "")
	do("POST", "/v1/admin/backup", "/v1/admin/backup", "")
	do("GET", "/v1/admin/verify", fmt.Sprintf("/v1/admin/verify?from=%d&late=10s", time.Now().Add(-time.Minute).UnixMilli()), "")
	for _, path := range []string{"/v1/apps", "/v1/upcoming/hours", "/v1/stats", "/v1/stats/trend", "/v1/system", "/v1/cluster", "/v1/token", "/v1/version", "/livez", "/readyz", "/metrics", "/openapi.json"} {
		do("GET", path, path, "")
	}
	well["GET /v1/tasks/stream"] = true // TestStream
	for _, of := range []string{"POST /v1/cluster/nodes/{node}/drain", "DELETE /v1/cluster/nodes/{node}/drain", "POST /v1/cluster/nodes/{node}/evict"} {
		well[of] = true // TestNodeIsAsked
	}
	for _, rt := range routes(ServerConfig{}) {
		if !well[rt.method+" "+rt.path] {
			t.Errorf("%s %s was not asked", rt.method, rt.path)
		}
	}
}
