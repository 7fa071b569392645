package console

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestRequest: the page of a task shows what was sent, not what the timer says now.
func TestRequest(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	tm := n.timer("shop", "stock", "/bad")
	task := n.run(tm.ID)
	page := func(lang string) string {
		return html.UnescapeString(v.get("/tasks/"+task.Key, "Accept-Language", lang).body)
	}
	check := func(what, body string, want []string, not ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: the page lacks %q: %s", what, text, body[strings.Index(body, "<main"):])
			}
		}
		for _, text := range not {
			if strings.Contains(body, text) {
				t.Errorf("%s: the page has %q", what, text)
			}
		}
	}
	check("unchanged", page("en"), []string{"<h3>Version 1", "Attempts 1 to 2", "POST http://target.test/bad"}, "in force", "deleted", "not kept", "may have been")

	// A change that it was not sent in, in the ms after it.
	change := func(patch map[string]any) {
		t.Helper()
		n.until(func() bool { return time.Now().UnixMilli() > task.Attempts[len(task.Attempts)-1].Started.UnixMilli() })
		if _, err := n.api.Patch(t.Context(), tm.ID, patch); err != nil {
			t.Fatal(err)
		}
	}
	change(map[string]any{"schedule": map[string]any{"every": "2h"}})
	check("another schedule", page("en"), []string{"<h3>Version 1", "The timer has changed since then, but its request has not: the current version is 2."})
	change(map[string]any{"callback": map[string]any{"url": "http://target.test/ok", "body": "later"}})
	check("another request", page("en"), []string{"<h3>Version 1", "POST http://target.test/bad", "The timer has changed since then: the current version is 3."}, "/ok", "later")
	check("another request", page("zh"), []string{"<h3>版本 1", "POST http://target.test/bad", "定时器后来有过修改：当前为版本 3。"}, "/ok", "later")

	// Retried, it is sent what the timer says by then: each attempt its own.
	if err := n.api.Retry(t.Context(), task.Key); err != nil {
		t.Fatal(err)
	}
	n.until(func() bool {
		got, err := n.api.Task(t.Context(), task.Key)
		return err == nil && got.Status == client.Succeeded
	})
	body := page("en")
	check("retried", body, []string{"<h3>Version 3", "Attempt 3", "POST http://target.test/ok", "later", "<h3>Version 1", "Attempts 1 to 2", "POST http://target.test/bad"})
	if strings.Index(body, "<h3>Version 3") > strings.Index(body, "<h3>Version 1") {
		t.Error("the last request is not the first")
	}
	if _, err := n.api.Delete(t.Context(), tm.ID); err != nil {
		t.Fatal(err)
	}
	check("deleted", page("en"), []string{"POST http://target.test/bad", "The timer has been deleted since then."}, "current version")
}

// fakeAPI answers the console's questions, by path.
type fakeAPI func(r *http.Request) (status int, body any)

func (f fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, any(nil)
	switch {
	case r.URL.Path == "/v1/token":
		body = client.Grant{App: "*", Role: "admin"}
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pause"): // each page asks for it
		body = client.AppPause{}
	default:
		status, body = f(r)
	}
	kind := "application/json"
	if status >= 400 {
		kind, body = "application/problem+json", map[string]any{"status": status, "title": "no"}
	}
	b, err := json.Marshal(body)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, err
}

// page is a page of a console that asks it.
func (f fakeAPI) page(path string, headers ...string) string {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	New(Config{API: f}).ServeHTTP(w, r)
	return html.UnescapeString(w.Body.String())
}

// leads is where a page of a console that asks it sends the visitor.
func (f fakeAPI) leads(path string) string {
	w := httptest.NewRecorder()
	New(Config{API: f}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Header().Get("Location")
}

// TestRequestNotYet: before the first attempt there is only what the timer says.
func TestRequestNotYet(t *testing.T) {
	for status, want := range map[string]string{
		client.Waiting: "Not called yet.", client.Running: "The first call is in progress.", client.Skipped: "Not called.",
	} {
		page := fakeAPI(func(r *http.Request) (int, any) {
			if strings.HasPrefix(r.URL.Path, "/v1/tasks/") {
				return 200, client.Task{Key: "7_1", TimerID: "7", App: "shop", Status: status}
			}
			return 200, client.Timer{ID: "7", Version: 4, Definition: client.Definition{Callback: client.Callback{URL: "http://x/", Method: "POST"}}}
		}).page("/tasks/7_1")
		if !strings.Contains(page, want) || strings.Contains(page, "According to the current definition of the timer.") != (status != client.Skipped) {
			t.Errorf("%s: %s", status, page)
		}
	}
}

// TestRequestVersions: which version was in force when it was sent, and what is
// said when nobody knows.
func TestRequestVersions(t *testing.T) {
	at := func(s int) time.Time {
		return time.UnixMilli(1_800_000_000_000).UTC().Add(time.Duration(s) * time.Second)
	}
	version := func(n, s int) client.Timer {
		tm := client.Timer{ID: "7", Version: n, UpdatedAt: at(s), Definition: client.Definition{App: "shop"}}
		tm.Callback = client.Callback{URL: "http://x/" + string(rune('a'+n)), Method: "POST"}
		return tm
	}
	all := []client.Timer{version(9, 90), version(8, 80), version(7, 70)}
	for _, x := range []struct {
		sent        time.Time
		versions    []client.Timer
		want, maybe int
	}{
		{at(95), all, 9, 0},
		{at(90), all, 9, 8},
		{at(90).Add(-time.Millisecond), all, 8, 0},
		{at(85), all, 8, 0},
		{at(80).Add(storing - 1), all, 8, 7},
		{at(80).Add(storing), all, 8, 0},
		{at(70), all, 7, 0},
		{at(69), all, 0, 0},
		{at(0), []client.Timer{version(1, 5)}, 1, 0},
		{at(0), nil, 0, 0},
	} {
		if got := requestAt(x.versions, &client.Task{}, client.Attempt{Started: x.sent}); got.Version != x.want || got.Maybe != x.maybe {
			t.Errorf("sent at %s: version %d or %d, want %d or %d", x.sent, got.Version, got.Maybe, x.want, x.maybe)
		}
	}

	known := all
	page := func() string {
		return fakeAPI(func(r *http.Request) (int, any) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/v1/tasks/"):
				return 200, client.Task{Key: "7_1", TimerID: "7", App: "shop", Status: client.Dead, Attempts: []client.Attempt{{N: 1, Started: at(10)}, {N: 2, Started: at(80)}, {N: 3, Started: at(85)}}}
			case strings.HasSuffix(r.URL.Path, "/versions") && known != nil:
				return 200, map[string]any{"versions": known}
			}
			return 404, nil
		}).page("/tasks/7_1")
	}
	got := page()
	for _, want := range []string{`{"task":"7_1","timer":"7","app":"shop","name":"","due":`, `"attempt":3}`, "here that of attempt 3", "<h3>Version 8", "Attempts 2 to 3", "POST http://x/i", "The timer was changed within the second before the call: the version may have been 7.", "This version is no longer stored"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q: %s", want, got)
		}
	}
	known = nil
	if got := page(); strings.Count(got, "This version is no longer stored") != 1 || strings.Contains(got, "POST http") {
		t.Error(got)
	}
}
