package console

import (
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
	for _, q := range []string{"nonsense", "2020-01-01T00:00:00Z"} {
		if a := v.get("/upcoming?at=" + q); a.status != 400 && a.status != 422 {
			t.Errorf("%s: %d", q, a.status)
		}
	}
}
