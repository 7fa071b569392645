package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestUpcoming: a minute that is not loaded yet is read from the warm tier, and
// the overview leads there.
func TestUpcoming(t *testing.T) {
	n := serve(t)
	at := time.Now().Add(30 * time.Minute).Truncate(time.Minute)
	for name, after := range map[string]time.Duration{"later": 40 * time.Second, "first": 5 * time.Second, "other": 65 * time.Second} {
		_, err := n.api.Create(t.Context(), client.Definition{
			App: "shop", Name: name, Schedule: client.Schedule{At: at.Add(after)}, Callback: client.Callback{URL: "http://x/"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// What is created within a window that is being filled comes with the fill.
	v := n.visitor()
	path := "/upcoming?at=" + at.UTC().Format("2006-01-02T15:04:05.000Z")
	n.until(func() bool { return strings.Contains(v.get(path).body, ">later</a>") })
	body := v.get(path).body
	if first, later := strings.Index(body, ">first</a>"), strings.Index(body, ">later</a>"); first < 0 || later < first || strings.Contains(body, ">other</a>") {
		t.Error(body)
	}
	if !strings.Contains(body, ":05.000 UTC · 1") || !strings.Contains(body, ":40.000 UTC · 1") {
		t.Error("the seconds are not marked")
	}
	if o := v.get("/").body; !strings.Contains(o, `title="`+at.UTC().Format("15:04")+` · 2"`) {
		t.Error("the overview does not show the minute")
	}
	if a := v.get("/upcoming?at=nonsense"); a.status != 400 {
		t.Errorf("nonsense: %d", a.status)
	}
}

// TestPassedMinute: the link of a minute does not expire. After the minute it shows what
// became of the dues.
func TestPassedMinute(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	past := fakeAPI(func(r *http.Request) (int, any) {
		if r.URL.Path != "/v1/tasks" || r.URL.Query().Get("from") != "2020-01-01T00:00:00.000Z" || r.URL.Query().Get("to") != "2020-01-01T00:01:00.000Z" {
			return 500, nil
		}
		return 200, client.TaskList{Tasks: []client.Task{{Key: "7_1", TimerID: "7", App: "shop", Name: "stock", Status: client.Dead, Due: time.Date(2020, 1, 1, 0, 0, 7, 0, time.UTC)}}}
	}).page("/upcoming?at=2020-01-01T00:00:30Z")
	for _, want := range []string{"Tasks of this minute", "By second: 1 task", `href="/tasks/7_1"`, "00:00:07.000 UTC · 1", `id="next"`, `id="former"`} {
		if !strings.Contains(past, want) {
			t.Errorf("the page lacks %q: %s", want, past)
		}
	}
	many := fakeAPI(func(*http.Request) (int, any) {
		l := client.TaskList{Tasks: make([]client.Task, mostListed+1)}
		for i := range l.Tasks {
			l.Tasks[i] = client.Task{Key: "7_1", Status: client.Succeeded, Due: time.Date(2020, 1, 1, 0, 0, 7, 0, time.UTC)}
		}
		return 200, l
	}).page("/upcoming?at=2020-01-01T00:00:30Z")
	if rows := strings.Count(many, `href="/tasks/7_1"`); rows != mostListed || !strings.Contains(many, "00:00:07.000 UTC · 201") || !strings.Contains(many, "Not all of them are shown.") {
		t.Errorf("of %d tasks %d are listed, want %d, with a note: %s", mostListed+1, rows, mostListed, many)
	}
	if a := v.get("/upcoming?at=2020-01-01T00:00:00Z"); a.status != 200 || !strings.Contains(a.body, "Nothing here.") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
