package quota

import (
	"encoding/json"
	"fmt"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Kind is the kind of the objects.
const Kind = "quota"

// Key is the key of the quota of an app.
func Key(app string) engine.ObjectKey { return engine.ObjectKey{Kind: Kind, App: app, Name: "app"} }

// Limits is what an app may have and do. Zero fields limit nothing.
type Limits struct {
	Timers           int `json:"timers,omitempty"`
	Bytes            int `json:"bytes,omitempty"` // of payloads
	CreatesPerSecond int `json:"creates_per_second,omitempty"`
	FiresPerSecond   int `json:"fires_per_second,omitempty"`
	InFlight         int `json:"in_flight,omitempty"`
}

// Read reads the body of an object.
func Read(o *engine.Object) (l Limits, err error) {
	if err := json.Unmarshal(o.Body, &l); err != nil {
		return l, fmt.Errorf("cannot read the object %s: %w", o.ObjectKey, err)
	}
	return l, nil
}

// Body is the body that is stored.
func (l *Limits) Body() []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic("BUG: a quota cannot be encoded: " + err.Error())
	}
	return b
}

// Check returns an error for a quota that cannot be in force in an app.
func (l *Limits) Check(app string) error {
	switch {
	case app == "*":
		return engine.Invalid("app", "bad_name", "must be one app: each app has a quota of its own")
	case *l == Limits{}:
		return &engine.Fault{Kind: engine.FaultInvalid, Code: "nothing_limited", Detail: "every field of the quota is 0 or missing: delete the quota instead"}
	}
	return nil
}

// rule has the limits that the queue enforces; nil: there are none.
func (l *Limits) rule() *flow.Rule {
	if l.FiresPerSecond == 0 && l.InFlight == 0 {
		return nil
	}
	limit := &flow.Limit{Concurrency: l.InFlight}
	if l.FiresPerSecond > 0 {
		limit.Rate, limit.Per, limit.Burst = l.FiresPerSecond, time.Second, l.FiresPerSecond
	}
	return &flow.Rule{Limit: limit}
}
