package console

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestTasksFilters: the page asks the API for what is chosen, in the zone of the page.
func TestTasksFilters(t *testing.T) {
	for query, want := range map[string]string{
		"":                                     "limit=50",
		"app=shop&timer_id=7&status=dead":      "app=shop&limit=50&status=dead&timer_id=7",
		"status=problems":                      "limit=50&status=failed%2Cdead%2Cmissed%2Cunknown",
		"from=2026-11-20T17:00&cursor=c":       "cursor=c&from=2026-11-20T17%3A00%3A00.000Z&limit=50",
		"to=2026-11-20T17:00:30.250%2B08:00":   "limit=50&to=2026-11-20T09%3A00%3A30.250Z",
		"from=2026-11-20T17:00:01&to=nonsense": "",
	} {
		asked := ""
		body := fakeAPI(func(r *http.Request) (int, any) {
			asked = r.URL.RawQuery
			return 200, client.TaskList{}
		}).page("/tasks?" + query)
		if asked != want {
			t.Errorf("%q asks for %q, want %q", query, asked, want)
		}
		if want == "" && !strings.Contains(body, "This is not a date and time") {
			t.Errorf("%q: %s", query, body)
		}
	}
	zone := ""
	fakeAPI(func(r *http.Request) (int, any) {
		zone = r.URL.Query().Get("from")
		return 200, client.TaskList{}
	}).page("/tasks?from=2026-11-20T17:00", "Cookie", "xtimer_zone=mine; xtimer_zone_mine=Asia%2FShanghai")
	if zone != "2026-11-20T09:00:00.000Z" {
		t.Errorf("17:00 in Shanghai is %s", zone)
	}
}

// file is the CSV file of a console that asks the API.
func (f fakeAPI) file(t *testing.T, path string) [][]string {
	t.Helper()
	w := httptest.NewRecorder()
	New(Config{API: f}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, "text/csv") {
		t.Fatalf("%d %s: %s", w.Code, kind, w.Body)
	}
	r := csv.NewReader(w.Body)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestCSV: a file of tasks has a line for each, and no text in it is a formula.
func TestCSV(t *testing.T) {
	n := serve(t)
	tm, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "=cmd()", Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "http://target.test/no"},
	})
	if err != nil {
		t.Fatal(err)
	}
	task := n.run(tm.Timer.ID)
	n.run(n.timer("shop", "stock", "/ok").ID)
	a := n.visitor().get("/tasks.csv?status=failed")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, a.body)
	}
	got := map[string]string{}
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	if got["key"] != task.Key || got["name"] != "'=cmd()" || got["status"] != "failed" || got["code"] != "404" || got["due"] != task.Due.Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("%v", got)
	}
	if d := a.header.Get("Content-Disposition"); !strings.Contains(d, "attachment") {
		t.Errorf("it is not saved: %q", d)
	}
}

// TestHeadOfStreams: HEAD opens no stream of the API, and reads no more than one page of tasks.
func TestHeadOfStreams(t *testing.T) {
	for path, want := range map[string]string{"/live/events": "HEAD /v1/tasks/stream", "/tasks.csv": "GET /v1/tasks"} {
		var asked []string
		api := fakeAPI(func(r *http.Request) (int, any) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			return 200, client.TaskList{Tasks: make([]client.Task, 3), NextCursor: "c"}
		})
		w := httptest.NewRecorder()
		New(Config{API: api}).ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
		if w.Code != http.StatusOK || len(asked) != 1 || asked[0] != want || path == "/tasks.csv" && w.Body.Len() > 0 {
			t.Errorf("%s: %d, %d bytes, asked %q; want %s", path, w.Code, w.Body.Len(), asked, want)
		}
	}
}

// TestCSVBounds: a file that has not all says so in its last line.
func TestCSVBounds(t *testing.T) {
	asked := 0
	rows := fakeAPI(func(r *http.Request) (int, any) {
		asked++
		return 200, client.TaskList{Tasks: make([]client.Task, csvPiece), NextCursor: fmt.Sprint("c", asked)}
	}).file(t, "/tasks.csv")
	if last := rows[len(rows)-1]; len(rows) != mostRows+2 || len(last) != 1 || !strings.Contains(last[0], "more than 50000 tasks match") || asked != mostRows/csvPiece {
		t.Errorf("%d lines after %d requests, the last %q", len(rows), asked, last)
	}
	asked = 0
	rows = fakeAPI(func(r *http.Request) (int, any) {
		if asked++; asked == 2 {
			return 500, nil
		}
		return 200, client.TaskList{Tasks: make([]client.Task, 3), NextCursor: "c"}
	}).file(t, "/tasks.csv")
	if last := rows[len(rows)-1]; len(rows) != 5 || !strings.Contains(last[0], "the file ends here") {
		t.Errorf("%d lines, the last %q", len(rows), last)
	}
}

// TestCurl: the commands for a shell are the requests, whatever the texts in them.
func TestCurl(t *testing.T) {
	for _, text := range []string{"", "a b", "it's", "'", "$(id)`id`\\\"\n!", evil} {
		out, err := exec.Command("sh", "-c", "printf %s "+quoteShell(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is %q to a shell, %v", text, out, err)
		}
	}
	n := serve(t, tokens...)
	v := n.signedIn("all-admin")
	tm := n.create(fullDefinition)
	page := html.UnescapeString(v.get("/timers/" + tm.ID).body)
	for _, want := range []string{
		"curl -X 'PUT' '" + n.url + "/v1/apps/shop/timers/full' \\\n  -H \"Authorization: Bearer $XTIMER_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  --data-raw '{",
		`"Authorization":"••••••"`, "Secrets are hidden",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	task := n.run(tm.ID)
	page = html.UnescapeString(v.get("/tasks/" + task.Key).body)
	for _, want := range []string{"curl -X 'PUT' 'https://x.example/' \\\n  -H 'A: b'", "\n  -H 'Idempotency-Key: " + task.Key + "'", "\nX-Xtimer-Attempt: 1", `--data-raw '{"a":[1,{"big":12345678901234567890}]}'`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the task lacks %q: %s", want, page)
		}
	}
}

// TestDisableUntil: the time is read in the zone that the form was shown in.
func TestDisableUntil(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	want := time.Date(2099, 11, 20, 9, 0, 0, 0, time.UTC)
	form := func() url.Values {
		return url.Values{"reason": {"x"}, "until": {"2099-11-20T17:00"}, "zone": {"Asia/Shanghai"}}
	}
	one := n.timer("shop", "one", "/ok")
	if a := v.post("/timers/"+one.ID+"/disable", form()); a.status != http.StatusSeeOther {
		t.Fatal(a)
	}
	many := n.timer("shop", "many", "/ok")
	f := form()
	f.Set("action", "disable")
	f.Set("id", many.ID)
	f.Set("confirmed", "yes")
	v.ended(v.post("/timers/act", f))
	for _, id := range []string{one.ID, many.ID} {
		if tm, err := n.api.Get(t.Context(), id); err != nil || !tm.DisabledUntil.Equal(want) {
			t.Errorf("%+v, %v", tm, err)
		}
	}
	f = form()
	f.Set("until", "soon")
	if a := v.post("/timers/"+one.ID+"/disable", f); a.status != http.StatusBadRequest {
		t.Error(a)
	}
}

// TestCurlIsLiteral: the command sends the text that it shows, whatever that means to curl.
func TestCurlIsLiteral(t *testing.T) {
	got := curl("POST", "http://[::1]:9/{a,b}", []header{{"X-A", ""}, {"X-B", "it's"}}, "@/etc/hostname")
	want := `curl -X 'POST' 'http://[::1]:9/{a,b}' --globoff \
  -H 'X-A;' \
  -H 'X-B: it'\''s' \
  --data-raw '@/etc/hostname'`
	if got != want {
		t.Error(got)
	}
}
