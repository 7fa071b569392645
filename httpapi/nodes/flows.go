package nodes

import (
	"context"
	"fmt"
	"net/http"

	"xtimer/httpapi/access"
)

// FlowsPath is where a node asks another for calls of the flow keys that the other owns, see
// engine/allot. It is for nodes alone, and in no document.
const FlowsPath = "/v1/internal/flows"

// AskFlows sends a message of engine/allot to the node at an address, and returns its answer.
func (c *Client) AskFlows(ctx context.Context, address string, message []byte) ([]byte, error) {
	a, err := c.Ask(ctx, address, &Request{
		Method: http.MethodPost, Target: FlowsPath, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: message,
		For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
	})
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("the node answers with status %d", a.Status)
	}
	return a.Body, err
}
