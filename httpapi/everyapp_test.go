package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"xtimer/engine"
)

// ends runs a timer of the node, and waits until its task has ended with a status.
func (n *clusterNode) ends(app, name, status string) (key string) {
	n.t.Helper()
	key = n.do("POST", "/v1/timers/"+n.timer(app, name, "")+"/run", "").want(202).str("key")
	until(n.t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").want(200).str("status") == status })
	return key
}

// What the console shows of apps and of failures is of all nodes, at any node.
func TestAppsAndFailuresOfACluster(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := newCluster(t, 3, func(call *engine.Call) engine.Outcome {
		switch {
		case strings.HasPrefix(call.Timer.Name, "slow"):
			<-release
		case strings.HasPrefix(call.Timer.Name, "bad"):
			return answers(410)(call)
		}
		return answers(200)(call)
	}, ServerConfig{Tokens: tokens()})
	defer close(release)
	appsOfACluster(t, c)
	failuresOfACluster(t, c)
}

// appsOfACluster: the apps are those of all nodes, in pages of any node, with the sums of
// their work.
func appsOfACluster(t *testing.T, c *testCluster) {
	for i, n := range c.n {
		n.token = "root"
		n.ends("a", fmt.Sprint("quick-", i), "succeeded")
		n.ends(fmt.Sprint("only-", i), "x", "succeeded")
		n.do("POST", "/v1/timers/"+n.timer("a", fmt.Sprint("slow-", i), "")+"/run", "").want(202)
	}
	a := c.n[0]
	until(t, func() bool {
		got := a.do("GET", "/v1/apps?app=a", "").want(200)
		return got.get("exact") == true && got.count("apps", 0, "in_flight") == 3
	})
	for _, n := range c.n {
		got := n.do("GET", "/v1/apps?app=a", "").want(200)
		if got.get("partial") != nil || got.get("next_cursor") != nil || len(got.get("apps").([]any)) != 1 {
			t.Error(got.body)
		}
		if got.count("apps", 0, "last_hour", "succeeded") != 3 || got.get("apps", 0, "last_hour", "success_rate") != 1.0 || got.get("apps", 0, "last_minute", "lateness_ms_p99") == nil {
			t.Error(got.body)
		}
		if len(got.get("apps", 0, "targets").([]any)) != 1 || got.count("apps", 0, "targets", 0, "attempts_ok") != 3 || got.count("apps", 0, "targets", 0, "in_flight") != 3 {
			t.Error(got.body)
		}
		n.token = "b-admin"
		if got := n.do("GET", "/v1/apps", "").want(200); strings.Contains(got.body, "only") || len(got.get("apps").([]any)) != 1 || got.count("apps", 0, "in_flight") != 0 {
			t.Error(got.body)
		}
		n.token = "root"
	}
	var names []string
	for i, cursor := 0, ""; i == 0 || cursor != ""; i++ {
		got := c.n[i%3].do("GET", "/v1/apps?limit=1"+cursor, "").want(200)
		names = append(names, got.str("apps", 0, "app"))
		if cursor = got.str("next_cursor"); cursor != "" {
			cursor = "&cursor=" + cursor
		}
	}
	if got := strings.Join(names, " "); got != "a b only-0 only-1 only-2" {
		t.Error(got)
	}
	a.setCut(true)
	defer a.setCut(false)
	if got := a.do("GET", "/v1/apps?app=a", "").want(200); got.get("partial") != true || got.count("apps", 0, "in_flight") != 1 {
		t.Error(got.body)
	}
}

// failuresOfACluster: the groups have the tasks that are in the memory of any node.
func failuresOfACluster(t *testing.T, c *testCluster) {
	keys := map[string]bool{}
	for i, n := range c.n {
		n.token = "root"
		for j := range 2 {
			keys[n.ends("a", fmt.Sprint("bad-", i, "-", j), "failed")] = true
		}
	}
	c.n[0].ends("b", "bad", "failed")
	for _, n := range c.n {
		n.token = "a-read"
		got := n.do("GET", "/v1/tasks/failures", "").want(200)
		if len(got.get("groups").([]any)) != 1 || got.get("partial") != false || got.count("groups", 0, "count") != len(keys) {
			t.Fatal(got.body)
		}
		for i := range got.get("groups", 0, "keys").([]any) {
			if !keys[got.str("groups", 0, "keys", i)] {
				t.Error(got.body)
			}
		}
		n.do("GET", "/v1/tasks/failures?status=succeeded", "").want(422)
	}
	c.n[0].setCut(true)
	if got := c.n[0].do("GET", "/v1/tasks/failures", "").want(200); got.get("partial") != true || got.count("groups", 0, "count") < 2 {
		t.Error(got.body)
	}
}
