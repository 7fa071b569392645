package limit

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/object"
)

// callsMade ends the kind of an object that has which calls of a slow flow key, or of a target,
// count.
const callsMade = "-calls"

// Calls stores which calls of slow keys count.
type Calls struct {
	set  *object.Set
	now  func() time.Time
	next time.Time // when it is looked for objects that say nothing any more
}

// NewCalls makes a store in a set.
func NewCalls(set *object.Set, now func() time.Time) *Calls {
	for _, kind := range []string{FlowKind, TargetKind} {
		set.Register(object.Kind{Name: kind + callsMade, Uncounted: true})
	}
	return &Calls{set: set, now: now}
}

func callsOf(n flow.Name) engine.ObjectKey {
	if n.Kind == flow.OfTarget {
		return engine.ObjectKey{Kind: TargetKind + callsMade, App: EachApp, Name: n.Key}
	}
	return engine.ObjectKey{Kind: FlowKind + callsMade, App: n.App, Name: n.Key}
}

// Load reads what is kept of a key.
func (c *Calls) Load(n flow.Name) (k flow.Kept, is bool) {
	o := c.set.Get(callsOf(n))
	return k, o != nil && json.Unmarshal(o.Body, &k) == nil
}

// Save stores what is to be kept of keys.
func (c *Calls) Save(ctx context.Context, kept map[flow.Name]flow.Kept) error {
	items := make([]object.Item, 0, len(kept))
	for n, k := range kept {
		body, err := json.Marshal(k)
		if err != nil {
			return err
		}
		items = append(items, object.Item{Key: callsOf(n), Body: body})
	}
	if err := errors.Join(c.set.PutAll(ctx, items)...); err != nil {
		return err
	}
	c.forget(ctx)
	return nil
}

const (
	// longestPer is how long a call counts at most.
	longestPer = 24 * time.Hour
	// mostForgotten are deleted at a time: calls wait meanwhile.
	mostForgotten = 20
)

// forget deletes some of the objects whose calls count no more.
func (c *Calls) forget(ctx context.Context) {
	now := c.now()
	if now.Before(c.next) {
		return
	}
	n := 0
	for _, kind := range []string{FlowKind, TargetKind} {
		for _, app := range c.set.Apps(kind + callsMade) {
			for _, o := range c.set.List(kind+callsMade, app) {
				if now.Sub(time.UnixMilli(o.UpdatedAt)) <= longestPer+time.Hour {
					continue
				}
				if n++; n > mostForgotten {
					c.next = now.Add(time.Second)
					return
				}
				_ = c.set.Delete(ctx, o.ObjectKey, nil) // the next hour tries again
			}
		}
	}
	c.next = now.Add(time.Hour)
}
