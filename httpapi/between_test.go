package httpapi

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"

	"github.com/valyala/fasthttp"
)

// A node whose tokens are older (a rolling restart adds an app) answers the trend of that app.
func TestTrendOfAnAppWithoutTokens(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Tokens: tokens()})
	a := c.n[0]
	a.token = "a-read"
	c.cfg.Tokens = []access.Token{}
	for _, x := range tokens() {
		if x.App != "a" {
			c.cfg.Tokens = append(c.cfg.Tokens, x)
		}
	}
	old := c.idle()
	got := a.do("GET", "/v1/stats/trend", "").want(200)
	if n := old.s.stats.panics.Get(); n != 0 || got.get("partial") != nil {
		t.Errorf("%d panics at the other node: %s", n, got.body)
	}
}

// A node that lives and does not answer: lists do not wait for it for ever.
func TestDeafNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	b.address = gate(t, b.address, func() byte { return 'h' })
	begun := time.Now()
	got := make(chan answer, 1)
	go func() { got <- a.do("GET", "/v1/tasks", "") }()
	select {
	case x := <-got:
		t.Log(time.Since(begun), x.body)
	case <-time.After(45 * time.Second):
		t.Error("no answer of a list after 45 s")
		c.table.Leave(t.Context(), b.row.Life)
		t.Log((<-got).body)
	}
}

// A stream that begins while a node cannot be reached tells what ended there, or that it may lack it.
func TestStreamBeginsWithoutANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Heartbeat: 20 * time.Millisecond})
	a, b := c.n[0], c.n[1]
	id := b.timer("a", "x", "")
	var open atomic.Bool
	b.address = gate(t, b.address, func() byte {
		if open.Load() {
			return 'o'
		}
		return 'c'
	})
	lines, hang := a.events("/v1/tasks/stream?app=a")
	defer hang()
	time.Sleep(otherWait + time.Second) // the stream is open
	run := func() string {
		key := b.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
		until(t, func() bool { return b.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
		return key
	}
	first := run()
	time.Sleep(100 * time.Millisecond)
	open.Store(true)
	time.Sleep(2 * time.Second)
	second := run()
	seen := ""
	end := time.After(20 * time.Second)
	for !strings.Contains(seen, second) {
		select {
		case l := <-lines:
			if !strings.HasPrefix(l, ":") && l != "" {
				seen += l + "\n"
			}
		case <-end:
			t.Fatal("not even the second", seen)
		}
	}
	if !strings.Contains(seen, first) && !strings.Contains(seen, "gap") {
		t.Errorf("the stream has the task %s, and neither %s, which ended before it, nor a gap", second, first)
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

// The dues of one minute are not added to those of another.
func TestComingOfTwoMinutes(t *testing.T) {
	minute := int64(1800000000000) / 60000 * 60000
	c := inspect.Coming{Minute: minute}
	other := fmt.Sprintf(`{"minute":%q,"due_by_second":[7%s],"dues":[{"timer_id":"12","app":"a","due":%q}],"partial":false}`,
		time.UnixMilli(minute+60000).UTC().Format(time.RFC3339), strings.Repeat(",0", 59), time.UnixMilli(minute+60000).UTC().Format(time.RFC3339))
	whole := addComing(&c, nodeAnswer{Answer: nodes.Answer{Status: fasthttp.StatusOK, Body: []byte(other)}})
	if whole && (c.Seconds[0] != 0 || len(c.Dues) != 0) {
		t.Errorf("of minute %d, whole %v: %d in its first second, %v", c.Minute, whole, c.Seconds[0], c.Dues)
	}
}

// What is refused is refused at once.
func TestRefusedBulk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	begun := time.Now()
	c.n[0].do("POST", "/v1/timers/disable", `{"app":"b","until":1600000000000}`).want(422)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("422 after %v", took)
	}
}

// A task that was due long ago and has ended just now is in the lists of all nodes.
func TestLateTaskInLists(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	due := time.Now().Add(-2 * time.Minute).UnixMilli()
	bad := 0
	for i := range 5 {
		got := b.do("POST", "/v1/timers", fmt.Sprintf(`{"app":"a","name":"n-%d","schedule":{"at":%d},"callback":{"url":"http://127.0.0.1:9/x"}}`, i, due)).want(201)
		id := got.str("id")
		path := "/v1/tasks?status=succeeded&timer_id=" + id + "&to=" + strconv.FormatInt(due+1000, 10)
		deadline := time.Now().Add(5 * time.Second)
		for len(b.do("GET", path, "").want(200).get("tasks").([]any)) == 0 {
			if time.Now().After(deadline) {
				t.Skip("it is not called: " + got.body + b.do("GET", "/v1/tasks?timer_id="+id, "").body)
			}
			time.Sleep(time.Millisecond)
		}
		if x := a.do("GET", path, "").want(200); len(x.get("tasks").([]any)) == 0 && x.get("partial") == nil {
			bad++
			t.Log("node a:", x.body)
		}
	}
	if bad > 0 {
		t.Errorf("%d of 5 tasks, which the owner lists, are not in the list of the other node", bad)
	}
}

// gate is a way to an address that is open ('o'), closed ('c'), or hangs ('h').
func gate(t *testing.T, to string, how func() byte) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []net.Conn
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			c.Close()
		}
	})
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
			switch how() {
			case 'c':
				c.Close()
			case 'o':
				d, err := net.Dial("tcp", to)
				if err != nil {
					c.Close()
					continue
				}
				go func() { io.Copy(d, c); d.Close() }()
				go func() { io.Copy(c, d); c.Close() }()
			}
		}
	}()
	return ln.Addr().String()
}

// The pages of what waits for a key have what moved to another node between two pages, or say that they lack it.
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
