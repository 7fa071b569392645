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

// What clients ask for, and another node is slow to answer, does not keep the nodes from asking for calls of flow keys.
func TestFlowsBesideSlowRequests(t *testing.T) {
	for what, ask := range map[string]func(c *Client, address string){
		"requests": func(c *Client, address string) {
			_, _ = c.Ask(context.Background(), address, &Request{Method: "GET", Target: "/v1/timers/1", For: access.Grant{}})
		},
		"items of bulk operations": func(c *Client, address string) { _, _ = c.AskItem(context.Background(), address, nil) },
	} {
		t.Run(what, func(t *testing.T) {
			var slow atomic.Int64
			full, end := make(chan struct{}), make(chan struct{})
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != FlowsPath {
					if slow.Add(1) == mostConnections {
						close(full)
					}
					<-end
				}
			}))
			defer node.Close()
			defer close(end)
			c := NewClient(func() []byte { return make([]byte, SecretSize) }, time.Now)
			address := strings.TrimPrefix(node.URL, "http://")
			for range mostConnections {
				go ask(c, address)
			}
			<-full
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := c.AskFlows(ctx, address, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
