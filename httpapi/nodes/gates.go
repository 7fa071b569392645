package nodes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"xtimer/engine"
	"xtimer/httpapi/access"
)

// GatesPath is where a node asks another how flow keys and targets stand there. It is for nodes
// alone, and in no document.
const GatesPath = "/v1/internal/gates"

// Gate is how a flow key or a target stands at a node, or at all.
type Gate struct {
	Used              bool // or the rest says nothing
	Waiting, InFlight int
	Breaker           string
	Next              int64 // when its next call may be made (Unix ms); 0: not known
	// Resuming is what becomes of the dues that a pause held, while that is being decided.
	Resuming string `json:",omitempty"`
}

// Add adds how it stands at another node.
func (g *Gate) Add(o Gate) {
	g.Used = g.Used || o.Used
	g.Resuming = cmp.Or(g.Resuming, o.Resuming)
	g.Waiting, g.InFlight = g.Waiting+o.Waiting, g.InFlight+o.InFlight
	breakers := []string{"", "closed", "trying", "open"}
	if slices.Index(breakers, o.Breaker) > slices.Index(breakers, g.Breaker) {
		g.Breaker = o.Breaker
	}
	if g.Next == 0 || o.Next != 0 && o.Next < g.Next {
		g.Next = o.Next
	}
}

// AskGates asks how flow keys and targets stand.
func AskGates(keys []engine.ObjectKey) Request {
	b, err := json.Marshal(keys)
	if err != nil {
		panic("BUG: keys cannot be encoded: " + err.Error())
	}
	return Request{
		Method: http.MethodPost, Target: GatesPath, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: b,
		For: access.Grant{App: access.AllApps, Role: access.RoleAdmin, Name: "another node"},
	}
}

// ReadGates reads the answer about n of them.
func ReadGates(a Answer, n int) (gates []Gate, err error) {
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("the node answers with status %d", a.Status)
	}
	if err := json.Unmarshal(a.Body, &gates); err != nil {
		return nil, err
	}
	if len(gates) != n {
		return nil, fmt.Errorf("the answer has %d flow keys, and not %d", len(gates), n)
	}
	return gates, nil
}
