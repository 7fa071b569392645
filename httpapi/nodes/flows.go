package nodes

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"xtimer/httpapi/access"
)

// FlowsPath is where a node asks another for calls of the flow keys that the other owns, see
// engine/allot. It is for nodes alone, and in no document.
const FlowsPath = "/v1/internal/flows"

// ResultsPath is where a node tells another what became of a call that was under way when the
// node gave the shard, see engine/scheduler. It is for nodes alone, and in no document.
const ResultsPath = "/v1/internal/results"

// AskFlows sends a message of engine/allot to the node at an address, and returns its answer.
func (c *Client) AskFlows(ctx context.Context, address string, message []byte) ([]byte, error) {
	return c.post(ctx, c.own, address, FlowsPath, "application/json", message)
}

// ItemsPath is where a node has another do an item of a bulk operation, see engine/change. It is
// for nodes alone, and in no document.
const ItemsPath = "/v1/internal/items"

// itemWait is how long the answer may take.
const itemWait = 30 * time.Second

// AskItem sends an item of a bulk operation to the node at an address, and returns its answer. The item is a client's
// work, and goes with clients' requests.
func (c *Client) AskItem(ctx context.Context, address string, item []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, itemWait)
	defer cancel()
	return c.post(ctx, c.http, address, ItemsPath, "application/json", item)
}

// TellResult sends a task to the node at an address, and returns its answer.
func (c *Client) TellResult(ctx context.Context, address string, task []byte) ([]byte, error) {
	return c.post(ctx, c.own, address, ResultsPath, "application/octet-stream", task)
}

// post sends a message to another node, over the connections of a client.
func (c *Client) post(ctx context.Context, by *http.Client, address, path, kind string, message []byte) ([]byte, error) {
	a, err := c.ask(ctx, by, address, &Request{
		Method: http.MethodPost, Target: path, Header: map[string][]string{"Content-Type": {kind}}, Body: message,
		For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
	})
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("the node answers with status %d", a.Status)
	}
	return a.Body, err
}
