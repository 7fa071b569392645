package nodes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/httpapi/access"
)

// Clients' requests that another node is slow to answer do not keep the nodes from asking for calls of flow keys.
func TestFlowsBesideSlowRequests(t *testing.T) {
	var slow atomic.Int64
	end := make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != FlowsPath {
			slow.Add(1)
			<-end
		}
	}))
	defer node.Close()
	defer close(end)
	c := NewClient(func() []byte { return make([]byte, SecretSize) })
	address := strings.TrimPrefix(node.URL, "http://")
	for range mostConnections {
		go c.Ask(context.Background(), address, &Request{Method: "GET", Target: "/v1/timers/1", For: access.Grant{}})
	}
	for slow.Load() < mostConnections {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	if _, err := c.AskFlows(ctx, address, nil); err != nil {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
}

// Items of bulk operations that another node is slow to do do not keep the nodes from asking for calls of flow keys.
func TestFlowsBesideSlowItems(t *testing.T) {
	var slow atomic.Int64
	end := make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ItemsPath {
			slow.Add(1)
			<-end
		}
	}))
	defer node.Close()
	defer close(end)
	c := NewClient(func() []byte { return make([]byte, SecretSize) })
	address := strings.TrimPrefix(node.URL, "http://")
	for range 2 * 32 { // two operations, with 32 workers each
		go c.AskItem(context.Background(), address, nil)
	}
	for slow.Load() < 64 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	if _, err := c.AskFlows(ctx, address, nil); err != nil {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
}
