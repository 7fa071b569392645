package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/access"
	"xtimer/tier/servertest"
)

// A list waits for a node that lives and does not answer for answerWait, and says that its part is missing.
func TestDeafNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	way := servertest.NewProxy(t, b.address)
	way.Hang()
	b.address = way.Addr()
	if got := a.do("GET", "/v1/tasks", "").want(200); got.get("partial") != true {
		t.Error(got.body)
	}
}

// A bulk operation waits for such a node, too. The node does its part, of which its operation tells afterwards.
func TestBulkBesideADeafNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	b.timer("a", "n", "")
	way := servertest.NewProxy(t, b.address)
	b.address = way.Addr()
	way.SwallowReplies(true)
	op := a.do("POST", "/v1/timers/disable?app=a", "").want(202)
	if op.get("partial") != true || op.get("ended") != false || op.str("error") == "" {
		t.Error(op.body)
	}
	way.Heal()
	for _, n := range c.n {
		if got := n.do("GET", "/v1/operations/"+op.str("id"), "").want(200); got.count("done") != 1 || got.get("ended") != true || got.get("partial") != nil {
			t.Errorf("node %s: %s", n.row.Name, got.body)
		}
	}
}

// The progress of an operation of which a node's part is lost says so.
func TestOperationLosesAPart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{})
	for i := range 30 {
		c.n[i%3].timer("a", fmt.Sprint("n-", i), "")
	}
	c.n[0].timer("b", "alone", "")
	op := c.n[1].do("POST", "/v1/timers/disable?app=b", "").want(200)
	if got := c.n[2].do("GET", "/v1/operations/"+op.str("id"), "").want(200); got.count("count") != 1 || got.get("partial") != nil {
		t.Errorf("an operation that has something to do at one node: %s", got.body)
	}
	op = c.n[1].do("POST", "/v1/timers/disable?app=a", "").want(200)
	if err := c.table.Leave(t.Context(), c.n[0].row.Life); err != nil {
		t.Fatal(err)
	}
	got := c.n[1].do("GET", "/v1/operations/"+op.str("id"), "").want(200)
	if got.count("count") != 30 && got.get("partial") != true {
		t.Errorf("at first: %s\n\tthen: %s", op.body, got.body)
	}
}

// A bulk operation that all nodes refuse is not tried again until ownerWait is over.
func TestRefusedBulk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	begun := time.Now()
	c.n[0].do("POST", "/v1/timers/disable", `{"app":"b","until":1600000000000}`).want(422)
	if took := time.Since(begun); took >= ownerWait {
		t.Errorf("422 after %v", took)
	}
}

// A task that was due long ago and has ended just now is in the lists of all nodes.
func TestLateTaskInLists(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	due := time.Now().Add(-2 * time.Minute).UnixMilli()
	for i := range 5 {
		id := b.do("POST", "/v1/timers", fmt.Sprintf(`{"app":"a","name":"n-%d","schedule":{"at":%d},"callback":{"url":"http://127.0.0.1:9/x"}}`, i, due)).want(201).str("id")
		list := func(n *clusterNode) []any {
			return n.do("GET", fmt.Sprintf("/v1/tasks?status=succeeded&timer_id=%s&to=%d", id, due+1000), "").want(200).get("tasks").([]any)
		}
		until(t, func() bool { return len(list(b)) == 1 })
		if len(list(a)) != 1 {
			t.Errorf("the task of timer %s, which its owner lists, is not in the list of the other node", id)
		}
	}
}

// A batch at a node that has just given its last shard is not made: another node makes it.
func TestBatchWithoutShards(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	c.n[0].timer("a", "there", "")
	idle := c.idle()
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI(batchPath)
	ctx.Request.SetBodyString(`{"timers":[` + hourly("a", "x", "") + `]}`)
	r := request{http: &ctx, ctx: idle.s.work, Grant: access.Grant{App: access.AllApps, Role: access.RoleAdmin}}
	out, err := (*Server).createTimers(idle.s, &r) // respondOnce saw a shard, and then the last one went
	if err == nil {
		t.Errorf("the batch is answered, and not made elsewhere: %s", out.body.render(nil))
	}
}
