package nodes

import (
	"encoding/json"
	"fmt"
	"net/http"

	"xtimer/httpapi/access"
)

// WaitingPath is where a node asks another for a page of what waits for a flow key there. It is for
// nodes alone, and in no document.
const WaitingPath = "/v1/internal/waiting"

// AskWaiting asks for a page.
func AskWaiting(ask any) Request {
	b, err := json.Marshal(ask)
	if err != nil {
		panic("BUG: a place in a list cannot be encoded: " + err.Error())
	}
	return Request{
		Method: http.MethodPost, Target: WaitingPath, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: b,
		For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
	}
}

// ReadWaiting reads the answer.
func ReadWaiting(a Answer, page any) error {
	if a.Status != http.StatusOK {
		return fmt.Errorf("the node answers with status %d", a.Status)
	}
	return json.Unmarshal(a.Body, page)
}
