package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBadInput sends what hostile and hasty clients send: every answer is a
// problem that names the field, says what is wrong with it, and comes at once.
func TestBadInput(t *testing.T) {
	n := newNode(t)
	// with puts a value into a timer that is otherwise good.
	with := func(where, json string) string {
		parts := map[string]string{
			"app": `"a"`, "name": `"n"`, "schedule": `{"every":"1h"}`, "callback": `{"url":"http://127.0.0.1:9/x"}`,
		}
		switch outer, inner, nested := strings.Cut(where, "."); {
		case outer == "schedule" && nested:
			parts[outer] = fmt.Sprintf(`{%q:%s}`, inner, json)
		case outer == "callback" && nested:
			parts[outer] = fmt.Sprintf(`{"url":"http://127.0.0.1:9/x",%q:%s}`, inner, json)
		case nested:
			parts[outer] = fmt.Sprintf(`{%q:%s}`, inner, json)
		default:
			parts[outer] = json
		}
		var b []string
		for k, v := range parts {
			b = append(b, fmt.Sprintf("%q:%s", k, v))
		}
		return "{" + strings.Join(b, ",") + "}"
	}
	for _, c := range []struct {
		body, field string
		status      int
	}{
		// Not JSON, or not quite.
		{"", "", 400},
		{" \n", "", 400},
		{"{", "", 400},
		{`{"app":"a"`, "", 400},
		{`{"app":"a"} {}`, "", 400},
		{`{"app":"a",}`, "", 400},
		{`{'app':'a'}`, "", 400},
		{`[]`, "", 400},
		{`null`, "", 400},
		{with("priority", "NaN"), "", 400},
		{with("schedule.cron", `"٠ 9 * * *"`), "schedule.cron", 422},
		{with("priority", "01"), "", 400},
		{with("name", "\"\xff\""), "", 400},
		{with("name", `"\ud800"`), "", 400},
		{with("name", "\"a\nb\""), "", 400},
		{`{"app":"a","app":"b"}`, "app", 400},
		{`{"callback":{"headers":{"A":"1","A":"2"}}}`, "callback.headers.A", 400},
		{with("callback.body", strings.Repeat("[", 33)+strings.Repeat("]", 33)), "callback.body", 400},
		{with("callback.body", strings.Repeat("[", 20000)), "", 400},
		{with("callback.body", strings.Repeat(`{"a":`, 9000)+"1"+strings.Repeat("}", 9000)), "callback.body", 400},
		// Unknown fields and wrong types.
		{`{"":1}`, `""`, 400},
		{with("labels", `{"7":1}`), "labels.7", 400},
		{with("callback.body", `[1,2,}]`), "callback.body[2]", 400},
		{with("nmae", `"x"`), "nmae", 400},
		{with("App", `"x"`), "App", 400},
		{with("id", `"7"`), "id", 400},
		{with("schedule.corn", `"* * * * *"`), "schedule.corn", 400},
		{with("schedule.corn", strings.Repeat("[", 100)+strings.Repeat("]", 100)), "schedule.corn", 400},
		{with("callback", `"http://x"`), "callback", 400},
		{with("schedule", `[]`), "schedule", 400},
		{with("name", `7`), "name", 400},
		{with("priority", `"5"`), "priority", 400},
		{with("priority", `5.5`), "priority", 400},
		{with("priority", `5e-1`), "priority", 400},
		{with("labels.team", `1`), "labels.team", 400},
		{with("labels.team", `null`), "labels.team", 400},
		{with("schedule.every", `true`), "schedule.every", 400},
		{with("schedule.every", `"soon"`), "schedule.every", 400},
		{with("schedule.every", `0.5`), "schedule.every", 400},
		{with("schedule.at", `"tomorrow"`), "schedule.at", 400},
		{with("schedule.at", `"2026-11-20"`), "schedule.at", 400},
		{with("schedule.at", `"2026-02-30T00:00:00Z"`), "schedule.at", 400},
		{with("schedule.at", `1763658000250.5`), "schedule.at", 400},
		{with("callback.body_base64", `"***"`), "callback.body_base64", 400},
		// Well-formed, cannot be scheduled.
		{with("schedule", `{}`), "schedule", 422},
		{with("schedule", `{"every":"1h","cron":"* * * * *"}`), "schedule", 422},
		{with("schedule.at", `0`), "schedule.at", 422},
		{with("schedule.at", `-5`), "schedule.at", 422},
		{with("schedule.at", `1000000000000000000`), "schedule.at", 422},
		{with("schedule.at", `99999999999999999999999`), "schedule.at", 422},
		{with("schedule.at", `"0001-01-01T00:00:00Z"`), "schedule.at", 422},
		{with("schedule.at", `"9999-12-31T23:59:59.9995Z"`), "schedule.at", 422},
		{with("schedule.at", `"2001-01-01T00:00:00Z"`), "schedule.at", 422},
		{with("schedule.delay", `"-1s"`), "schedule.delay", 422},
		{with("schedule.delay", `9223372036854775`), "schedule.delay", 422},
		{with("schedule.delay", `9300000000000`), "schedule.delay", 422},
		{with("schedule.every", `0`), "schedule.every", 422},
		{with("schedule.every", `"1ms"`), "schedule.every", 422},
		{with("schedule.every", `"10500us"`), "schedule.every", 422},
		{with("schedule.cron", `""`), "schedule.cron", 422},
		{with("schedule.cron", `", * * * * *"`), "schedule.cron", 422},
		{with("schedule.cron", `"TZ=UTC"`), "schedule.cron", 422},
		{with("schedule.cron", `"TZ=UTC * * * * *"`), "schedule.cron", 422},
		{with("schedule.cron", `"0 0 30 2 *"`), "schedule.cron", 422},
		{with("schedule.cron", `"@every 1ms"`), "schedule.cron", 422},
		{with("schedule.cron", `"* * * * * * *"`), "schedule.cron", 422},
		{with("schedule", `{"cron":"* * * * *","time_zone":"Mars/Olympus"}`), "schedule.time_zone", 422},
		{with("schedule", `{"cron":"* * * * *","time_zone":"../../etc/passwd"}`), "schedule.time_zone", 422},
		{with("schedule", `{"every":"1h","max_runs":0}`), "schedule.max_runs", 422},
		{with("schedule", `{"every":"1h","start_at":"2030-01-01T00:00:00Z","end_at":"2029-01-01T00:00:00Z"}`), "schedule.end_at", 422},
		{with("misfire.policy", `"never"`), "misfire.policy", 422},
		{with("overlap", `"maybe"`), "overlap", 422},
		{with("delivery", `"exactly_once"`), "delivery", 422},
		{with("priority", `10`), "priority", 422},
		{with("stale_after", `"9ms"`), "stale_after", 422},
		{with("stale_after", `"25h"`), "stale_after", 422},
		{with("callback", `{"url":"http://a/","batch":{"max":1}}`), "callback.batch.max", 422},
		{with("callback", `{"url":"http://a/","batch":{"max":1001}}`), "callback.batch.max", 422},
		{with("callback", `{"url":"http://a/","batch":{"max":2,"wait":"1001ms"}}`), "callback.batch.wait", 422},
		{with("callback", `{"url":"http://a/","method":"GET","batch":{"max":2}}`), "callback.method", 422},
		{with("callback", `{"url":"http://a/","method":"PATCH","batch":{"max":2}}`), "callback.method", 422},
		{with("priority", `99999999999999999999`), "priority", 422},
		{with("retry.max_attempts", `0`), "retry.max_attempts", 422},
		{with("retry.multiplier", `1e999`), "retry.multiplier", 422},
		{with("retry.jitter", `2`), "retry.jitter", 422},
		{with("app", `""`), "app", 422},
		{with("app", `"../etc"`), "app", 422},
		{with("name", `".."`), "name", 422},
		{with("schedule", `{"delay":"10000000h"}`), "schedule.delay", 422},
		{with("schedule", `{"delay":"1h-10000000h"}`), "schedule.delay", 400},
		{with("schedule", `{"delay":9300000000000}`), "schedule.delay", 422},
		{with("name", `"a\u0000b"`), "name", 422},
		{with("name", `"`+strings.Repeat("n", 257)+`"`), "name", 422},
		// What would end up on the wire of a callback.
		{with("callback", `{"url":"ftp://x/"}`), "callback.url", 422},
		{with("callback", `{"url":"http://u:p@x/"}`), "callback.url", 422},
		{with("callback", `{"url":"http://x/ HTTP/1.1\r\nEvil: 1"}`), "callback.url", 422},
		{with("callback", `{"url":""}`), "callback.url", 422},
		{with("callback.method", `"GET / HTTP/1.1\r\nX: y"`), "callback.method", 422},
		{with("callback.method", `"TRACE"`), "callback.method", 422},
		{with("callback.headers", `{"X A":"1"}`), "callback.headers", 422},
		{with("callback.headers", `{"":"1"}`), "callback.headers", 422},
		{with("callback.headers", `{"X":"a\r\nEvil: 1"}`), "callback.headers", 422},
		{with("callback.headers", `{"X":"a\u0000"}`), "callback.headers", 422},
		{with("callback.headers", `{"Host":"x"}`), "callback.headers", 422},
		{with("callback.headers", `{"content-length":"3"}`), "callback.headers", 422},
		{with("callback.headers", `{"Transfer-Encoding":"chunked"}`), "callback.headers", 422},
		{with("callback.headers", `{"TE":"trailers"}`), "callback.headers", 422},
		{with("callback.headers", `{"x-xtimer-task":"1"}`), "callback.headers", 422},
		{with("callback", `{"url":"http://x/","body":1,"body_text":"2"}`), "callback.body_text", 422},
		{with("callback.timeout", `"1h"`), "callback.timeout", 422},
		{with("callback.success", `"great"`), "callback.success", 422},
	} {
		begin := time.Now()
		got := n.do("POST", "/v1/timers", c.body)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%.80s took %v", c.body, took)
		}
		if got.status != c.status || !strings.HasPrefix(got.header["Content-Type"], "application/problem+json") {
			t.Errorf("%.200s\n\tstatus %d, want %d: %s", c.body, got.status, c.status, got.body)
			continue
		}
		if got.str("code") == "" || got.str("detail") == "" || got.get("status") != float64(c.status) {
			t.Errorf("%.80s: %s", c.body, got.body)
		}
		if c.field != "" && (!strings.HasPrefix(got.str("errors", 0, "field"), c.field) || got.str("errors", 0, "detail") == "") {
			t.Errorf("%.200s\n\tfield %q, want %q: %s", c.body, got.str("errors", 0, "field"), c.field, got.body)
		}
	}
}

func TestAllFaultsAreNamed(t *testing.T) {
	n := newNode(t)
	got := n.do("POST", "/v1/timers", `{"app":1,"schedule":{"evry":"1h","at":true},"callback":{"headers":{"a":2}}}`).want(400)
	for i, want := range []string{"app", "schedule.evry", "schedule.at", "callback.headers.a"} {
		if f := got.str("errors", i, "field"); f != want {
			t.Errorf("fault %d is of %q, want %q", i, f, want)
		}
	}
}

// TestGoodInput are forms that must be taken, and how they come back.
func TestGoodInput(t *testing.T) {
	n := newNode(t)
	for i, c := range []struct{ schedule, callback, want string }{
		{`{"at":4102444800000}`, `{"url":"http://x/"}`, `"schedule":{"at":"2100-01-01T00:00:00.000Z"}`},
		{`{"at":"2100-01-01T02:00:00.25+02:00"}`, `{"url":"http://x/"}`, `"at":"2100-01-01T00:00:00.250Z"`},
		{`{"at":"2100-01-01T00:00:00.250001Z"}`, `{"url":"http://x/"}`, `"at":"2100-01-01T00:00:00.251Z"`}, // never early
		{`{"every":90000,"jitter":null}`, `{"url":"http://x/"}`, `"every":"1m30s"`},
		{`{"delay":"250ms"}`, `{"url":"http://x/"}`, `"delay":"250ms"`},
		{`{"delay":0}`, `{"url":"http://x/"}`, `"delay":"0s"`},
		{`{"every":"1h"}`, `{"url":"http://x/","body":null}`, `"success":"2xx"}`},
		{`{"every":"1h"}`, `{"url":"http://x/","body":{ "n": 12345678901234567890, "s":"\u00e9" } }`, `"body":{"n":12345678901234567890,"s":"\u00e9"}`},
		{`{"every":"1h"}`, `{"url":"http://x/","body_text":"a\u2028\"\\\u0001é"}`, `"body_text":"a\u2028\"\\\u0001é"`},
		{`{"every":"1h"}`, `{"url":"http://x/","body_base64":"AP8="}`, `"body_base64":"AP8="`},
		{`{"every":"1h"}`, `{"url":"http://x/","body_text":""}`, `"body_text":""`},
		{`{"every":"1h"}`, `{"url":"http://x/","headers":{"b":"1","a":"2"}}`, `"headers":{"a":"2","b":"1"}`},
	} {
		body := fmt.Sprintf(`{"app":"a","name":"n%d","schedule":%s,"callback":%s}`, i, c.schedule, c.callback)
		got := n.do("POST", "/v1/timers", body).want(201)
		if !strings.Contains(got.body, c.want) {
			t.Errorf("no %s in %s", c.want, got.body)
		}
		if again := n.do("POST", "/v1/timers", body); again.status != 200 {
			t.Errorf("%s is not the same as itself: %s", body, again.body)
		}
	}
}

func TestBadPathsAndQueries(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		path   string
		status int
	}{
		{"/", 404},
		{"//", 404},
		{"/v1", 404},
		{"/v1//timers", 404},
		{"/v1/timers/", 404},
		{"/v1/timers//", 404},
		{"/v1/timers/../timers", 404},
		{"/v1/timers/%2e%2e", 404},
		{"/v1/timers/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404},
		{"/../../etc/passwd", 404},
		{"/v1/timers/" + strings.Repeat("9", 4000), 404},
		{"/v1/timers/0", 404},
		{"/v1/timers/-7", 404},
		{"/v1/timers/+7", 404},
		{"/v1/timers/18446744073709551615", 404},
		{"/v1/timers/7%00", 404},
		{"/v1/timers/%", 400},
		{"/v1/timers/%zz", 400},
		{"/v1/timers/%ff", 400},
		{"/v1/apps/a/timers/%c0%ae", 400},
		{"/v1/apps/%2e%2e/timers/..", 404},
		{"/v1/apps/a/timers", 404},
		{"/v1/apps//timers/n", 404},
		{"/v1/timers%2fbatch", 404},
		{"/V1/timers", 404},
		{"/v1/tasks/..", 404},
		{"/debug/pprof/", 404},
		{"/v1/timers/enable", 405},
		{"/v1/admin/backup", 405},
		{"/v1/timers?colour=red", 400},
		{"/v1/timers?app=a&app=b", 400},
		{"/v1/timers?app=%", 400},
		{"/v1/timers?app=%ff", 400},
		{"/v1/timers?limit=0", 400},
		{"/v1/timers?limit=1001", 400},
		{"/v1/timers?limit=ten", 400},
		{"/v1/timers?limit=", 400},
		{"/v1/timers?status=open", 400},
		{"/v1/timers?label=team", 400},
		{"/v1/timers?label==a", 400},
		{"/v1/timers?cursor=%20", 400},
		{"/v1/tasks?from=yesterday", 400},
		{"/v1/tasks?timer_id=x", 400},
		{"/v1/tasks?status=done", 400},
		{"/v1/tasks?origin=x", 400},
		{"/v1/tasks?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", 400},
		{"/livez?x=1", 400},
		{"/v1/timers?%00=1", 400},
	} {
		got := n.do("GET", c.path, "")
		if got.status != c.status || got.str("code") == "" {
			t.Errorf("GET %.80s: status %d, want %d: %s", c.path, got.status, c.status, got.body)
		}
		if q := strings.Contains(c.path, "?"); q && strings.Contains(got.body, "percent-encoding") == false && got.str("errors", 0, "field") == "" {
			t.Errorf("GET %s: %s", c.path, got.body)
		}
	}
	if got := n.do("GET", "/v1/timers/enable", ""); got.header["Allow"] != "POST" {
		t.Error(got.header)
	}
	n.do("OPTIONS", "/v1/timers", "").want(405)
	n.do("BREW", "/v1/timers", "").want(405)
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/v1/timers/7", "/v1/apps/a/timers/%2F", "/%", "//..//", ""} {
		f.Add(s)
	}
	root := tree(routes(ServerConfig{}))
	f.Fuzz(func(t *testing.T, path string) {
		r, _, err := root.Find("GET", path)
		if (r == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", path, r, err)
		}
	})
}

func FuzzLabelSelector(f *testing.F) {
	for _, s := range []string{"team=a,env!=prod", "", "=", "!=", "a=b=c", ",", "a!=", " a = b "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		terms, err := parseSelector(s)
		if (len(terms) == 0) != (err != nil) {
			t.Fatalf("%q: %v, %v", s, terms, err)
		}
		for _, m := range terms {
			if m.Key == "" || strings.ContainsAny(m.Key+m.Value, ",") {
				t.Errorf("%q: %v", s, m)
			}
		}
	})
}
