package httpapi

import (
	"net/url"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// The clock of a node is an hour behind, and the engine goes by the right time: so do the answers.
func TestAnswersGoByTheTimeOfTheEngine(t *testing.T) {
	right := func() time.Time { return time.Now().Add(time.Hour) }
	e, open := builtEngineOn(t, answers(200), nil, func(c *scheduler.Config) { c.Now = right })
	open()
	n := serve(t, e, ServerConfig{})
	from := right().Add(-10 * time.Minute).UTC().Format(time.RFC3339)
	if got := n.do("GET", "/v1/admin/verify?from="+url.QueryEscape(from), ""); got.status != 200 {
		t.Errorf("verify of the last ten minutes: %d %s", got.status, got.body)
	}
	got := n.do("POST", "/v1/schedules/preview", `{"schedule":{"cron":"* * * * *"},"n":1}`).want(200)
	if due, err := time.Parse(time.RFC3339, got.str("dues", 0)); err != nil || due.Before(right()) {
		t.Errorf("the next due is %v, and it is %v: %v", due, right().UTC(), err)
	}
	late := right().Add(-30 * time.Minute).UTC().Format(time.RFC3339) // past
	if _, err := muteObjects.decode(n.s, engine.ObjectKey{App: "a", Name: "m"}, []byte(`{"until":"`+late+`"}`)); err == nil {
		t.Errorf("a mute that has ended %v ago is taken", 30*time.Minute)
	}
}

// The wall clocks of the nodes are an hour behind the time that they go by: a node signs its messages by that time.
func TestNodesSignByTheirTime(t *testing.T) {
	c := newCluster(t, 2, answers(200), ServerConfig{})
	for _, n := range c.n {
		n.ahead.Store(int64(time.Hour))
	}
	id := c.n[0].timer("a", "n", "")
	c.n[1].do("GET", "/v1/timers/"+id, "").want(200)
}
