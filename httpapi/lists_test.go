package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/access"
)

// TestSearchAndTotal: a search goes with the other filters, and a total says whether it
// is all.
func TestSearchAndTotal(t *testing.T) {
	n := newNode(t)
	var all []string
	for i := range 30 {
		all = append(all, hourly(fmt.Sprint("app", i%2), fmt.Sprintf("Order-%d-end", i), `,"labels":{"team":"x"}`))
	}
	n.do("POST", batchPath, `{"timers":[`+strings.Join(all, ",")+`]}`).want(200)
	for query, want := range map[string]int{
		"":                            30,
		"q=order-2":                   11, // 2 and 20 to 29
		"q=ORDER-2&app=app0":          6,
		"q=-end&name_prefix=Order-1":  11,
		"q=r-7-e&label=team%3Dx":      1,
		"q=nothing":                   0,
		"q=order-2&status=enabled":    11,
		"q=order-2&status=disabled":   0,
		"app=app1":                    15,
		"status=finished&app=app1":    0,
		"q=&name_prefix=":             30,
		"q=Order-2%25&app=app0":       0,
		"label=team%3Dx&app=app1&q=9": 3,
	} {
		got := n.do("GET", "/v1/timers?limit=7&total=true&"+query, "").want(200)
		if total := fmt.Sprintf(`"total":{"count":%d,"exact":true}`, want); !strings.Contains(got.body, total) {
			t.Errorf("%s: no %s in …%s", query, total, got.body[max(0, len(got.body)-80):])
		}
		found := 0
		for {
			found += strings.Count(got.body, `"updated_at"`)
			next := got.str("next_cursor")
			if next == "" {
				break
			}
			got = n.do("GET", "/v1/timers?limit=7&cursor="+next+"&"+query, "").want(200)
		}
		if found != want {
			t.Errorf("%s: %d timers, not %d", query, found, want)
		}
	}
	if strings.Contains(n.do("GET", "/v1/timers", "").body, `"total"`) {
		t.Error("a total that was not asked for")
	}
	n.do("GET", "/v1/timers?q="+strings.Repeat("a", 101), "").want(400)
	n.do("GET", "/v1/timers?total=yes", "").want(400)
}

// TestTasksByFailure: tasks are found by code, class and text, and a dismissed one counts
// as open no more.
func TestTasksByFailure(t *testing.T) {
	n := serve(t, newEngine(t, answers(503), nil), ServerConfig{Tokens: []access.Token{
		{App: "a", Role: access.RoleWrite, Token: "a-write", Name: "on call"},
		{App: "b", Role: access.RoleWrite, Token: "b-write"},
		{App: "a", Role: access.RoleRead, Token: "a-read"},
	}})
	n.token = "a-write"
	var keys []string
	for i := range 3 {
		id := n.do("POST", "/v1/timers", hourly("a", fmt.Sprint("job", i), "")).want(201).str("id")
		keys = append(keys, n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key"))
	}
	for _, k := range keys {
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+k, "").str("status") == "failed" })
	}
	count := func(query string, want int) {
		t.Helper()
		if got := n.do("GET", "/v1/tasks?"+query, "").want(200); strings.Count(got.body, `"timer_id"`) != want {
			t.Errorf("%s: not %d: %s", query, want, got.body)
		}
	}
	open := func(want int) {
		t.Helper()
		count("status=failed&dismissed=false", want)
		count("status=failed", 3)
		count("dismissed=true", 3-want)
		failures := n.do("GET", "/v1/tasks/failures", "").want(200)
		if strings.Count(failures.body, `_`) < want || want == 0 && failures.body != string(noGroups) {
			t.Errorf("not %d failures: %s", want, failures.body)
		}
		if got := n.do("POST", "/v1/tasks/retry?all=true&dry_run=true", "").want(200).get("count"); got != float64(want) {
			t.Errorf("%v would be retried, not %d", got, want)
		}
	}
	count("code=503", 3)
	count("code=5xx&q=JOB1", 1)
	count("code=4xx", 0)
	count("code=status", 3)
	count("code=timeout", 0)
	count("q=b%22", 3) // of the answer
	for _, bad := range []string{"code=6xx", "code=99", "code=nonsense", "code=0503", "dismissed=1", "q=" + strings.Repeat("a", 101)} {
		n.do("GET", "/v1/tasks?"+bad, "").want(400)
	}
	open(3)

	n.token = "b-write"
	n.do("POST", "/v1/tasks/"+keys[0]+"/dismiss", "").want(404)
	count("q=job", 0)
	count("code=503", 0)
	n.token = "a-read"
	n.do("POST", "/v1/tasks/"+keys[0]+"/dismiss", "").want(403)
	n.token = "a-write"
	open(3)

	done := n.do("POST", "/v1/tasks/"+keys[0]+"/dismiss", "").want(200)
	if done.str("status") != "failed" || done.str("dismissed_by") != "on call" || done.str("dismissed") == "" {
		t.Error(done.body)
	}
	open(2)
	if again := n.do("POST", "/v1/tasks/"+keys[0]+"/dismiss", "{}").want(200); again.body != done.body {
		t.Errorf("%s after %s", again.body, done.body)
	}
	if got := n.do("GET", "/v1/tasks/"+keys[0], "").want(200); got.body != done.body {
		t.Error(got.body)
	}
	n.do("POST", "/v1/tasks/"+keys[0]+"/retry", "").want(202)
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+keys[0], "").str("status") == "failed" })
	open(3)
	id, _, _ := strings.Cut(keys[1], "_")
	n.do("DELETE", "/v1/timers/"+id, "").want(200)
	n.do("POST", "/v1/tasks/"+keys[1]+"/dismiss", "").want(200) // its timer is gone
	open(2)
	n.do("POST", "/v1/tasks/"+id+"_"+fmt.Sprint(time.Now().UnixMilli())+"/dismiss", "").want(404)
}

// TestAuthors: each version says whose token made it.
func TestAuthors(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: []access.Token{
		{App: "a", Role: access.RoleWrite, Token: "one", Name: "ci"},
		{App: "a", Role: access.RoleWrite, Token: "two"},
		{App: access.AllApps, Role: access.RoleAdmin, Token: "three"},
	}})
	n.token = "one"
	made := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201)
	path := "/v1/timers/" + made.str("id")
	n.token = "two"
	n.do("PATCH", path, `{"priority":1}`).want(200)
	n.do("PATCH", path, `{"priority":1}`).want(200) // unchanged
	n.do("PUT", "/v1/apps/a/timers/n", hourly("a", "n", "")).want(200)
	n.token = "three"
	n.do("POST", path+"/disable", "").want(200)
	n.token = "one"
	n.do("POST", "/v1/timers/enable?app=a", "").want(200)
	n.do("POST", "/v1/timers", hourly("a", "n", "")).want(200) // it is there
	n.do("POST", batchPath, `{"timers":[`+hourly("a", "m", "")+`]}`).want(200)
	if got := n.do("GET", "/v1/apps/a/timers/m", "").want(200).str("updated_by"); got != "ci" {
		t.Error(got)
	}
	got := n.do("GET", path+"/versions", "").want(200)
	want := []string{"ci", "admin token of all apps", "write token of a", "write token of a", "ci"}
	for i, by := range want {
		if got.str("versions", i, "updated_by") != by {
			t.Errorf("version %d: %s, not %s", len(want)-i, got.str("versions", i, "updated_by"), by)
		}
	}
	if n.do("GET", "/v1/token", "").str("name") != "ci" {
		t.Error("the token does not know its name")
	}
	free := newNode(t)
	if by := free.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("updated_by"); by != "anonymous" {
		t.Error(by)
	}
}

// TestAllErrorsAtOnce: an answer lists all that is wrong with a request, each in words that
// say what to do.
func TestAllErrorsAtOnce(t *testing.T) {
	n := newNode(t)
	callback := `"callback":{"url":"http://x/"}`
	for _, x := range []struct {
		method, path, body string
		status             int
		want               map[string]string // field to a part of the detail
	}{
		{"POST", "/v1/timers", `{"app":"b x","schedule":{"cron":"* * *","time_zone":"Mars/X"},"callback":{"url":"foo.com/x","method":"FETCH"},"retry":{"max_attempts":0},"priority":12}`, 422, map[string]string{
			"priority": "0 to 9", "app": "letters", "name": "is required", "schedule.cron": "", "schedule.time_zone": "",
			"callback.url": "must begin with http:// or https://", "callback.method": "FETCH", "retry.max_attempts": "1 to 100",
		}},
		{"POST", "/v1/timers", `{"appp":"a","name":"n","schedule":{"evry":"1h"},"callback":{"url":"127.0.0.1:80/x"}}`, 400, map[string]string{
			"appp": "not a known field", "schedule.evry": "not a known field", "app": "is required", "callback.url": "must begin with http:// or https://",
		}},
		{"POST", "/v1/timers", `{"app":"a","name":"n"}`, 422, map[string]string{"schedule": "must have cron, every, at or delay", "callback.url": "is required"}},
		{"PUT", "/v1/apps/a/timers/n", `{"schedule":{"at":1763658000},"callback":{"url":7}}`, 400, map[string]string{"schedule.at": "did you mean seconds? Then send 1763658000000", "callback.url": "must be a string"}},
		{"POST", "/v1/timers", `{"app":"a","name":"n","schedule":{"every":"1h","start_at":1763658000,"end_at":99999999999},` + callback + `}`, 422, map[string]string{"schedule.start_at": "did you mean seconds?", "schedule.end_at": "did you mean seconds?"}},
		{"GET", "/v1/tasks?status=nope&origin=x&code=y&from=1763658000&limit=0&cursor=z&dismissed=7&timer_id=q", "", 400, map[string]string{
			"status": "nope", "origin": "schedule", "code": "timeout", "from": "did you mean seconds?", "limit": "1 to 1000", "cursor": "", "dismissed": "true or false", "timer_id": "id",
		}},
		{"GET", "/v1/timers?status=nope&limit=0&label=x&total=9", "", 400, map[string]string{"status": "nope", "limit": "1000", "label": "team=a", "total": "true or false"}},
		{"GET", "/v1/timers?bogus=1&more=2&limit=9", "", 400, map[string]string{"bogus": "known parameters", "more": "known parameters"}},
	} {
		got := n.do(x.method, x.path, x.body).want(x.status)
		list, _ := got.get("errors").([]any)
		for i := range list {
			field, detail := got.str("errors", i, "field"), got.str("errors", i, "detail")
			if want, ok := x.want[field]; !ok || !strings.Contains(detail, want) {
				t.Errorf("%s %s: %s: %s", x.path, x.body, field, detail)
			}
			delete(x.want, field)
		}
		if len(x.want) > 0 {
			t.Errorf("%s %s: %v is missing in %s", x.path, x.body, x.want, got.body)
		}
	}
	if got := n.do("POST", batchPath, `{"timers":[`+hourly("a", "m", "")+`,{"app":"a","priority":99,"schedule":{"every":"1h"}}]}`).want(200); len(got.get("results", 1, "error", "errors").([]any)) != 3 ||
		!strings.Contains(got.body, `"field":"timers[1].name"`) {
		t.Error(got.body)
	}
	for path, want := range map[string]string{
		"/v1/apps/billing/timers/order-7": "timer billing/order-7 not found", "/v1/timers/77": "timer 77 not found", "/v1/tasks/7_8": "task 7_8 not found",
	} {
		if got := n.do("GET", path, "").want(404); got.str("detail") != want {
			t.Error(got.body)
		}
	}
	n.do("GET", "/v1/tasks?from=1&to=99", "").want(200) // 1970 itself
	n.do("POST", "/v1/timers", `{"app":"a","name":"anchored","schedule":{"every":"1h","start_at":"1970-01-21T09:54:18Z"},`+callback+`}`).want(201)
}
