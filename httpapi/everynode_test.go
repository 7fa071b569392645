package httpapi

import (
	"fmt"
	"testing"
	"time"
)

// A bulk operation works on the timers of all nodes, and each node tells of all of it.
func TestBulkInACluster(t *testing.T) {
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
