package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/engine/object"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/tier/memory"
)

// A bulk operation works on the timers of all nodes, and each node tells of all of it.
func TestBulkInACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(400), ServerConfig{Tokens: tokens()})
	for _, n := range c.n {
		n.token = "root"
	}
	var ids []string
	for i := range 30 {
		ids = append(ids, c.n[i%3].timer("a", fmt.Sprint("n-", i), ""))
	}
	c.n[0].timer("b", "other", "")
	node := c.n[1]
	bulk := func(path, body string, count, failed int) (id string) {
		t.Helper()
		op := node.do("POST", path, body).want(200)
		if op.count("count") != count || op.count("failed") != failed || op.get("ended") != true || op.get("partial") != nil {
			t.Errorf("%s %s: %s", path, body, op.body)
		}
		if op.get("dry_run") == true {
			return ""
		}
		if op.count("done") != count {
			t.Errorf("%s %s: %s", path, body, op.body)
		}
		for _, n := range c.n {
			if got := n.do("GET", "/v1/operations/"+op.str("id"), "").want(200); got.count("count") != count || got.count("done") != count || got.str("id") != op.str("id") || got.get("partial") != nil {
				t.Errorf("%s\n\tas node %s tells: %s", op.body, n.row.Name, got.body)
			}
		}
		return op.str("id")
	}
	bulk("/v1/timers/disable", `{"app":"a","dry_run":true}`, 30, 0)
	id := bulk("/v1/timers/disable?app=a", `{"reason":"r"}`, 30, 0)
	for i, id := range ids {
		if got := c.n[(i+1)%3].do("GET", "/v1/timers/"+id, "").want(200); got.str("status") != "disabled" || got.str("reason") != "r" {
			t.Error(got.body)
		}
	}
	node.token = "b-admin"
	node.do("GET", "/v1/operations/"+id, "").want(404)
	node.do("GET", "/v1/operations/7", "").want(404)
	node.token = "a-write"
	bulk("/v1/timers/enable", `{"all":true}`, 30, 0)
	node.token = "root"
	for _, id := range ids {
		key := node.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
		until(t, func() bool { return node.do("GET", "/v1/tasks/"+key, "").want(200).str("status") == "failed" })
	}
	bulk("/v1/tasks/retry", `{"app":"a"}`, 30, 0)
	bulk("/v1/timers/delete", `{"app":"a"}`, 30, 0)
	if got := node.do("GET", "/v1/timers", "").want(200); got.str("timers", 0, "name") != "other" || len(got.get("timers").([]any)) != 1 {
		t.Error(got.body)
	}
	bulk("/v1/system/clock/reset?dry_run=true", "", 0, 0)
	node.do("POST", "/v1/timers/disable", `{"app":"b","until":1600000000000}`).want(422)
}

// An operation that does not reach a node says so; what it reaches it does.
func TestBulkWithoutANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	mine, other := a.timer("a", "mine", ""), b.timer("a", "other", "")
	a.setCut(true)
	begun := time.Now()
	op := a.do("POST", "/v1/timers/disable?app=a", "").want(200)
	if op.count("count") != 1 || op.get("partial") != true || op.str("error") == "" || time.Since(begun) < ownerWait {
		t.Error(op.body)
	}
	if got := a.do("GET", "/v1/operations/"+op.str("id"), "").want(200); got.count("count") != 1 || got.get("partial") != true {
		t.Error(got.body)
	}
	if got := a.do("GET", "/v1/timers/"+mine, ""); got.str("status") != "disabled" {
		t.Error(got.body)
	}
	if got := b.do("GET", "/v1/timers/"+other, ""); got.str("status") != "enabled" {
		t.Error(got.body)
	}
	time.AfterFunc(time.Second, func() { a.setCut(false) })
	if op = a.do("POST", "/v1/timers/delete?app=a", "").want(200); op.count("count") != 2 || op.get("partial") != nil {
		t.Error(op.body)
	}
}

// Each node tells of all nodes, and of the owner of each shard.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{Tokens: tokens()})
	for i, n := range c.n {
		n.token = "a-admin"
		n.do("GET", "/v1/cluster", "").want(403)
		n.token = "all-read"
		got := n.do("GET", "/v1/cluster", "").want(200)
		if got.str("node") != n.row.Name || got.get("cluster") != true || len(got.get("nodes").([]any)) != 3 || len(got.get("shards").([]any)) != engine.Shards {
			t.Error(got.body)
		}
		for j, x := range c.n {
			if got.str("nodes", j, "name") != x.row.Name || got.str("nodes", j, "address") != x.address || got.str("nodes", j, "state") != "serving" ||
				got.count("nodes", j, "weight") != 1000 || got.count("nodes", j, "shards") < engine.Shards/3 || got.str("shards", 240+j) != x.row.Name {
				t.Errorf("node %d of %s", j, got.body)
			}
		}
		if got.count("lease_ms") != 1800 || got.get("lease_too_short") != false {
			t.Error(got.body)
		}
		if got.str("moves", 0, "how") != "start" || got.str("moves", 0, "to") == "" || len(got.get("moves", 0, "shards").([]any)) == 0 {
			t.Errorf("moves of %s", got.body)
		}
		if i > 0 {
			continue
		}
		n.slowest = 900 * time.Millisecond
		if got := n.do("GET", "/v1/cluster", "").want(200); got.count("slowest_beat_ms") != 900 || got.get("lease_too_short") != true {
			t.Error(got.body)
		}
		n.tell(func(int) (nodes.Node, bool) { return nodes.Node{}, false })
		if got := n.do("GET", "/v1/cluster", "").want(200); got.str("shards", 0) != "" {
			t.Error(got.body)
		}
	}
	if got := newNode(t).do("GET", "/v1/cluster", "").want(200); got.get("cluster") != false || len(got.get("nodes").([]any))+len(got.get("moves").([]any)) != 0 {
		t.Error(got.body)
	}
}

// Any node takes what is wished of another one, which does it; nobody may ask the last node
// that serves for its shards.
func TestNodeIsAsked(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{Tokens: tokens()})
	a := c.n[0]
	const drain, evict = "/v1/cluster/nodes/node-1/drain", "/v1/cluster/nodes/node-1/evict"
	for token, status := range map[string]int{"a-admin": 403, "all-read": 403, "": 401} {
		a.token = token
		for _, path := range []string{drain, evict} {
			a.do("POST", path, "").want(status)
		}
		a.do("DELETE", drain, "").want(status)
	}
	a.token = "root"
	owned := func(i int) int { return a.do("GET", "/v1/cluster", "").want(200).count("nodes", i, "shards") }
	a.do("POST", drain, `{"x":1}`).want(400)
	for _, path := range []string{"/v1/cluster/nodes/other/drain", "/v1/cluster/nodes/other/evict"} {
		if got := a.do("POST", path, "").want(404); got.str("detail") != "no node other has a process: GET /v1/cluster lists the nodes" {
			t.Error(got.body)
		}
	}
	if got := a.do("POST", drain, "").want(200); got.str("name") != "node-1" || got.str("wish") != "drain" {
		t.Error(got.body)
	}
	until(t, func() bool { return owned(1) == 0 })
	if got := a.do("POST", "/v1/cluster/nodes/node-2/drain", "").want(200); got.str("wish") != "drain" {
		t.Error(got.body)
	}
	until(t, func() bool { return owned(0) == engine.Shards })
	for _, path := range []string{"/v1/cluster/nodes/node-0/drain", "/v1/cluster/nodes/node-0/evict"} {
		if got := a.do("POST", path, "").want(409); got.str("code") != "no_other_node" {
			t.Error(got.body)
		}
	}
	if got := a.do("DELETE", drain, "").want(200); got.str("wish") != "serve" {
		t.Error(got.body)
	}
	until(t, func() bool { return owned(1) == engine.Shards/2 })
	a.do("POST", evict, "").want(200)
	until(t, func() bool {
		return len(a.do("GET", "/v1/cluster", "").want(200).get("nodes").([]any)) == 2 && owned(0) == engine.Shards
	})
	a.do("POST", evict, "").want(404)
}

// A list of tasks has at each node those that any node has in memory, in one order.
func TestTasksInACluster(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := newCluster(t, 3, func(call *engine.Call) engine.Outcome {
		if call.Timer.Name != "quick" {
			<-release
		}
		return answers(200)(call)
	}, ServerConfig{Tokens: tokens()})
	defer sync.OnceFunc(func() { close(release) })()
	for _, n := range c.n {
		n.token = "root"
	}
	quick := c.n[0].timer("a", "quick", "")
	var want []string
	for i := range 9 {
		n := c.n[i%3]
		want = append(want, n.do("POST", "/v1/timers/"+n.timer("a", fmt.Sprint("slow-", i), "")+"/run", "").want(202).str("key"))
		if i%4 == 3 {
			key := n.do("POST", "/v1/timers/"+quick+"/run", "").want(202).str("key")
			until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").want(200).str("status") == "succeeded" })
			want = append(want, key)
		}
	}
	other := c.n[1].timer("b", "other", "")
	c.n[1].do("POST", "/v1/timers/"+other+"/run", "").want(202)
	slices.SortFunc(want, func(a, b string) int {
		x, _ := engine.ParseKey(a)
		y, _ := engine.ParseKey(b)
		return y.Compare(x)
	})
	if got := c.n[2].do("GET", "/v1/tasks?status=waiting&limit=20", "").want(200); len(got.get("tasks").([]any)) != 10 {
		t.Error(got.body)
	}
	for i := range c.n {
		var got []string
		for cursor := ""; ; {
			n := c.n[(i+len(got))%3] // each page of another node
			n.token = "a-read"
			page := n.do("GET", "/v1/tasks?limit=4"+cursor, "").want(200)
			if page.get("partial") != nil {
				t.Errorf("%s", page.body)
			}
			for j := range page.get("tasks").([]any) {
				got = append(got, page.str("tasks", j, "key"))
				if is := page.str("tasks", j, "status"); is != "waiting" && is != "succeeded" {
					t.Errorf("status %s", is)
				}
			}
			if cursor = page.str("next_cursor"); cursor == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(cursor)
		}
		if !slices.Equal(got, want) {
			t.Errorf("node %d lists %v, want %v", i, got, want)
		}
	}
	a := c.n[0]
	a.token = "root"
	if got := a.do("GET", "/v1/tasks?timer_id="+other, "").want(200); got.str("tasks", 0, "status") != "waiting" {
		t.Error(got.body)
	}
	a.setCut(true)
	if got := a.do("GET", "/v1/tasks?status=waiting", "").want(200); got.get("partial") != true || len(got.get("tasks").([]any)) != 3 {
		t.Error(got.body)
	}
}

// TestTrendOfACluster: the minutes are those of all nodes, also of one that started earlier.
func TestTrendOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	ends := func(n *clusterNode) {
		key := n.do("POST", "/v1/timers/"+n.timer("a", fmt.Sprint("n", time.Now().UnixNano()), "")+"/run", "").want(202).str("key")
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
	}
	ends(b)
	for range 2 {
		b.s.trends[access.AllApps].take(b.e)
	}
	ends(a)
	ends(b)
	for _, n := range c.n {
		got := n.do("GET", "/v1/stats/trend", "").want(200)
		if len(got.get("minutes").([]any)) != 3 || got.get("partial") != nil {
			t.Fatal(string(got.body))
		}
		for i, want := range []int{1, 0, 2} {
			if n := got.count("minutes", i, "ended"); n != want || strings.HasPrefix(got.str("minutes", i, "end"), "1970") {
				t.Errorf("%d tasks ended in minute %d, want %d: %s", n, i, want, got.body)
			}
		}
	}
	a.setCut(true)
	if got := a.do("GET", "/v1/stats/trend?minutes=1", "").want(200); got.get("partial") != true || got.count("minutes", 0, "ended") != 1 {
		t.Error(string(got.body))
	}
}

// The figures are the sums of those of all nodes.
func TestStatsOfACluster(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := newCluster(t, 2, func(call *engine.Call) engine.Outcome {
		if call.Timer.Name != "quick" {
			<-release
		}
		return answers(200)(call)
	}, ServerConfig{Tokens: tokens()})
	defer close(release)
	a, b := c.n[0], c.n[1]
	a.token, b.token = "root", "root"
	for i, n := range c.n {
		for j := range 2 + i {
			n.do("POST", "/v1/timers/"+n.timer("a", fmt.Sprint("slow-", i, j), "")+"/run", "").want(202)
		}
		id := n.timer("b", "quick", "")
		key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
		n.do("DELETE", "/v1/timers/"+id, "").want(200)
	}
	for _, n := range c.n {
		for token, open := range map[string]int{"root": 5, "a-read": 5, "b-admin": 0} {
			n.token = token
			got := n.do("GET", "/v1/stats", "").want(200)
			if got.count("tasks", "open") != open || got.get("partial") != nil {
				t.Errorf("%s: %s", token, got.body)
			}
			if token == "root" && (got.count("tasks", "since_start", "succeeded") != 2 || got.count("timers", "enabled") != 5) {
				t.Error(got.body)
			}
		}
	}
	a.token = "root"
	a.setCut(true)
	if got := a.do("GET", "/v1/stats", "").want(200); got.count("tasks", "open") != 2 || got.get("partial") != true {
		t.Error(got.body)
	}
}

// A minute has the dues of all nodes, in their order.
func TestUpcomingOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{})
	at := time.Now().Add(25 * time.Second).Truncate(time.Minute).Add(time.Minute) // or some may be in another minute
	until(t, func() bool {
		return c.n[0].do("GET", fmt.Sprint("/v1/upcoming?at=", at.UnixMilli()), "").want(200).get("partial") == false
	})
	for i := range 9 {
		due := at.Add(time.Duration(30-i) * time.Second).UnixMilli()
		c.n[i%3].do("POST", "/v1/timers", fmt.Sprintf(`{"app":"a","name":"n-%d","schedule":{"at":%d},"callback":{"url":"http://127.0.0.1:9/x"}}`, i, due)).want(201)
	}
	path := fmt.Sprint("/v1/upcoming?at=", at.UnixMilli())
	for _, n := range c.n {
		got := n.do("GET", path, "").want(200)
		for i := range 9 {
			if got.str("dues", i, "name") != fmt.Sprint("n-", 8-i) || got.count("due_by_second", 22+i) != 1 {
				t.Fatal(got.body)
			}
		}
		if got = n.do("GET", path+"&limit=4", "").want(200); len(got.get("dues").([]any)) != 4 || got.str("dues", 3, "name") != "n-5" || got.get("partial") != true {
			t.Error(got.body)
		}
	}
	c.n[0].setCut(true)
	if got := c.n[0].do("GET", path, "").want(200); got.get("partial") != true {
		t.Error(got.body)
	}
}

// The node that judges is told the states of each other node, and nobody else is.
func TestNodesTellTheJudge(t *testing.T) {
	t.Parallel()
	cold := memory.NewCold()
	log := slog.New(slog.DiscardHandler)
	a := alert.New(alert.Config{
		Objects: object.New(cold, time.Now, log), Cold: cold, Log: log, Metrics: metrics.NewSet(),
		States: func() []alert.State { return []alert.State{{Word: "backlog", App: "shop", Of: "shop", N: 7}} },
	})
	c := newCluster(t, 3, answers(200), ServerConfig{Alerts: a})
	resp, err := http.Post("http://"+c.n[0].address+nodes.AlertsPath, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 403 {
		t.Errorf("a client is answered with status %d", resp.StatusCode)
	}
	got := c.n[0].s.askAlerts(t.Context(), []byte(`{"watched":[5]}`))
	if len(got) != 2 || !strings.Contains(string(got["node-1"]), `"N":7`) || !strings.Contains(string(got["node-2"]), `"N":7`) {
		t.Errorf("%s", got)
	}
	if got := c.n[0].s.askAlerts(t.Context(), []byte(`[]`)); len(got) != 2 || got["node-1"] != nil {
		t.Errorf("a message that is none is answered: %s", got)
	}
	c.n[0].setCut(true)
	if got := c.n[0].s.askAlerts(t.Context(), []byte(`{}`)); len(got) != 2 || got["node-1"] != nil || got["node-2"] != nil {
		t.Errorf("nodes that are not reached: %s", got)
	}
}
