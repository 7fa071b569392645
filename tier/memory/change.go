package memory

import (
	"context"
	"slices"

	"xtimer/engine"
)

// Apply makes one change of one timer.
func (c *Cold) Apply(_ context.Context, ch *engine.Change) (engine.Applied, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.change(ch)
	return a, a.Err
}

// ApplyAll makes many independent changes.
func (c *Cold) ApplyAll(_ context.Context, cs []*engine.Change) []engine.Applied {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]engine.Applied, len(cs))
	for i, ch := range cs {
		out[i] = c.change(ch)
	}
	return out
}

func (c *Cold) change(ch *engine.Change) engine.Applied {
	id := ch.ID
	if ch.Timer != nil {
		id = ch.Timer.ID
	}
	old := c.timers[id]
	if a := c.judge(ch, old); a.Err != nil || a.Existing != nil {
		return a
	}
	for _, k := range ch.Pay {
		delete(c.owed, k)
	}
	for _, o := range ch.Owe {
		c.owed[o.Key] = o
	}
	for _, t := range ch.Tasks {
		c.tasks[t.Key] = engine.AppendTask(nil, t)
	}
	if old != nil {
		c.forget(old, ch.Timer, ch.At)
	}
	if t := ch.Timer; t != nil {
		c.timers[id] = t
		c.clock = max(c.clock, t.UpdatedAt)
		if t.Name != "" {
			c.names[pair{t.App, t.Name}] = id
		}
		if o := ch.Once; o != nil && old == nil {
			c.once[pair{o.App, o.Key}] = once{id, o.Body, o.Expires}
		}
	}
	return engine.Applied{}
}

// judge tells what stands in the way of a change.
func (c *Cold) judge(ch *engine.Change, old *engine.Timer) engine.Applied {
	t := ch.Timer
	switch {
	case ch.Was == 0 && t == nil && old == nil, ch.Was != 0 && old == nil:
		return engine.Applied{Err: engine.ErrNotFound}
	case ch.Was == 0 && t == nil, ch.Was != 0 && old.Version != ch.Was:
		return engine.Applied{Err: engine.ErrConflict}
	case t == nil:
		return engine.Applied{}
	}
	if ch.Was == 0 && ch.Once != nil {
		if row, ok := c.once[pair{ch.Once.App, ch.Once.Key}]; ok && row.expires > t.CreatedAt {
			return c.repeat(ch.Once, row)
		}
	}
	if id := c.names[pair{t.App, t.Name}]; id != 0 && id != t.ID || id != 0 && ch.Was == 0 {
		return engine.Applied{Existing: c.timers[id], Err: engine.ErrConflict}
	}
	if ch.Was == 0 && old != nil {
		return engine.Applied{Err: engine.ErrConflict}
	}
	return engine.Applied{}
}

// repeat answers a create whose Idempotency-Key was used.
func (c *Cold) repeat(o *engine.Once, row once) engine.Applied {
	if row.body != o.Body {
		return engine.Applied{Err: &engine.Fault{
			Kind: engine.FaultInvalid, Code: "idempotency_key_reused",
			Detail: "the Idempotency-Key was used with another body",
		}}
	}
	a := engine.Applied{Existing: c.timers[row.id], Replayed: true}
	if vs := c.former[row.id]; a.Existing == nil && len(vs) > 0 {
		a.Existing = vs[len(vs)-1].timer
	}
	if a.Existing == nil {
		a.Err = engine.ErrNotFound
	}
	return a
}

// forget takes old out before t, or nothing, takes its place.
func (c *Cold) forget(old, t *engine.Timer, at int64) {
	delete(c.timers, old.ID)
	delete(c.names, pair{old.App, old.Name})
	if t == nil {
		c.deleted[old.ID] = at
	}
	c.clock = max(c.clock, old.UpdatedAt, at)
	if t == nil || t.Version != old.Version {
		c.former[old.ID] = append(c.former[old.ID], former{old, c.clock})
	}
	if t == nil || t.ValidFrom != old.ValidFrom || t.Generation != old.Generation || t.Schedule != old.Schedule || t.Status != old.Status {
		delete(c.bounds, old.ID)
	}
}

// Take takes all shards for a node.
func (c *Cold) Take(_ context.Context, owner string) ([]engine.Shard, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.shards {
		c.shards[i].Fence++
		c.shards[i].Owner = owner
	}
	return slices.Clone(c.shards[:]), nil
}

// Shards reads fence and watermark of all shards, in order.
func (c *Cold) Shards(context.Context) ([]engine.Shard, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shards[:]), nil
}
