package httpapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
	"xtimer/httpapi/wire"
)

// What a stranger may send: whatever it is, the answer is one of those that the
// API has, and says whose fault it is. FuzzDecodeTimer is about what is taken.

// fuzzNode is a server without a log, for one fuzz target.
func fuzzNode(f *testing.F) *testNode {
	return serve(f, newEngine(f, answers(200), nil), ServerConfig{Log: slog.New(slog.DiscardHandler)})
}

// blames fails unless a refusal says what is wrong, and with which field where
// the request could be read; named: it could.
func (a answer) blames(named bool) {
	a.t.Helper()
	if a.status >= 500 {
		a.t.Fatalf("status %d: %s", a.status, a.body)
	}
	if a.status >= 400 {
		blames(a.t, a.get(), a.status, named)
	}
}

func blames(t testing.TB, refusal any, status int, named bool) {
	t.Helper()
	p, _ := refusal.(map[string]any)
	if p["code"] == "" || p["detail"] == "" || p["status"] != float64(status) {
		t.Fatalf("a refusal has a code, a detail and its status, %d: %v", status, p)
	}
	if fields, _ := p["errors"].([]any); named && (status == 400 || status == 422) && len(fields) == 0 {
		t.Fatalf("which field is it? %v", p)
	}
}

const standing = `{"schedule":{"every":"1h"},"callback":{"url":"http://h/","headers":{"A":"b"},"body":{"x":[1]}},"labels":{"team":"a"}}`

// FuzzBody: no body of any request is answered with more than a problem, and a
// timer that is taken is the same again when it is sent as it is shown.
func FuzzBody(f *testing.F) {
	requests := []string{
		"POST /v1/timers", "POST /v1/timers/batch", "POST /v1/timers/batch ndjson", "PUT /v1/apps/fuzz/timers/other",
		"PATCH /v1/timers/", "POST /v1/timers/enable", "POST /v1/timers/disable", "POST /v1/timers/delete", "POST /v1/tasks/retry",
		"POST /v1/schedules/preview", "POST /v1/timers//enable", "POST /v1/timers//disable", "POST /v1/timers//run",
	}
	for i, body := range []string{
		hourly("a", "n", `,"labels":{"a.b":"c"},"misfire":{"policy":"all","window":5},"priority":null`),
		`{"timers":[` + hourly("a", "n", "") + `,{"app":"a","schedule":{"delay":0},"callback":{"url":"x"}}]}`,
		hourly("a", "n", "") + "\n\n{}\n" + hourly("a", "m", `,"retry":{"jitter":0.3}`),
		`{"schedule":{"at":"2099-11-20T17:00:00.250001Z"},"callback":{"url":"http://h/","body_text":"a\u2028"}}`,
		`{"schedule":{"cron":"0 9 * * MON-FRI","every":null},"labels":{"team":null,"b":""},"callback":{"body":{"x":null}}}`,
		`{"app":"fuzz","label":"team=a"}`, `{"all":true,"dry_run":true,"reason":"x","until":"2099-01-01T00:00:00Z"}`, `{"name_prefix":"x"}`,
		`{"status":"failed,dead","from":"2026-01-01T00:00:00Z","to":"1799999999999"}`,
		`{"schedule":{"cron":"30 2 * * *","time_zone":"America/New_York","jitter":"5s"},"n":3,"from":1799999999999}`,
		`{"catch_up":"latest"}`, `{"reason":"because","until":1}`, `{}`,
	} {
		f.Add(i, body)
		f.Add(i, `{"":1}`)
	}
	n := fuzzNode(f)
	f.Fuzz(func(t *testing.T, i int, body string) {
		n.t = t
		method, path, _ := strings.Cut(requests[uint(i)%uint(len(requests))], " ")
		path, isNDJSON := strings.CutSuffix(path, " ndjson")
		id := n.do("PUT", "/v1/apps/fuzz/timers/standing", standing).str("timer", "id")
		path = strings.Replace(path, "/v1/timers//", "/v1/timers/"+id+"/", 1)
		if method == "PATCH" {
			path += id
		}
		var headers []string
		if isNDJSON {
			headers = []string{"Content-Type", "application/x-ndjson"}
		}
		a := n.do(method, path, body, headers...)
		a.blames(jsontext.Value(body).IsValid() && jsontext.Value(body).Kind() == '{')
		if a.status >= 400 || a.body == "" {
			return
		}
		if strings.HasPrefix(a.header["Location"], "/v1/operations/") { // the next must not meet it at work
			until(t, func() bool { return n.do("GET", a.header["Location"], "").get("ended") == true })
		}
		switch {
		case path == "/v1/timers":
			n.again(a.str("id"))
		case method == "PUT":
			n.again(a.str("timer", "id"))
		case method == "PATCH":
			if twice := n.do("PATCH", path, body).want(200); twice.get("version") != a.get("version") {
				t.Fatalf("the same patch made another version: %s", twice.body)
			}
			n.again(id)
		case path == batchPath:
			for i, r := range a.get("results").([]any) {
				if id, ok := r.(map[string]any)["id"].(string); ok {
					n.again(id)
					continue
				}
				blames(t, a.get("results", i, "error"), int(a.get("results", i, "status").(float64)), false)
			}
		}
	})
}

// again sends a timer as it is shown, which changes nothing, and deletes it.
func (n *testNode) again(id string) {
	n.t.Helper()
	path := "/v1/timers/" + id
	shown := n.do("GET", path, "")
	if shown.status == 404 {
		return // it stood twice in a batch
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(shown.want(200).body), &all); err != nil {
		n.t.Fatal(err)
	}
	for _, ours := range []string{"id", "status", "reason", "disabled_until", "version", "created_at", "updated_at", "updated_by", "next_due", "last_task"} {
		delete(all, ours)
	}
	doc, err := json.Marshal(all)
	if err != nil {
		n.t.Fatal(err)
	}
	byName := "/v1/apps/" + url.PathEscape(shown.str("app")) + "/timers/" + url.PathEscape(shown.str("name"))
	if a := n.do("PUT", byName, string(doc)); a.status != 200 || a.str("result") != "unchanged" {
		n.t.Fatalf("%s\n\tsent again: %d %s", shown.body, a.status, a.body)
	}
	n.do("DELETE", path, "")
}

// FuzzQuery: no query of any list is answered with more than a problem.
func FuzzQuery(f *testing.F) {
	lists := []string{
		"/v1/timers", "/v1/tasks", "/v1/tasks/failures", "/v1/upcoming", "/v1/upcoming/hours", "/v1/apps", "/v1/stats/trend", "/v1/admin/verify",
		"/v1/timers//upcoming", "/v1/timers//versions", "/v1/tasks/", "/v1/operations/",
	}
	for i, query := range []string{
		"app=a&name_prefix=%2f&status=enabled&label=team%3Da,env!%3Dprod&limit=1", "timer_id=7&status=dead,failed&from=1&to=2099-01-01T00:00:00Z&origin=redrive",
		"status=dead", "at=1799999999999&limit=7", "minutes=5", "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&late=1s", "n=5", "limit=1", "", "",
	} {
		f.Add(i, "?"+query)
		f.Add(i, "?cursor=AQ&limit=%30")
	}
	f.Add(8, "7_1799999999999")
	n := fuzzNode(f)
	id := n.do("PUT", "/v1/apps/fuzz/timers/standing", standing).str("timer", "id")
	f.Fuzz(func(t *testing.T, i int, rest string) {
		n.t = t
		if strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }) {
			return // it is not the server that would refuse it
		}
		path := strings.Replace(lists[uint(i)%uint(len(lists))], "//", "/"+id+"/", 1)
		a := n.do("GET", path+rest, "")
		a.blames(a.status == 400 && !strings.Contains(a.body, "percent-encoding") && strings.HasPrefix(rest, "?"))
	})
}

// FuzzBatch: the two forms of a batch say the same of each timer.
func FuzzBatch(f *testing.F) {
	f.Add(orderBody, `{"priority":10,"nmae":1}`)
	f.Add(`{"app":""}`, `[]`)
	f.Add(`{"":1}`, `{"labels":{"a":1}}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		if a, b := jsontext.Value(one), jsontext.Value(two); !a.IsValid() || !b.IsValid() || a.Compact() != nil || b.Compact() != nil {
			return // a fault of the grammar refuses the whole, or its line
		} else {
			one, two = string(a), string(b)
		}
		lines, err := decodeBatch([]byte(one+"\n"+two+"\n"), true)
		if err != nil || len(lines) != 2 {
			t.Fatalf("%d lines, %v", len(lines), err)
		}
		items, err := decodeBatch([]byte(`{"timers":[`+one+`,`+two+`]}`), false)
		if err != nil || len(items) != 2 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		for i := range items {
			a, b := &lines[i], &items[i]
			if (a.err == nil) != (b.err == nil) || a.err == nil && !a.def.Equal(&b.def) {
				t.Fatalf("a line: %v\n%+v\nan item: %v\n%+v", a.err, a.def, b.err, b.def)
			}
			var x, y *engine.Fault
			if errors.As(a.err, &x) && (!errors.As(b.err, &y) || !reflect.DeepEqual(x.Fields, y.Fields) && len(x.Fields) > 0) {
				t.Fatalf("a line: %v\nan item: %v", a.err, b.err)
			}
		}
	})
}

// FuzzInstants: a time is the same in a body and in a query.
func FuzzInstants(f *testing.F) {
	for _, s := range []string{"2026-11-20T17:00:00.250001Z", "2026-11-20T17:00:00,5+23:59", "9999-12-31T23:59:59.999Z", "9223372036854", "1.5", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{s, string(wire.AppendText(nil, s))} {
			var at int64
			if wire.Decode([]byte(text), func(d *wire.Decoder) { d.Instant(&at) }) != nil || text == "null" {
				continue
			}
			if query, err := parseInstant("from", strings.Trim(s, " \t\r\n")); err != nil || query != at {
				t.Fatalf("%s is %d in a body and %d in a query, %v", text, at, query, err)
			}
		}
	})
}
