package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/RaduBerinde/btreemap"

	"xtimer/engine"
)

const dayMs = 24 * 3_600_000

// Sweep does all the housekeeping there is.
func (c *Cold) Sweep(_ context.Context, now, finishedBefore, historyBefore int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock = max(c.clock, now)
	var all []*engine.Timer
	for _, t := range c.all() {
		all = append(all, t)
	}
	for _, t := range all {
		id := t.ID
		if lastDue(t) != 0 {
			c.archive(t)
		}
		if t := c.get(id); t.Status == engine.Finished && max(lastDue(t), t.UpdatedAt) < finishedBefore && !c.owed.has(id) {
			c.timers.Delete(id)
			delete(c.names, pair{t.App, t.Name})
			delete(c.former, id)
		}
	}
	for k, u := range c.once {
		if u.Expires <= now {
			delete(c.once, k)
		}
	}
	for id, fs := range c.former {
		if c.owed.has(id) {
			continue
		}
		c.former[id] = slices.DeleteFunc(fs, func(f former) bool { return f.replaced < historyBefore })
		if len(c.former[id]) == 0 {
			delete(c.former, id)
			delete(c.deleted, id)
		}
	}
	maps.DeleteFunc(c.buckets, func(_ string, b engine.Bucket) bool { return b.Until <= now })
	maps.DeleteFunc(c.leftOut, func(m int64, _ bool) bool { return m+minuteMs <= historyBefore })
	var over []engine.Key
	for k := range c.tasks.Ascend(btreemap.GT(engine.Key{Due: historyBefore}), btreemap.Max[engine.Key]()) {
		if day := k.Due / dayMs; (day+1)*dayMs <= historyBefore && !c.holds(day) {
			over = append(over, k)
		}
	}
	for _, k := range over {
		c.tasks.Delete(k)
	}
	return false, nil
}

// holds reports whether an owed row keeps the history of a day: a due of it, or a
// range that begins on it or before.
func (c *Cold) holds(day int64) bool {
	for _, o := range c.owed.all() {
		if d := o.Key.Due / dayMs; d == day || o.To != 0 && d < day {
			return true
		}
	}
	return false
}
