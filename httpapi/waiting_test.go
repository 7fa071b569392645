package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// waitFor has so many one-shots of app a wait for key k, and returns when the list has all.
func waitFor(t *testing.T, n int, on func(i int) *testNode) {
	t.Helper()
	for i := range n {
		on(i).do("POST", "/v1/timers", fmt.Sprintf(`{"app":"a","name":"n-%d","flow":["k"],"schedule":{"delay":"1ms"},"callback":{"url":"http://127.0.0.1:9/x"}}`, i)).want(201)
	}
	until(t, func() bool { return len(listWaiting(on(0), 1000)) == n })
}

// listWaiting is the names of all that waits for the key, as the pages of a node have them.
func listWaiting(n *testNode, limit int) (names []string) {
	path := fmt.Sprint("/v1/apps/a/flows/k/waiting?limit=", limit)
	for cursor := ""; ; {
		a := n.do("GET", path+cursor, "").want(200)
		for i := range a.get("tasks").([]any) {
			names = append(names, a.str("tasks", i, "name"))
		}
		if a.get("next_cursor") == nil {
			return names
		}
		cursor = "&cursor=" + a.str("next_cursor")
	}
}

// isAbout reports whether two instants differ by no more than the rounding of clocks.
func isAbout(a, b string) bool {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	return errX == nil && errY == nil && x.Sub(y).Abs() < 100*time.Millisecond
}

// The pages of what waits for a flow key have each task once, with what holds it. They are for
// those who may read the app.
func TestWaiting(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	const flow, path = "/v1/apps/a/flows/k", "/v1/apps/a/flows/k/waiting"
	n.token = "a-write"
	n.do("POST", flow+"/pause", `{"until":"2099-01-01T00:00:00Z"}`).want(200)
	n.do("PUT", flow, `{"rate":1,"per":"1h"}`).want(200)
	waitFor(t, 25, func(int) *testNode { return n })
	had := map[string]bool{}
	for i, name := range listWaiting(n, 10) {
		if had[name] = true; name != fmt.Sprint("n-", i) {
			t.Errorf("entry %d is of %s", i, name)
		}
	}
	if len(had) != 25 {
		t.Errorf("%d tasks", len(had))
	}
	a := n.do("GET", path+"?limit=3", "").want(200)
	if a.str("tasks", 0, "reason") != "pause k" || a.str("tasks", 0, "status") != "waiting" || a.get("tasks", 0, "held_ms") == nil || !isAbout(a.str("tasks", 2, "next_attempt"), "2099-01-01T02:00:00Z") {
		t.Error(a.body)
	}
	stands := n.do("GET", flow, "").want(200) // a call an hour from 2099 on, and 25 wait
	wait, err := time.ParseDuration(stands.str("wait_estimate"))
	if next := time.Now().Add(wait).Format(time.RFC3339Nano); err != nil || stands.count("waiting") != 25 || !isAbout(stands.str("next_at"), "2099-01-01T00:00:00Z") || !isAbout(next, "2099-01-02T01:00:00Z") {
		t.Errorf("%v in %s", err, stands.body)
	}
	if one := n.do("GET", "/v1/tasks/"+a.str("tasks", 2, "key"), "").want(200); !isAbout(one.str("next_attempt"), "2099-01-01T02:00:00Z") {
		t.Error(one.body)
	}
	if list := n.do("GET", "/v1/tasks?app=a&q=n-2", "").want(200); len(list.get("tasks").([]any)) != 6 {
		t.Error(list.body)
	} else {
		for i := range 6 { // n-24 … n-20, n-2: newest first
			if list.str("tasks", i, "name") == "n-2" && (list.str("tasks", i, "reason") != "pause k" || list.get("tasks", i, "held_ms") == nil || !isAbout(list.str("tasks", i, "next_attempt"), "2099-01-01T02:00:00Z")) {
				t.Error(list.body)
			}
		}
	}
	if list := n.do("GET", "/v1/timers?app=a&q=n-2&last_task=true&limit=1", "").want(200); list.str("timers", 0, "last_task", "reason") != "pause k" || list.get("timers", 0, "last_task", "next_attempt") == nil {
		t.Error(list.body)
	}
	next := "?cursor=" + a.str("next_cursor")
	n.do("GET", "/v1/apps/a/flows/other/waiting"+next, "").want(400)
	n.do("GET", path+"?cursor=x", "").want(400)
	n.do("GET", path+"?limit=1001", "").want(400)
	n.do("GET", "/v1/apps/a/flows/k%2A/waiting", "").want(422)
	if a := n.do("GET", "/v1/apps/a/flows/other/waiting", "").want(200); a.body != `{"tasks":[]}` {
		t.Error(a.body)
	}
	n.token = "a-read"
	n.do("GET", path, "").want(200)
	n.token = "b-admin"
	if none, other := n.do("GET", path, "").want(403), n.do("GET", strings.Replace(path, "/a/", "/none/", 1), "").want(403); none.body != other.body {
		t.Errorf("%s, but %s", none.body, other.body)
	}
	n.token = "all-read"
	n.do("GET", path+next, "").want(400) // issued to another token's app
	n.do("GET", path, "").want(200)
}

// Any node lists what waits for a key at all nodes together.
func TestWaitingAtAllNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{})
	for _, n := range c.n { // a pause is in force at once on the node that the request is made at
		n.do("POST", "/v1/apps/a/flows/k/pause", "").want(200)
	}
	waitFor(t, 30, func(i int) *testNode { return c.n[i%3].testNode })
	for _, n := range c.n {
		had := map[string]bool{}
		for _, name := range listWaiting(n.testNode, 7) {
			had[name] = true
		}
		if all := listWaiting(n.testNode, 7); len(had) != 30 || len(all) != 30 {
			t.Errorf("%d tasks in %d entries", len(had), len(all))
		}
	}
	held := c.n[1].do("GET", "/v1/tasks?app=a", "").want(200)
	for i := range held.get("tasks").([]any) {
		if held.str("tasks", i, "reason") != "pause k" || held.get("tasks", i, "held_ms") == nil {
			t.Error(held.body)
		}
	}
	c.n[0].setCut(true)
	if a := c.n[0].do("GET", "/v1/apps/a/flows/k/waiting", "").want(200); a.get("partial") != true || len(a.get("tasks").([]any)) < 10 {
		t.Error(a.body)
	}
}

// The pages of what waits for a key have what moved to another node between two pages, or say that tasks may be missing.
func TestWaitingMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	for _, n := range c.n {
		n.do("POST", "/v1/apps/a/flows/k/pause", "").want(200)
	}
	a, b := c.n[0], c.n[1]
	waitFor(t, 30, func(int) *testNode { return a.testNode })
	had, partial, cursor := map[string]bool{}, false, ""
	for i := 0; i == 0 || cursor != ""; i++ {
		got := b.do("GET", "/v1/apps/a/flows/k/waiting?limit=7"+cursor, "").want(200)
		for i := range got.get("tasks").([]any) {
			had[got.str("tasks", i, "name")] = true
		}
		partial = partial || got.get("partial") == true
		if cursor = got.str("next_cursor"); cursor != "" {
			cursor = "&cursor=" + cursor
		}
		if i == 0 {
			a.do("POST", "/v1/cluster/nodes/node-0/drain", "")
			until(t, func() bool { return b.e.Owned() == engine.AllShards })
			until(t, func() bool { return len(listWaiting(b.testNode, 1000)) == 30 })
		}
	}
	if len(had) != 30 && !partial {
		t.Errorf("%d of 30 tasks, and nothing tells that some are missing", len(had))
	}
}
