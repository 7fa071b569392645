package httpapi

import (
	"strings"
	"testing"
)

// What a body says, or how long it is, does not decide what became of a task:
// its status does. engine/REGRESSIONS.md says why this is held.
func TestTheBodyDecidesNothing(t *testing.T) {
	for _, x := range []struct{ name, head, body, want string }{
		{"text", "200 OK", "ok", "succeeded"},
		{"nothing", "204 No Content", "", "succeeded"},
		{"long JSON", "200 OK", `{"a":"` + strings.Repeat("x", 100_000) + `"}`, "succeeded"},
		{"a failure in JSON", "200 OK", `{"error":"no"}`, "succeeded"},
		{"JSON of a 400", "400 Bad Request", `{"ok":true}`, "failed"},
		{"JSON of a 500", "500 Internal Server Error", `{"ok":true}`, "dead"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := listen(t, nil, func(s *session) {
				for s.request() && s.say("HTTP/1.1 "+x.head+"\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"+x.body) {
					return
				}
			})
			n := serve(t, newEngine(t, newCallback(t, CallbackConfig{}).Call, nil), ServerConfig{})
			id := n.do("POST", "/v1/timers", `{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"`+p.url+`"},"retry":{"max_attempts":1}}`).want(201).str("id")
			key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
			until(t, func() bool {
				got := n.do("GET", "/v1/tasks/"+key, "")
				return got.status == 200 && got.get("ended") != nil
			})
			got := n.do("GET", "/v1/tasks/"+key, "").want(200)
			response := got.str("attempts", 0, "response")
			if got.str("status") != x.want || !strings.HasPrefix(x.body, response) || len(response) > maxResponse || x.body != "" && response == "" {
				t.Errorf("%s, want %s: %.300s", got.str("status"), x.want, got.body)
			}
		})
	}
}
