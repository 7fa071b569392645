package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xtimer/httpapi/callback"
)

// What a body says, or how long it is, does not decide what became of a task:
// its status does. engine/REGRESSIONS.md says why this is held.
func TestTheBodyDecidesNothing(t *testing.T) {
	for _, x := range []struct {
		name       string
		status     int
		body, want string
	}{
		{"text", 200, "ok", "succeeded"},
		{"nothing", 204, "", "succeeded"},
		{"long JSON", 200, `{"a":"` + strings.Repeat("x", 100_000) + `"}`, "succeeded"},
		{"a failure in JSON", 200, `{"error":"no"}`, "succeeded"},
		{"JSON of a 400", 400, `{"ok":true}`, "failed"},
		{"JSON of a 500", 500, `{"ok":true}`, "dead"},
	} {
		t.Run(x.name, func(t *testing.T) {
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(x.status)
				_, _ = io.WriteString(w, x.body)
			}))
			t.Cleanup(target.Close)
			c, err := callback.New(callback.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			n := serve(t, newEngine(t, c.Call, nil), ServerConfig{})
			id := n.do("POST", "/v1/timers", `{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"`+target.URL+`"},"retry":{"max_attempts":1}}`).want(201).str("id")
			key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
			until(t, func() bool {
				got := n.do("GET", "/v1/tasks/"+key, "")
				return got.status == 200 && got.get("ended") != nil
			})
			got := n.do("GET", "/v1/tasks/"+key, "").want(200)
			response := got.str("attempts", 0, "response")
			if got.str("status") != x.want || !strings.HasPrefix(x.body, response) || len(response) > 1<<10 || x.body != "" && response == "" {
				t.Errorf("%s, want %s: %.300s", got.str("status"), x.want, got.body)
			}
		})
	}
}
