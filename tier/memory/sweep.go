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
	held := c.heldDays(historyBefore)
	for k := range c.tasks.Ascend(btreemap.GT(engine.Key{Due: historyBefore}), btreemap.Max[engine.Key]()) {
		if day := k.Due / dayMs; (day+1)*dayMs <= historyBefore && !held[day] {
			over = append(over, k)
		}
	}
	for _, k := range over {
		c.tasks.Delete(k)
	}
	return false, nil
}

// heldDays are the days whose history an owed row keeps: the day of a due, and those on which a record has a due
// of a range.
func (c *Cold) heldDays(before int64) map[int64]bool {
	held, ranges := map[int64]bool{}, map[engine.TimerID][][2]int64{}
	for _, o := range c.owed.all() {
		if o.To == 0 {
			held[o.Key.Due/dayMs] = true
		} else {
			ranges[o.Key.Timer] = append(ranges[o.Key.Timer], [2]int64{o.Key.Due, o.To})
		}
	}
	for k := range c.tasks.Ascend(btreemap.GT(engine.Key{Due: before}), btreemap.Max[engine.Key]()) {
		for _, x := range ranges[k.Timer] {
			if x[0] <= k.Due && k.Due <= x[1] {
				held[k.Due/dayMs] = true
			}
		}
	}
	return held
}
