package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
)

// Only nodes ask a node for calls of flow keys, and it does not mind what it does not
// understand.
func TestAllotIsForNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Tokens: tokens()})
	ask := func(n *testNode, token string) (status int) {
		q, p := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		q.Header.SetMethod("POST")
		q.SetRequestURI("http://xtimer.test" + nodes.FlowsPath)
		q.Header.Set("Authorization", "Bearer "+token)
		q.SetBodyString(`{"life":2000,"number":1}`)
		if err := n.client.Do(q, p); err != nil {
			t.Fatal(err)
		}
		return p.StatusCode()
	}
	for token, want := range map[string]int{"wrong": 401, "a-write": 403, "root": 403} {
		if status := ask(c.n[1].testNode, token); status != want {
			t.Errorf("token %q: %d", token, status)
		}
	}
	c.n[1].token = "root"
	c.n[1].do("PUT", "/v1/apps/a/flows/k", `{"rate":1000000,"concurrency":100}`).want(201)
	client := nodes.NewClient(c.n[0].Secret, time.Now)
	defer client.Close()
	key := func(more string) string {
		return fmt.Sprintf(`{"life":2000,"number":%d,"keys":[{"kind":2,"app":"a","key":"k"%s}]}`, time.Now().UnixNano(), more)
	}
	for body, status := range map[string]int{
		`{"life":2000,"number":1}`: 200, key(""): 200, key(`,"calls":-5,"kept":-5,"holds":-1,"closed":-1`): 200,
		key(`,"calls":9007199254740992,"kept":9007199254740992`): 200, `{"life":77,"number":1}`: 200, `{"unknown":1}`: 200,
		"": 400, "null": 200, "[]": 400, `{"life":-1}`: 400, `{"keys":[{"calls":1e99}]}`: 400, "{": 400,
	} {
		q := &nodes.Request{
			Method: http.MethodPost, Target: nodes.FlowsPath, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(body),
			For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
		}
		a, err := client.Ask(t.Context(), c.n[1].address, q)
		if err != nil || a.Status != status || status == 200 && !json.Valid(a.Body) {
			t.Errorf("%s: %v %d %s", body, err, a.Status, a.Body)
		}
	}
	if status := ask(newNode(t), ""); status != 404 {
		t.Errorf("a server that is alone: %d", status)
	}
}

// Two nodes ask each other for the calls of a key: they make 40 calls in the time that one
// node alone needs for them at least.
func TestNodesShareAKey(t *testing.T) {
	t.Parallel()
	const rate, each = 20, 20
	var mu sync.Mutex
	var last time.Time
	called := 0
	call := func(c *engine.Call) engine.Outcome {
		mu.Lock()
		defer mu.Unlock()
		called, last = called+1, time.Now()
		return answers(200)(c)
	}
	c := newCluster(t, 2, call, ServerConfig{})
	for _, n := range c.n { // a limit is in force at once on the node that the request is made at
		n.do("PUT", "/v1/apps/a/flows/k", fmt.Sprintf(`{"rate":%d}`, rate))
	}
	due := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
	for i, n := range c.n {
		var lines strings.Builder
		for x := range each {
			fmt.Fprintf(&lines, `{"app":"a","name":"%d-%d","flow":["k"],"schedule":{"at":%d},"callback":{"url":"http://127.0.0.1:1/"}}`+"\n", i, x, due.UnixMilli())
		}
		n.do("POST", "/v1/timers/batch", lines.String(), "Content-Type", "application/x-ndjson")
	}
	until(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return called == 2*each
	})
	mu.Lock()
	defer mu.Unlock()
	if took, least := last.Sub(due), (2*each-1)*time.Second/rate; took < least {
		t.Errorf("the nodes made %d calls within %v, and not %v", called, took, least)
	}
}

// Any node tells how a flow key and a target stand at all nodes together.
func TestFlowsStandAtAllNodes(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := newCluster(t, 3, func(call *engine.Call) engine.Outcome {
		<-release
		return answers(200)(call)
	}, ServerConfig{})
	defer close(release)
	const flow, target = "/v1/apps/a/flows/k", "/v1/targets/http/127.0.0.1/9"
	for _, n := range c.n { // a limit is in force at once on the node that the request is made at
		n.do("PUT", flow, `{"concurrency":2}`)
		n.do("PUT", target, `{"concurrency":1000}`)
	}
	for i := range 9 {
		c.n[i%3].do("POST", "/v1/timers", fmt.Sprintf(`{"app":"a","name":"n-%d","flow":["k"],"schedule":{"delay":"1ms"},"callback":{"url":"http://127.0.0.1:9/x"}}`, i)).want(201)
	}
	stands := func(a answer, path ...any) bool {
		count := func(name string) int {
			if n, is := a.get(append(path, name)...).(float64); is {
				return int(n)
			}
			return -1
		}
		return a.get(append(path, "partial")...) == nil && count("in_flight") == 2 && count("waiting") == 7
	}
	for _, n := range c.n {
		until(t, func() bool {
			return stands(n.do("GET", flow, "").want(200)) && stands(n.do("GET", "/v1/apps/a/flows", "").want(200), "flows", 0)
		})
		if a := n.do("GET", target, "").want(200); a.count("in_flight") != 2 {
			t.Error(a.body)
		}
	}
	c.n[0].setCut(true)
	if a := c.n[0].do("GET", flow, "").want(200); a.get("partial") != true {
		t.Error(a.body)
	}
}
