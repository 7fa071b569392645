package limit

import (
	"encoding/json"
	"fmt"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// The kinds of objects.
const (
	FlowKind  = "flow"
	PauseKind = "pause"
)

// FlowKey is the key of a flow's object.
func FlowKey(app, key string) engine.ObjectKey {
	return engine.ObjectKey{Kind: FlowKind, App: app, Name: key}
}

// Object is the body of an object.
type Object struct {
	Limit *flow.Limit `json:"limit,omitempty"` // nil: none
	// PausedUntil and CooldownUntil are Unix ms, MaxDue for a pause without an end; 0: not.
	PausedUntil   int64  `json:"paused_until,omitempty"`
	Reason        string `json:"reason,omitempty"` // of the pause
	PausedSince   int64  `json:"paused_since,omitempty"`
	PausedBy      string `json:"paused_by,omitempty"`
	CooldownUntil int64  `json:"cooldown_until,omitempty"`
	OpenedAt      int64  `json:"opened_at,omitempty"` // of flow.Rule
	// SkippedTo and LatestTo say what becomes of what a former pause held: see engine.Backlog.
	SkippedTo int64 `json:"skipped_to,omitempty"`
	LatestTo  int64 `json:"latest_to,omitempty"`
}

// backlog is what the object says of dues that were held.
func (x *Object) backlog() engine.Backlog {
	return engine.Backlog{Skip: x.SkippedTo, Latest: x.LatestTo}
}

// otherClock is how far ahead the clock of the node may be that has written an object.
const otherClock = 10_000

// Read reads the body of an object; nil gives a zero one.
func Read(o *engine.Object) (x Object, err error) {
	if o == nil {
		return x, nil
	}
	if err := json.Unmarshal(o.Body, &x); err != nil {
		return x, fmt.Errorf("cannot read the object %s: %w", o.ObjectKey, err)
	}
	return x, nil
}

// Body is the body that is stored.
func (x *Object) Body() []byte {
	b, err := json.Marshal(x)
	if err != nil {
		panic("BUG: an object cannot be encoded: " + err.Error())
	}
	return b
}

// Keep is the body of an object that stands, with the limit of another body: a pause stays when the limit changes.
func Keep(stands *engine.Object, body []byte) ([]byte, error) {
	x, err := Read(stands)
	if err != nil {
		return nil, err
	}
	next, err := Read(&engine.Object{Body: body})
	if err != nil {
		return nil, err
	}
	x.Limit = next.Limit
	return x.Body(), nil
}

// hasInstants reports whether the rule of the object depends on the wall clock.
func (x *Object) hasInstants() bool {
	return max(x.PausedUntil, x.CooldownUntil, x.backlog().UpTo()) != 0
}

// rule is the rule of an object: now is the instant (Unix ms) that is at in the time of rules.
func (x *Object) rule(now int64, at time.Duration) *flow.Rule {
	until := func(ms int64) time.Duration {
		switch {
		case ms <= now:
			return 0
		case ms > int64(flow.Never/time.Millisecond): // in 2262 a Duration since 1970 ends
			return flow.Never
		}
		return at + time.Duration(ms-now)*time.Millisecond
	}
	paused := until(x.PausedUntil)
	if end := x.backlog().UpTo(); end-now < otherClock { // here the pause ends by the clock of who has ended it
		paused = max(paused, until(end))
	}
	return &flow.Rule{Limit: x.Limit, Paused: paused, Cooldown: until(x.CooldownUntil), Opened: x.OpenedAt}
}

// NameOf is the name of the rule of an object.
func NameOf(k engine.ObjectKey) flow.Name {
	switch k.Kind {
	case PauseKind:
		return flow.Name{Kind: flow.OfApp, App: k.App}
	case TargetKind:
		return targetName(k.Name)
	}
	return flow.Name{Kind: flow.OfFlow, App: k.App, Key: k.Name}
}
