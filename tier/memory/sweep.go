package memory

import (
	"context"
	"maps"
	"slices"

	"xtimer/engine"
)

const dayMs = 24 * 3_600_000

// Sweep does all the housekeeping there is.
func (c *Cold) Sweep(_ context.Context, now, finishedBefore, historyBefore int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock = max(c.clock, now)
	owing := c.owing()
	for _, id := range c.ids() {
		if t := c.timers[id]; lastDue(t) != 0 {
			c.archive(t, owing)
		}
		if t := c.timers[id]; t.Status == engine.Finished && max(lastDue(t), t.UpdatedAt) < finishedBefore && !owing[id] {
			delete(c.timers, id)
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
		if owing[id] {
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
	for k := range c.tasks {
		if day := k.Due / dayMs; (day+1)*dayMs <= historyBefore && !c.holds(day) {
			delete(c.tasks, k)
		}
	}
	return false, nil
}

// holds reports whether an owed row keeps the history of a day: a due of it, or a
// range that begins on it or before.
func (c *Cold) holds(day int64) bool {
	for _, o := range c.owed {
		if d := o.Key.Due / dayMs; d == day || o.To != 0 && d < day {
			return true
		}
	}
	return false
}
