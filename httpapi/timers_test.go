package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// hourly is a timer that does nothing during a test.
func hourly(app, name, more string) string {
	return fmt.Sprintf(`{"app":%q,"name":%q,"schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x"}%s}`, app, name, more)
}

func TestCreateGetListDelete(t *testing.T) {
	n := newNode(t)
	made := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201)
	id := made.str("id")
	if made.header["Etag"] != `"1"` || made.header["Location"] != "/v1/timers/"+id {
		t.Errorf("headers %v", made.header)
	}
	n.do("POST", "/v1/timers", hourly("a", "n", "")).want(200)
	n.do("POST", "/v1/timers", hourly("a", "n", `,"priority":1`)).want(409)
	n.do("GET", "/v1/timers/"+id, "").want(200)
	if head := n.do("HEAD", "/v1/timers/"+id, "").want(200); head.body != "" {
		t.Error("HEAD has a body")
	}
	n.do("GET", "/v1/apps/a/timers/n", "").want(200)
	if got := n.do("GET", "/v1/timers?app=a", "").want(200); got.str("timers", 0, "id") != id {
		t.Error(got.body)
	}
	if got := n.do("DELETE", "/v1/timers/"+id, "").want(200); got.str("result") != "cancelled" {
		t.Error(got.body)
	}
	n.do("GET", "/v1/timers/"+id, "").want(404)
	n.do("DELETE", "/v1/apps/a/timers/n", "").want(404)
}

func TestPagesFollowTheCursor(t *testing.T) {
	n := newNode(t)
	for i := range 7 {
		n.do("POST", "/v1/timers", hourly("a", fmt.Sprint("n", i), fmt.Sprintf(`,"labels":{"odd":"%d"}`, i%2))).want(201)
	}
	seen, cursor := 0, ""
	for {
		p := n.do("GET", "/v1/timers?limit=2&label=odd%3D1"+cursor, "").want(200)
		seen += len(p.get("timers").([]any))
		if p.str("next_cursor") == "" {
			break
		}
		cursor = "&cursor=" + p.str("next_cursor")
	}
	if seen != 3 {
		t.Errorf("%d timers on all pages, want 3", seen)
	}
	n.do("GET", "/v1/timers?cursor=%21", "").want(400)
	n.do("GET", "/v1/timers?cursor=AAAA", "").want(400)
	n.do("GET", "/v1/tasks?cursor=AAAA", "").want(400)
}

func TestPutByName(t *testing.T) {
	n := newNode(t)
	const path = "/v1/apps/a/timers/50%25%2Foff%20%F0%9F%8E%81" // 50%/off 🎁
	body := `{"schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x"}}`
	first := n.do("PUT", path, body).want(201)
	if first.str("result") != "created" || first.str("timer", "name") != "50%/off 🎁" {
		t.Error(first.body)
	}
	if again := n.do("PUT", path, body).want(200); again.str("result") != "unchanged" || again.header["Etag"] != `"1"` {
		t.Error(again.body)
	}
	other := strings.Replace(body, "1h", "2h", 1)
	n.do("PUT", path, other, "If-Match", `"7"`).want(412)
	n.do("PUT", path, other, "If-Match", `W/"1"`).want(412)
	n.do("PUT", path, other, "If-Match", `1`).want(400)
	n.do("PUT", path, other, "If-Match", "").want(400)
	n.do("DELETE", path, "", "If-Match", "").want(400)
	n.do("PUT", path, other, "If-None-Match", "").want(400)
	if did := n.do("PUT", path, other, "If-Match", `"1", "9"`).want(200); did.str("result") != "updated" || did.header["Etag"] != `"2"` {
		t.Error(did.body)
	}
	n.do("PUT", path, body, "If-Match", "*").want(200)
	// Of a timer that does not exist: a PUT would create one, all others answer as without it.
	for _, match := range []string{"*", `"1"`, `"1", "2"`, `W/"1"`} {
		n.do("PUT", "/v1/apps/a/timers/none", body, "If-Match", match).want(412)
		n.do("DELETE", "/v1/apps/a/timers/none", "", "If-Match", match).want(404)
		n.do("DELETE", "/v1/timers/4611686018427387904", "", "If-Match", match).want(404)
		n.do("PATCH", "/v1/timers/4611686018427387904", `{"priority":1}`, "If-Match", match).want(404)
	}
	n.do("PUT", path, body, "If-None-Match", "*").want(412)
	n.do("PUT", path+"?dry_run=true", body, "If-None-Match", "*").want(412)
	n.do("PUT", path, body, "If-None-Match", `"1"`).want(400)
	n.do("PUT", path, body, "If-None-Match", "*", "If-Match", "*").want(400)
	n.do("PUT", path, body, "If-Unmodified-Since", "Fri, 20 Nov 2026 17:00:00 GMT").want(400)
	n.do("PUT", "/v1/apps/a/timers/new?dry_run=true", body, "If-None-Match", "*").want(200)
	n.do("PUT", "/v1/apps/a/timers/new", body, "If-None-Match", "*").want(201)
	n.do("POST", "/v1/timers", body, "If-None-Match", "*").want(400)
	n.do("GET", path, "", "If-None-Match", `"3"`).want(304)
	n.do("GET", path, "", "If-None-Match", `"7", W/"3"`).want(304)
	n.do("GET", path, "", "If-None-Match", `"1"`).want(200)
	// A list in several lines is one list.
	n.do("GET", path, "", "If-None-Match", `"7"`, "If-None-Match", `W/"3"`).want(304)
	n.do("GET", path, "", "If-None-Match", `"7"`, "If-None-Match", `"8"`).want(200)
	n.do("PUT", path, body, "If-Match", `"7"`, "If-Match", `"3"`).want(200)
	n.do("PUT", path, body, "If-Match", `"7"`, "If-Match", `"8"`).want(412)
	n.do("PUT", path, body, "If-Match", `"3"`, "If-Match", `3`).want(400)
	n.do("PUT", path, body, "If-Match", "", "If-Match", `"3"`).want(400)
	n.do("PUT", path, body, "If-Match", `"3"`, "If-Match", "*").want(400)
	n.do("PUT", "/v1/apps/a/timers/new2", body, "If-None-Match", "*", "If-None-Match", `"1"`).want(400)
	n.do("PUT", path, `{"name":"another","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x"}}`).want(422)
	n.do("DELETE", path, "", "If-Match", `"1"`).want(412)
	n.do("DELETE", path, "", "If-Match", `"3"`).want(200)
}

// TestIfMatchOfStates: enable, disable and run are refused if another version stands, and
// of many that name the same version one is done.
func TestIfMatchOfStates(t *testing.T) {
	n := newNode(t)
	path := "/v1/timers/" + n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	for _, verb := range []string{"/run", "/disable", "/enable"} {
		for _, stale := range []string{`"7"`, `"7", "8"`, `W/"1"`} {
			if got := n.do("POST", path+verb, "", "If-Match", stale).want(412); got.header["Etag"] != "" {
				t.Errorf("%s: %v", verb, got.header)
			}
		}
		n.do("POST", path+verb, "", "If-Match", "1").want(400)
		n.do("POST", path+verb, "", "If-None-Match", "*").want(400)
		for _, match := range []string{"*", `"1"`, `"1", "2"`, `W/"1"`} {
			n.do("POST", "/v1/timers/4611686018427387904"+verb, "", "If-Match", match).want(404)
		}
	}
	if got := n.do("GET", path, ""); got.header["Etag"] != `"1"` || strings.Contains(got.body, "last_task") {
		t.Error("a refused request changed the timer: ", got.body)
	}
	n.do("POST", path+"/run", "", "If-Match", `"1"`).want(202)
	n.do("POST", path+"/disable", "", "If-Match", `"9", "1"`).want(200)
	n.do("POST", path+"/run", "", "If-Match", "*").want(202)
	n.do("POST", path+"/run", "", "If-Match", `"1"`).want(412)
	n.do("POST", path+"/enable", "", "If-Match", `"2"`).want(200)

	var done atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			got := n.do("POST", path+"/disable", fmt.Sprintf(`{"reason":"number %d"}`, i), "If-Match", `"3"`)
			if got.status == 200 {
				done.Add(1)
			} else if got.status != 412 {
				t.Error(got.status, got.body)
			}
		})
	}
	if all.Wait(); done.Load() != 1 {
		t.Errorf("%d changes of one version were made", done.Load())
	}
}

// TestPutDryRun: it says what a put would answer, good or bad, and changes nothing.
func TestPutDryRun(t *testing.T) {
	n := newNode(t)
	const path, dry = "/v1/apps/a/timers/n", "/v1/apps/a/timers/n?dry_run=true"
	body := `{"schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x"}}`
	other := strings.Replace(body, "1h", "2h", 1)
	would := func(result, body string, headers ...string) {
		t.Helper()
		if got := n.do("PUT", dry, body, headers...).want(200); got.str("result") != result || got.get("dry_run") != true {
			t.Errorf("want %s: %s", result, got.body)
		}
	}
	// Whatever is wrong, the dry run says of it what the put does.
	refused := func(status int, body string, headers ...string) {
		t.Helper()
		said := n.do("PUT", dry, body, headers...).want(status).body
		if real := n.do("PUT", path, body, headers...).want(status).body; said != real {
			t.Errorf("the dry run says %s, the put %s", said, real)
		}
	}
	wrong := func() {
		t.Helper()
		refused(400, `{"shedule":{}}`)
		refused(422, strings.Replace(body, `"every":"1h"`, `"cron":"61 * * * *"`, 1))
		refused(422, strings.Replace(body, `"every":"1h"`, `"cron":"0 0 30 2 *"`, 1))
		refused(422, strings.Replace(body, `"every":"1h"`, `"at":"2021-01-01T00:00:00Z"`, 1))
		refused(422, strings.Replace(body, "http:", "ftp:", 1))
		refused(422, strings.Replace(body, `{`, `{"name":"m",`, 1))
		refused(412, body, "If-Match", `"7"`)
		refused(412, body, "If-Match", `"7", "8"`)
	}

	wrong()
	would("created", body)
	n.do("GET", path, "").want(404)
	n.do("PUT", path, body).want(201)
	before := n.do("GET", path, "").want(200)

	wrong()
	would("unchanged", body)
	would("updated", other)
	would("updated", other, "If-Match", `"1"`)
	would("updated", strings.Replace(body, `{`, `{"priority":1,`, 1), "If-Match", "*")
	if got := n.do("GET", path, "").want(200); got.body != before.body {
		t.Errorf("a dry run changed the timer: %s", got.body)
	}
	if got := n.do("GET", "/v1/timers/"+before.str("id")+"/versions", "").want(200); len(got.get("versions").([]any)) != 1 {
		t.Errorf("a dry run made a version: %s", got.body)
	}
	n.do("PUT", path+"?dry_run=1", body).want(400)
	if got := n.do("PUT", path+"?dry_run=false", other).want(200); got.str("result") != "updated" {
		t.Error(got.body)
	}
}

func TestPatchIsAMergePatch(t *testing.T) {
	n := newNode(t)
	id := n.do("POST", "/v1/timers", hourly("a", "n",
		`,"priority":2,"stale_after":5000,"labels":{"team":"a","env":"prod"},"retry":{"max_attempts":9}`)).want(201).str("id")
	path := "/v1/timers/" + id
	got := n.do("PATCH", path, `{"priority":null,"labels":{"env":null,"x":"y"},"callback":{"body":{"a":[1,{"b":1e2}]}}}`).want(200)
	for _, want := range []string{`"priority":5,"stale_after":"5s"`, `"labels":{"team":"a","x":"y"}`, `"body":{"a":[1,{"b":1e2}]}`, `"max_attempts":9`, `"version":2`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	got = n.do("PATCH", path, `{"callback":{"body":{"a":null,"c":1}},"schedule":{"every":null,"cron":"0 9 * * *"}}`, "If-Match", `"2"`).want(200)
	if !strings.Contains(got.body, `"body":{"c":1}`) || got.str("schedule", "cron") != "0 9 * * *" {
		t.Error(got.body)
	}
	n.do("PATCH", path, `{"priority":1}`, "If-Match", `"2"`).want(412)
	n.do("PATCH", path, `{"schedule":{"every":"1h"}}`).want(422) // both cron and every
	n.do("PATCH", path, `{"name":"other"}`).want(422)
	n.do("PATCH", path, `{"app":null}`).want(422)
	if got := n.do("PATCH", path, `{"app":"other"}`).want(422); got.str("errors", 0, "field") != "app" {
		t.Error(got.body)
	}
	n.do("PATCH", path, `{"nonsense":1}`).want(400)
	n.do("PATCH", path, `{"status":"disabled"}`).want(400)
	n.do("PATCH", path, `[]`).want(400)
	n.do("PATCH", path, ``).want(400)
	n.do("PATCH", "/v1/timers/1", `{}`).want(404)
	if same := n.do("PATCH", path, `{}`).want(200); same.header["Etag"] != `"3"` {
		t.Error("an empty patch made a new version")
	}
}

func TestIdempotencyKey(t *testing.T) {
	n := newNode(t)
	key := []string{"Idempotency-Key", "order 1842"}
	id := n.do("POST", "/v1/timers", hourly("a", "n", ""), key...).want(201).str("id")
	again := n.do("POST", "/v1/timers", hourly("a", "n", ""), key...).want(201)
	if again.str("id") != id || again.header["Idempotency-Replayed"] != "true" {
		t.Error(again.header, again.body)
	}
	if again.str("status") != "enabled" || again.get("deleted") != nil {
		t.Error(again.body)
	}
	n.do("POST", "/v1/timers", hourly("a", "other", ""), key...).want(422)
	n.do("POST", "/v1/timers", hourly("b", "n", ""), key...).want(201) // scoped by app
	// Of a timer that was deleted since it does not say that it will be called.
	n.do("DELETE", "/v1/timers/"+id, "").want(200)
	gone := n.do("POST", "/v1/timers", hourly("a", "n", ""), key...).want(201)
	if gone.str("id") != id || gone.str("status") != "finished" || gone.get("deleted") != true || gone.get("next_due") != nil {
		t.Error(gone.body)
	}
	n.do("POST", "/v1/timers", hourly("a", "m", ""), "Idempotency-Key", strings.Repeat("k", 256)).want(400)
	n.do("POST", "/v1/timers", hourly("a", "m", ""), "Idempotency-Key", "k\xff").want(400)
}

func TestBatch(t *testing.T) {
	n := newNode(t)
	good := hourly("a", "one", "")
	bad := `{"app":"a","name":"two","schedule":{"cron":"0 9 * *"},"callback":{"url":"ftp://x","colour":"red"}}`
	for _, c := range []struct{ kind, body string }{
		{"application/json", `{"timers":[` + good + `,` + bad + `,[],` + good + `]}`},
		{"application/x-ndjson; charset=utf-8", good + "\r\n\n" + bad + "\n[]\n" + good},
	} {
		n.do("DELETE", "/v1/apps/a/timers/one", "")
		got := n.do("POST", batchPath, c.body, "Content-Type", c.kind).want(200)
		if s := fmt.Sprint(got.get("results", 0, "status"), got.get("results", 1, "status"), got.get("results", 2, "status"), got.get("results", 3, "status")); s != "201 400 400 200" {
			t.Errorf("%s: %s", s, got.body)
		}
		if f := got.str("results", 1, "error", "errors", 0, "field"); f != "timers[1].callback.colour" {
			t.Errorf("field %q in %s", f, got.body)
		}
		if f := got.str("results", 2, "error", "errors", 0, "field"); f != "timers[2]" {
			t.Errorf("field %q in %s", f, got.body)
		}
		if got.str("results", 0, "id") == "" || got.str("results", 0, "id") != got.str("results", 3, "id") {
			t.Error(got.body)
		}
	}
	got := n.do("POST", batchPath, `{"timers":[`+strings.Replace(bad, `,"colour":"red"`, "", 1)+`]}`).want(200)
	if f := got.str("results", 0, "error", "errors", 0, "field"); got.get("results", 0, "status") != 422.0 || !strings.HasPrefix(f, "timers[0].") {
		t.Error(got.body)
	}
	got = n.do("POST", batchPath, good+"\n{no JSON\n", "Content-Type", "application/x-ndjson").want(200)
	if f := got.str("results", 1, "error", "errors", 0, "field"); f != "timers[1]" {
		t.Errorf("field %q in %s", f, got.body)
	}
	n.do("POST", batchPath, `{"timers":[`+good).want(400)
	n.do("POST", batchPath, `{"timers":[]}`).want(400)
	n.do("POST", batchPath, `{}`).want(400)
	n.do("POST", batchPath, `{"timers":[`+strings.Repeat("{},", 1000)+`{}]}`).want(400)
	n.do("POST", batchPath, strings.Repeat("{}\n", 1001), "Content-Type", "application/x-ndjson").want(400)
	got = n.do("POST", batchPath, `{"timers":[{"app":"a","app":"b"}]}`).want(400)
	if got.str("errors", 0, "field") != "timers[0].app" {
		t.Error(got.body)
	}
	for _, body := range []string{`{"bogus":1,"timers":[` + good + `]}`, `{"timers":[` + good + `],"bogus":1}`, `{"bogus":1,"timers":[` + bad + `]}`} {
		if got := n.do("POST", batchPath, body).want(400); got.str("code") != "unknown_field" || got.str("errors", 0, "field") != "bogus" {
			t.Errorf("%s: %s", body, got.body)
		}
	}
}

func TestEnableDisableRun(t *testing.T) {
	n := newNode(t)
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	path := "/v1/timers/" + id
	got := n.do("POST", path+"/disable", `{"reason":"holiday","until":"2099-01-01T00:00:00Z"}`).want(200)
	if got.str("status") != "disabled" || got.str("reason") != "holiday" || got.str("disabled_until") != "2099-01-01T00:00:00.000Z" {
		t.Error(got.body)
	}
	n.do("POST", path+"/disable", "").want(200)
	n.do("POST", path+"/disable", `{"until":1}`).want(422)
	n.do("POST", path+"/disable", `{"why":1}`).want(400)
	run := n.do("POST", path+"/run", "").want(202)
	if run.header["Location"] != "/v1/tasks/"+run.str("key") {
		t.Error(run.header)
	}
	until(t, func() bool { return n.do("GET", "/v1/tasks/"+run.str("key"), "").str("status") == "succeeded" })
	task := n.do("GET", "/v1/tasks/"+run.str("key"), "").want(200)
	if task.str("origin") != "manual" || task.str("attempts", 0, "response") != "a \ufffd\n\"b\"" || task.get("attempts", 0, "took_ms") != 1.5 ||
		task.get("attempts", 0, "phases_us", "dial") != 0.0 || task.get("attempts", 0, "phases_us", "first_byte") != 1200.0 {
		t.Error(task.body)
	}
	n.do("POST", "/v1/tasks/"+run.str("key")+"/retry", "").want(409) // it succeeded
	if got := n.do("POST", path+"/enable", `{"catch_up":"latest"}`).want(200); got.str("status") != "enabled" {
		t.Error(got.body)
	}
	n.do("POST", path+"/enable", "").want(200)
	n.do("POST", path+"/enable", `{"catch_up":"some"}`).want(422)
	n.do("POST", "/v1/timers/7/run", "").want(404)
	if got := n.do("GET", path+"/upcoming?n=3", "").want(200); len(got.get("dues").([]any)) != 3 {
		t.Error(got.body)
	}
	n.do("GET", path+"/upcoming?n=1001", "").want(400)
	if list := n.do("GET", "/v1/tasks?timer_id="+id+"&status=succeeded,failed&origin=manual&from=2020-01-01T00:00:00Z&to=4102444800000", "").want(200); list.str("tasks", 0, "key") != run.str("key") {
		t.Error(list.body)
	}
	if got := n.do("GET", path, "").want(200); got.str("last_task", "key") != run.str("key") {
		t.Error(got.body)
	}
}

func TestRetry(t *testing.T) {
	n := serve(t, newEngine(t, answers(400), nil), ServerConfig{})
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
	failed := func() bool {
		task := n.do("GET", "/v1/tasks/"+key, "")
		return task.str("status") == "failed"
	}
	until(t, failed)
	n.do("POST", "/v1/tasks/"+key+"/retry", "").want(202)
	until(t, failed)
	if got := n.do("POST", "/v1/tasks/retry", `{"timer_id":"`+id+`"}`).want(200); got.get("count") != 1.0 || got.str("action") != "retry" {
		t.Error(got.body)
	}
	until(t, func() bool { return failed() && len(n.do("GET", "/v1/tasks/"+key, "").get("attempts").([]any)) == 3 })
	n.do("POST", "/v1/tasks/retry?status=succeeded", "").want(422)
	n.do("POST", "/v1/tasks/retry", "").want(400)
	n.do("GET", "/v1/tasks/7_8", "").want(404)
	n.do("GET", "/v1/tasks/7-8", "").want(404)
}

func TestBulk(t *testing.T) {
	n := newNode(t)
	for i := range 5 {
		n.do("POST", "/v1/timers", hourly("a", fmt.Sprint("n", i), `,"labels":{"team":"x"}`)).want(201)
	}
	n.do("POST", "/v1/timers", hourly("b", "n", "")).want(201)
	if got := n.do("POST", "/v1/timers/disable?app=a", `{"label":"team=x","reason":"night","dry_run":true}`).want(200); got.get("count") != 5.0 || got.get("done") != 0.0 {
		t.Error(got.body)
	}
	got := n.do("POST", "/v1/timers/disable?app=a", `{"label":"team=x","reason":"night"}`).want(200)
	if got.get("count") != 5.0 || got.get("done") != 5.0 || got.get("ended") != true {
		t.Error(got.body)
	}
	n.do("GET", "/v1/operations/"+got.str("id"), "").want(200)
	n.do("GET", "/v1/operations/none", "").want(404)
	if got := n.do("GET", "/v1/timers?status=disabled", "").want(200); len(got.get("timers").([]any)) != 5 {
		t.Error(got.body)
	}
	n.do("POST", "/v1/timers/enable?name_prefix=n1", "").want(200)
	if got := n.do("POST", "/v1/timers/disable", `{"all":true,"until":1763658000250}`).want(422); got.str("code") != "until_past" {
		t.Error(got.body)
	}
	n.do("POST", "/v1/tasks/retry", `{"app":"a","from":1763658000250,"to":"2099-01-01T00:00:00Z"}`).want(200)
	n.do("POST", "/v1/timers/delete", "").want(400)
	n.do("POST", "/v1/timers/delete?app=a", `{"app":"b"}`).want(400)
	n.do("POST", "/v1/timers/delete?dry_run=yes", "").want(400)
	for _, c := range []struct{ query, body string }{
		{"?app=", ""},
		{"?name_prefix=", ""},
		{"?app=&name_prefix=", ""},
		{"", `{"app":""}`},
		{"", `{"name_prefix":""}`},
		{"?app=&all=false", `{"name_prefix":""}`},
		{"?code=", ""},
		{"?app=", `{"code":"","dismissed":false}`},
		{"?dismissed=false", ""},
	} {
		for _, path := range []string{"/v1/timers/delete", "/v1/timers/disable", "/v1/timers/enable", "/v1/tasks/retry"} {
			ofTasks := strings.Contains(c.query+c.body, "code") || strings.Contains(c.query, "dismissed")
			if strings.Contains(path, "/tasks/") && strings.Contains(c.query+c.body, "name_prefix") || !strings.Contains(path, "/tasks/") && ofTasks {
				continue
			}
			if got := n.do("POST", path+c.query, c.body).want(400); got.str("code") != "no_filter" {
				t.Errorf("%s%s %s: %s", path, c.query, c.body, got.body)
			}
		}
	}
	for _, c := range []struct{ query, body string }{
		{"?app=a&dry_run=true", `{"dry_run":false}`}, {"?all=false", `{"all":true}`}, {"?app=", `{"app":"a"}`},
	} {
		if got := n.do("POST", "/v1/timers/delete"+c.query, c.body).want(400); got.str("code") != "duplicate_field" {
			t.Errorf("%s %s: %s", c.query, c.body, got.body)
		}
	}
	if got := n.do("POST", "/v1/timers/delete?dry_run=true&app=", `{"dry_run":null,"all":true}`).want(200); got.get("count") != 6.0 || got.get("dry_run") != true {
		t.Error(got.body)
	}
	if got := n.do("POST", "/v1/timers/delete", `{"all":true}`).want(200); got.get("count") != 6.0 {
		t.Error(got.body)
	}
}

func TestPreview(t *testing.T) {
	n := newNode(t)
	got := n.do("POST", "/v1/schedules/preview", `{"schedule":{"cron":"0 9 * * MON-FRI","time_zone":"Asia/Shanghai"},"n":3,"from":"2026-11-20T00:00:00Z"}`).want(200)
	if got.str("dues", 0) != "2026-11-20T01:00:00.000Z" || got.str("sentence") == "" {
		t.Error(got.body)
	}
	if got := n.do("POST", "/v1/schedules/preview", `{"schedule":{"cron":"0 0 30 2 *"}}`); got.status == 200 && got.str("warnings", 0, "code") != "never_fires" {
		t.Error(got.body)
	}
	n.do("POST", "/v1/schedules/preview", `{"n":3}`).want(400)
	n.do("POST", "/v1/schedules/preview", `{"schedule":{"cron":"61 * * * *"}}`).want(422)
}

// A preview and a dry run warn of flow keys that no flow limits: a pause is no limit.
func TestUndefinedFlows(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	n.token = "root"
	n.do("PUT", "/v1/apps/a/flows/user-*", `{"rate":1}`).want(201)
	n.do("PUT", "/v1/apps/b/flows/stripe", `{"rate":1}`).want(201)
	n.do("POST", "/v1/apps/a/flows/stripe/pause", "").want(200)
	preview := func(rest string) answer {
		return n.do("POST", "/v1/schedules/preview", `{"schedule":{"cron":"0 9 * * *"}`+rest+`}`)
	}
	warns := func(got answer, keys ...string) {
		t.Helper()
		for i, key := range keys {
			if got.str("warnings", i, "code") != "flow_undefined" || got.str("warnings", i, "flow") != key {
				t.Errorf("%s does not warn of %s", got.body, key)
			}
		}
		if strings.Count(got.body, "flow_undefined") != len(keys) {
			t.Errorf("%s, want warnings of %v", got.body, keys)
		}
	}
	const put = "/v1/apps/a/timers/n?dry_run=true"
	const timer = `{"schedule":{"cron":"0 9 * * *"},"callback":{"url":"http://x/"},"flow":["stripe","user-17","other"]}`
	warns(preview(`,"app":"a","flow":["stripe","user-17","other"]`).want(200), "stripe", "other")
	warns(n.do("PUT", put, timer).want(200), "stripe", "other")
	n.do("PUT", "/v1/apps/a/flows/stripe", `{"rate":1}`).want(200)
	n.do("PUT", "/v1/apps/a/flows/*", `{"rate":1}`).want(201)
	warns(preview(`,"app":"a","flow":["stripe","user-17","other"]`).want(200))
	warns(n.do("PUT", put, timer).want(200))

	preview(`,"flow":["stripe"]`).want(400)
	preview(`,"app":"a","flow":["a!"]`).want(422)
	preview(`,"app":"a","flow":["1","2","3","4","5"]`).want(422)
	n.token = "a-read"
	warns(preview(`,"flow":["stripe"]`).want(200))
	preview(`,"app":"b","flow":["stripe"]`).want(403)
}

// A URL that may not be called is refused wherever a definition comes in.
func TestForbiddenURL(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Forbids: func(url string) error {
		if strings.Contains(url, "0.0.0.0") {
			return errors.New("0.0.0.0 may not be called")
		}
		return nil
	}})
	bad := `{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"http://0.0.0.0/"}}`
	good := strings.Replace(bad, "0.0.0.0", "127.0.0.1", 1)
	refused := func(a answer) {
		t.Helper()
		if a.want(422).get("errors", 0, "field") != "callback.url" {
			t.Error(a.body)
		}
	}
	refused(n.do("POST", "/v1/timers", bad))
	refused(n.do("PUT", "/v1/apps/a/timers/n", bad))
	id := n.do("POST", "/v1/timers", good).want(201).str("id")
	refused(n.do("PATCH", "/v1/timers/"+id, `{"callback":{"url":"http://0.0.0.0/"}}`))
	if got := n.do("POST", "/v1/timers/batch", `{"timers":[`+bad+`,`+good+`]}`).want(200); got.get("results", 0, "status") != 422.0 && !strings.Contains(got.body, "callback.url") {
		t.Error(got.body)
	}
}
