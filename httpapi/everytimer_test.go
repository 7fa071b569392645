package httpapi

import (
	"fmt"
	"sync"
	"testing"

	"xtimer/engine"
)

// A list of timers has at each node the status and the last task of each timer as its owner
// tells them, also while the task is in the memory of the owner only.
func TestTimersInACluster(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := newCluster(t, 3, func(call *engine.Call) engine.Outcome {
		<-release
		return answers(200)(call)
	}, ServerConfig{Tokens: tokens()})
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	for i := range 6 {
		n := c.n[i%3]
		n.token = "root"
		n.do("POST", "/v1/timers", fmt.Sprintf(`{"app":"a","name":"n-%d","schedule":{"delay":"1ms"},"callback":{"url":"http://127.0.0.1:9/x"}}`, i)).want(201)
	}
	list := func(n *clusterNode, query, status, last string) (same bool) {
		got := n.do("GET", "/v1/timers?"+query, "").want(200)
		all := got.get("timers").([]any)
		if got.get("partial") != nil {
			t.Errorf("node %s: %s", n.row.Name, got.body)
		}
		for i := range all {
			if got.str("timers", i, "status") != status || last != "" && (got.get("timers", i, "last_task") == nil || got.str("timers", i, "last_task", "status") != last) {
				return false
			}
		}
		return len(all) == 6
	}
	for _, n := range c.n {
		n.token = "a-read"
		until(t, func() bool { return list(n, "last_task=true", "enabled", "waiting") })
		if !list(n, "", "enabled", "") || !list(n, "status=enabled", "enabled", "") || !list(n, "status=enabled&q=n-&last_task=true", "enabled", "waiting") {
			t.Errorf("node %s lists other timers", n.row.Name)
		}
		for status, want := range map[string]int{"enabled": 6, "finished": 0} {
			got := n.do("GET", "/v1/timers?limit=2&total=true&status="+status, "").want(200)
			if got.count("total", "count") != want || len(got.get("timers").([]any)) != min(want, 2) {
				t.Errorf("node %s: %s", n.row.Name, got.body)
			}
		}
	}
	a := c.n[0]
	page := a.do("GET", "/v1/timers", "").want(200)
	for i := range 6 {
		if got := a.do("GET", "/v1/timers/"+page.str("timers", i, "id")+"/versions", "").want(200); got.str("versions", 0, "status") != "enabled" {
			t.Error(got.body)
		}
	}
	a.setCut(true)
	if got := a.do("GET", "/v1/timers?last_task=true", "").want(200); got.get("partial") != true || len(got.get("timers").([]any)) != 6 {
		t.Error(got.body)
	}
	a.setCut(false)
	let()
	for _, n := range c.n {
		until(t, func() bool {
			return list(n, "last_task=true", "finished", "succeeded") && list(n, "status=finished", "finished", "")
		})
	}
}
