package nodes

import (
	"context"
	"net/http"

	"xtimer/httpapi/access"
)

// AlertsPath is where the node that judges asks another for states and late calls, see
// engine/alert. It is for nodes alone, and in no document.
const AlertsPath = "/v1/internal/alerts"

// AskAlerts sends a message of engine/alert to the node at an address, and returns its answer;
// nil: it has none.
func (c *Client) AskAlerts(ctx context.Context, address string, message []byte) []byte {
	a, err := c.Ask(ctx, address, &Request{
		Method: http.MethodPost, Target: AlertsPath, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: message,
		For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
	})
	if err != nil || a.Status != http.StatusOK {
		return nil
	}
	return a.Body
}
