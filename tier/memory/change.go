package memory

import (
	"context"
	"slices"

	"xtimer/engine"
	"xtimer/engine/policy"
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
	old := c.get(id)
	if a := policy.Judge(ch, old, standing{c}); a != (engine.Applied{}) {
		return a
	}
	for _, k := range ch.Pay {
		c.owed.remove(k)
	}
	for _, o := range ch.Owe {
		c.owed.put(o)
	}
	for _, t := range ch.Tasks {
		c.tasks.ReplaceOrInsert(t.Key, engine.AppendTask(nil, t))
	}
	if old != nil {
		c.forget(old, ch.Timer, ch.At)
	}
	if t := ch.Timer; t != nil {
		c.timers.ReplaceOrInsert(id, t)
		c.newest = max(c.newest, id)
		c.clock = max(c.clock, t.UpdatedAt)
		if t.Name != "" {
			c.names[pair{t.App, t.Name}] = id
		}
		if o := ch.Once; o != nil && old == nil {
			c.once[pair{o.App, o.Key}] = &policy.Use{Timer: id, Body: o.Body, Expires: o.Expires}
		}
	}
	return engine.Applied{}
}

// standing is what a change is judged against; the lock is held.
type standing struct{ *Cold }

func (s standing) Named(app, name string) (*engine.Timer, error) {
	return s.get(s.names[pair{app, name}]), nil
}

func (s standing) Used(app, key string) (*policy.Use, error) { return s.once[pair{app, key}], nil }

func (s standing) Made(id engine.TimerID) (*engine.Timer, error) {
	if vs := s.former[id]; s.get(id) == nil && len(vs) > 0 {
		return vs[len(vs)-1].timer, nil
	}
	return s.get(id), nil
}

// forget takes old out before t, or nothing, takes its place.
func (c *Cold) forget(old, t *engine.Timer, at int64) {
	c.timers.Delete(old.ID)
	delete(c.names, pair{old.App, old.Name})
	if t == nil {
		c.deleted[old.ID] = at
	}
	c.clock = max(c.clock, old.UpdatedAt, at)
	if t == nil || t.Version != old.Version {
		c.former[old.ID] = append(c.former[old.ID], former{old, c.clock})
	}
	if t == nil || !policy.SameDues(old, t) {
		delete(c.bounds, old.ID)
	}
}

// Take takes all shards for a node.
func (c *Cold) Take(_ context.Context, owner string) ([]engine.Shard, engine.TimerID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.shards {
		c.shards[i].Fence++
		c.shards[i].Owner = owner
	}
	return slices.Clone(c.shards[:]), c.newest, nil
}

// Shards reads fence and watermark of all shards, in order.
func (c *Cold) Shards(context.Context) ([]engine.Shard, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shards[:]), nil
}
