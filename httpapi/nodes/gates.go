package nodes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/httpapi/access"
)

// GatesPath is where a node asks another how flow keys and targets stand there. It is for nodes
// alone, and in no document.
const GatesPath = "/v1/internal/gates"

// Gate is how a flow key or a target stands at a node, or at all.
type Gate struct {
	Used              bool // or the rest says nothing
	Waiting, InFlight int
	Oldest            int64 // since when the oldest task waits (Unix ms); 0: not known
	Closed            int64 `json:",omitempty"` // until when responses have closed it (Unix ms); 0: none has
	Breaker           string
	Next              int64         // when its next call may be made (Unix ms); 0: not known
	Every             time.Duration // between the calls after it, see flow.Estimate
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
	if g.Oldest == 0 || o.Oldest != 0 && o.Oldest < g.Oldest {
		g.Oldest = o.Oldest
	}
	g.Closed = max(g.Closed, o.Closed)
	if g.Next == 0 || o.Next != 0 && o.Next < g.Next {
		g.Next = o.Next
	}
	g.Every = max(g.Every, o.Every)
}

// Wait is about how long a task that becomes due now (Unix ms) waits until it is called: those that
// wait go before it. known is false if nobody knows.
func (g *Gate) Wait(now int64) (wait time.Duration, known bool) {
	if !g.Used || g.Next == 0 {
		return 0, false
	}
	e := flow.Estimate{Next: time.Duration(g.Next-now) * time.Millisecond, Every: g.Every}
	wait = e.After(g.Waiting)
	return max(wait, 0), wait != flow.Never
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
