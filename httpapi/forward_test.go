package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
)

// Each request about a timer gets at each node the answer that it gets at the owner.
func TestAnyNodeAnswers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(400), ServerConfig{Tokens: tokens()})
	for _, n := range c.n {
		n.token = "root"
	}
	for i := range 3 {
		owner, other := c.n[i], c.n[(i+1)%3]
		name := fmt.Sprint("50%/off 🎁 ", i)
		path := "/v1/apps/a/timers/50%25%2Foff%20%F0%9F%8E%81%20" + fmt.Sprint(i)
		id := owner.timer("a", name, "")
		byID := "/v1/timers/" + id
		same := func(got answer, etag string) {
			t.Helper()
			if want := owner.do("GET", byID, ""); got.str("id") != id || got.body != want.body || got.header["Etag"] != etag || got.header["Content-Type"] != want.header["Content-Type"] {
				t.Errorf("%v %s\n\tthe owner: %v %s", got.header, got.body, want.header, want.body)
			}
		}
		same(other.do("GET", byID, "").want(200), `"1"`)
		same(other.do("GET", path, "").want(200), `"1"`)
		if head := other.do("HEAD", byID, "").want(200); head.body != "" || head.header["Etag"] != `"1"` {
			t.Errorf("HEAD: %v %q", head.header, head.body)
		}
		other.do("GET", byID, "", "If-None-Match", `"1"`).want(304)
		other.do("GET", byID+"/upcoming?n=3", "").want(200)
		same(other.do("PATCH", byID, `{"priority":9}`, "If-Match", `"1"`).want(200), `"2"`)
		other.do("PATCH", byID, `{"priority":8}`, "If-Match", `"1"`).want(412)
		other.do("PATCH", byID, `{"priority":8}`, "If-Match", `"1"`, "If-Match", `"3"`).want(412)
		same(other.do("PATCH", byID, `{"priority":9}`, "If-Match", `"1"`, "If-Match", `"2"`).want(200), `"2"`)
		other.do("GET", byID, "", "If-None-Match", `"1"`, "If-None-Match", `"2"`).want(304)
		other.do("PATCH", byID, `{"priority":8`).want(400)
		same(other.do("POST", byID+"/disable", `{"reason":"r"}`).want(200), `"3"`)
		same(other.do("POST", byID+"/enable", "").want(200), `"4"`)
		body := fmt.Sprintf(`{"schedule":{"every":"2h"},"callback":{"url":"http://127.0.0.1:9/x","body_text":%q}}`, strings.Repeat("x", 100<<10))
		if put := other.do("PUT", path, body, "If-Match", `"4"`).want(200); put.str("result") != "updated" || put.header["Etag"] != `"5"` || put.header["Location"] != byID {
			t.Error(put.header, put.body)
		}
		if put := other.do("PUT", path, body).want(200); put.str("result") != "unchanged" {
			t.Error(put.body)
		}
		if put := other.do("PUT", path+"?dry_run=true", hourly("a", name, "")).want(200); put.str("result") != "updated" {
			t.Error(put.body)
		}
		key := other.do("POST", byID+"/run", "").want(202).str("key")
		until(t, func() bool { return other.do("GET", "/v1/tasks/"+key, "").want(200).str("status") == "failed" })
		other.do("POST", "/v1/tasks/"+key+"/retry", "").want(202)
		until(t, func() bool { return other.do("GET", "/v1/tasks/"+key, "").want(200).str("status") == "failed" })
		if got := other.do("POST", "/v1/tasks/"+key+"/dismiss", "").want(200); got.str("dismissed_by") != "admin token of all apps" {
			t.Error(got.body)
		}

		other.token = "b-admin"
		other.do("GET", byID, "").want(404)
		other.do("GET", path, "").want(404)
		other.do("POST", byID+"/run", "").want(404)
		other.do("GET", "/v1/tasks/"+key, "").want(404)
		other.token = "a-read"
		other.do("GET", byID, "").want(200)
		other.do("DELETE", byID, "").want(403)
		other.token = "a-write"
		if got := other.do("DELETE", path, "", "If-Match", `"5"`).want(200); got.str("result") != "cancelled" {
			t.Error(got.body)
		}
		other.do("GET", byID, "").want(404)
		owner.do("GET", byID, "").want(404)
		other.token = "root"
		if got := other.do("GET", byID+"/versions", "").want(200); got.str("versions", 0, "updated_by") != "admin token of all apps" {
			t.Error(got.body)
		}
		if n := owner.s.stats.forwarded.answered.Get(); i == 0 && n != 0 {
			t.Errorf("the owner has asked %d times", n)
		}
	}
}

// A create is made where it arrives, whatever node has a timer of its name, or its
// Idempotency-Key.
func TestCreatesInACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	a.timer("a", "n", "")
	b.do("POST", "/v1/timers", hourly("a", "n", "")).want(200)
	b.do("POST", "/v1/timers", hourly("a", "n", `,"priority":1`)).want(409)
	b.do("PUT", "/v1/apps/a/timers/n", hourly("a", "n", ""), "If-None-Match", "*").want(412)
	first := a.do("POST", "/v1/timers", hourly("a", "once", ""), "Idempotency-Key", "k").want(201)
	again := b.do("POST", "/v1/timers", hourly("a", "once", ""), "Idempotency-Key", "k").want(201)
	if first.str("id") != again.str("id") || again.header["Idempotency-Replayed"] != "true" {
		t.Error(again.header, again.body)
	}
	id := b.do("PUT", "/v1/apps/a/timers/put", hourly("a", "put", "")).want(201).str("timer", "id")
	if parsed, err := engine.ParseTimerID(id); err != nil || !b.e.Owned().Has(parsed.Shard()) {
		t.Errorf("a PUT made the timer %s elsewhere: %v", id, err)
	}
}

// A node without shards has another one create.
func TestNodeWithoutShards(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Tokens: tokens()})
	a := c.n[0]
	a.token = "root"
	a.timer("a", "there", "")
	idle := c.idle()
	idle.token = "root"
	first := idle.do("POST", "/v1/timers", hourly("a", "n", ""), "Idempotency-Key", "k").want(201)
	if again := idle.do("POST", "/v1/timers", hourly("a", "n", ""), "Idempotency-Key", "k").want(201); again.str("id") != first.str("id") || again.header["Idempotency-Replayed"] != "true" {
		t.Error(again.header, again.body)
	}
	idle.do("PUT", "/v1/apps/a/timers/put", hourly("a", "put", "")).want(201)
	idle.do("GET", "/v1/apps/a/timers/there", "").want(200)
	var batch []string
	for i := range 999 {
		batch = append(batch, hourly("a", fmt.Sprint("batch-", i), ""))
	}
	made := idle.do("POST", batchPath, `{"timers":[`+strings.Join(batch, ",")+`]}`).want(200)
	if n := strings.Count(made.body, `{"status":201,`); n != 999 {
		t.Errorf("%d timers were made: %.300s", n, made.body)
	}
}

// A node that has lost a shard says so to the node that asks, which asks the next.
func TestOwnerMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	id := b.timer("a", "n", "")
	var asked atomic.Int64
	a.tell(func(shard int) (nodes.Node, bool) {
		switch asked.Add(1) {
		case 1: // the life that owned it before
			x, ok := a.holder((shard + 1) % 3)
			return x, ok
		case 2:
			return nodes.Node{}, false
		}
		return a.holder(shard)
	})
	a.do("POST", "/v1/timers/"+id+"/run", "").want(202)
	if n := a.s.stats.forwarded.moved.Get(); n != 1 || asked.Load() != 3 {
		t.Errorf("%d nodes had lost it, after %d looks", n, asked.Load())
	}
}

// When no node has a timer, or its node does not answer, a request is refused after 4 s.
func TestNoOwnerAnswers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	id := b.timer("a", "n", "")
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for code, told := range map[string]func(shard int) (nodes.Node, bool){
		"no_owner": func(int) (nodes.Node, bool) { return nodes.Node{}, false },
		"owner_unreachable": func(shard int) (nodes.Node, bool) {
			x, ok := a.holder(shard)
			x.Address = nobody.Addr().String()
			return x, ok
		},
	} {
		a.tell(told)
		begun := time.Now()
		got := a.do("POST", "/v1/timers/"+id+"/run", "").want(503)
		if took := time.Since(begun); got.str("code") != code || got.header["Retry-After"] != "1" || took < ownerWait-time.Second || took > ownerWait+2*time.Second {
			t.Errorf("after %v: %v %s", took, got.header, got.body)
		}
	}
}

// deafNode reads requests, and closes the connection without an answer, as a node that
// dies, or does not, as one that was stopped.
func deafNode(t *testing.T, stopped bool) (address string, got *atomic.Int64) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	got = new(atomic.Int64)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if q, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, q.Body)
				got.Add(1)
			}
			if !stopped {
				conn.Close()
			}
		}
	}()
	return ln.Addr().String(), got
}

// A request whose answer is lost is made again only if that changes nothing.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	id := b.timer("a", "n", "")
	byID, byName := "/v1/timers/"+id, "/v1/apps/a/timers/n"
	key := b.do("POST", byID+"/run", "").want(202).str("key")
	until(t, func() bool { return b.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
	address, got := deafNode(t, false)
	for _, x := range []struct {
		method, path, body string
		header             []string
		again              bool
		status             int
	}{
		{"POST", byID + "/run", "", []string{"Idempotency-Key", "no key of a create"}, false, 0},
		{"POST", byID + "/disable", "", nil, false, 0},
		{"PATCH", byID, `{"priority":1}`, nil, false, 0},
		{"DELETE", byID, "", nil, false, 0},
		{"POST", "/v1/tasks/" + key + "/retry", "", nil, false, 0},
		{"PUT", byName, hourly("a", "n", `,"priority":2`), []string{"If-Match", `"1"`}, false, 0},
		{"PUT", byName, hourly("a", "n", `,"priority":2`), nil, true, 200},
		{"GET", byID, "", nil, true, 200},
		{"GET", "/v1/tasks/" + key, "", nil, true, 200},
	} {
		asked := int64(0)
		a.tell(func(shard int) (nodes.Node, bool) {
			n, ok := a.holder(shard)
			if asked++; asked <= 2 {
				n.Address = address
			}
			return n, ok
		})
		before := got.Load()
		answer := a.do(x.method, x.path, x.body, x.header...)
		sent := got.Load() - before
		if x.again && (sent != 2 || answer.status != x.status) {
			t.Errorf("%s %s was sent %d times into the void: %d %s", x.method, x.path, sent, answer.status, answer.body)
		}
		if !x.again && (sent != 1 || answer.status != 503 || answer.str("code") != "in_doubt") {
			t.Errorf("%s %s was sent %d times into the void: %d %s", x.method, x.path, sent, answer.status, answer.body)
		}
	}
	if v := b.do("GET", byID, "").want(200).header["Etag"]; v != `"2"` {
		t.Errorf("version %s", v)
	}
}

// A node that dies with a request, and one that stops, are not waited for any longer than
// they live.
func TestOwnerStops(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{})
	a, b := c.n[0], c.n[1]
	id := b.timer("a", "n", "")
	address, got := deafNode(t, true)
	a.tell(func(shard int) (nodes.Node, bool) {
		n, ok := a.holder(shard)
		if ok && !n.Own {
			n.Address = address
		}
		return n, ok
	})
	begun := time.Now()
	answered := make(chan answer, 2)
	go func() { answered <- a.do("GET", "/v1/timers/"+id, "") }()
	go func() { answered <- a.do("DELETE", "/v1/timers/"+id, "") }()
	until(t, func() bool { return got.Load() == 2 })
	if err := c.table.Leave(t.Context(), b.row.Life); err != nil {
		t.Fatal(err)
	}
	status := []int{(<-answered).status, (<-answered).status}
	slices.Sort(status)
	if took := time.Since(begun); !slices.Equal(status, []int{200, 503}) || took > 20*time.Second {
		t.Errorf("after %v: %v", took, status)
	}
}

// What no node has signed is done for nobody, and nobody but a node is told of another.
func TestForgedRequestOfANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Tokens: tokens()})
	a, b := c.n[0], c.n[1]
	a.token, b.token = "root", "root"
	id := b.timer("a", "n", "")
	q := nodes.Request{Method: "PATCH", Target: "/v1/timers/" + id, Body: []byte(`{"priority":1}`), For: access.Grant{App: "a", Role: access.RoleWrite, Name: "x"}}
	q.Keep(func(name string) []byte {
		if name == "If-Match" {
			return []byte(`"1"`)
		}
		return nil
	})
	now := time.Now()
	send := func(to *clusterNode, signature, path, body, match string) (status int, answer string) {
		t.Helper()
		q, p := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		q.Header.SetMethod("PATCH")
		q.SetRequestURI("http://" + to.address + path)
		q.SetBodyString(body)
		q.Header.SetNoDefaultContentType(true)
		q.Header.Set(nodes.Header, signature)
		q.Header.Set("If-Match", match)
		if err := to.client.Do(q, p); err != nil {
			t.Fatal(err)
		}
		return p.StatusCode(), string(p.Body())
	}
	good := q.Sign(testSecret, now)
	mine := "/v1/timers/" + id
	for name, x := range map[string]struct{ signature, path, body, match string }{
		"secret":      {q.Sign(append([]byte{1}, testSecret[1:]...), now), mine, `{"priority":1}`, `"1"`},
		"old":         {q.Sign(testSecret, now.Add(-31*time.Second)), mine, `{"priority":1}`, `"1"`},
		"early":       {q.Sign(testSecret, now.Add(31*time.Second)), mine, `{"priority":1}`, `"1"`},
		"path":        {good, mine + "?x=1", `{"priority":1}`, `"1"`},
		"body":        {good, mine, `{"priority":2}`, `"1"`},
		"If-Match":    {good, mine, `{"priority":1}`, `*`},
		"role":        {strings.Replace(good, "role=write", "role=admin", 1), mine, `{"priority":1}`, `"1"`},
		"app":         {strings.Replace(good, "app=a", "app=b", 1), mine, `{"priority":1}`, `"1"`},
		"no mac":      {"app=a&role=admin", mine, `{"priority":1}`, `"1"`},
		"half a mac":  {good[:len(good)-2], mine, `{"priority":1}`, `"1"`},
		"more claims": {strings.Replace(good, "&mac=", "&role=admin&mac=", 1), mine, `{"priority":1}`, `"1"`},
	} {
		if status, answer := send(b, x.signature, x.path, x.body, x.match); status != 401 || !strings.Contains(answer, `"bad_node_signature"`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, answer := send(a, good, mine, `{"priority":1}`, `"1"`); status != 421 {
		t.Errorf("a node that has not got the timer: %d %s", status, answer)
	}
	if status, answer := send(b, good, mine, `{"priority":1}`, `"1"`); status != 200 {
		t.Errorf("signed by a node: %d %s", status, answer)
	}
	read := q
	read.For.Role = access.RoleRead
	if status, answer := send(b, read.Sign(testSecret, now), mine, `{"priority":1}`, `"1"`); status != 403 {
		t.Errorf("for a client that may only read: %d %s", status, answer)
	}
}
