package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/RaduBerinde/btreemap"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// Settle stores results and progress, all or nothing.
func (c *Cold) Settle(_ context.Context, s *engine.Settlement) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range s.Marks {
		if m.Shard < 0 || m.Shard >= engine.Shards {
			return fmt.Errorf("there is no shard %d", m.Shard)
		}
		if m.Fence != c.shards[m.Shard].Fence {
			return engine.ErrFenced
		}
	}
	c.newest = max(c.newest, s.Newest())
	tasks, owe := s.Tasks, s.Owe
	if s.Replayed {
		var err error
		if tasks, owe, err = c.replayed(s); err != nil {
			return err
		}
	}
	for _, r := range tasks {
		c.tasks.ReplaceOrInsert(r.Key, slices.Clone(r.Encoded))
	}
	for _, k := range s.Pay {
		c.owed.remove(k)
	}
	for _, o := range owe {
		c.owed.put(o)
	}
	for _, m := range s.LeftOut {
		c.leftOut[m] = true
	}
	for _, m := range s.Marks {
		sh := &c.shards[m.Shard]
		*sh = engine.Shard{Fence: m.Fence, Owner: s.Owner, Watermark: max(sh.Watermark, m.W)}
		c.clock = max(c.clock, sh.Watermark)
		if c.marked != nil {
			c.marked(m.Shard)
		}
	}
	return nil
}

// replayed are those records and rows of a journal that say no less than what is
// stored.
func (c *Cold) replayed(s *engine.Settlement) ([]engine.Record, []engine.Owed, error) {
	ranks := map[engine.Key]engine.Rank{}
	for _, r := range s.Tasks {
		if _, stored, ok := c.tasks.Get(r.Key); ok {
			ranks[r.Key] = engine.RankOf(decode(stored))
		}
	}
	tasks, err := policy.LaterRecords(s.Tasks, ranks)
	return tasks, policy.LaterRows(s.Owe, c.owed.get), err
}

// decode reads a record that AppendTask wrote.
func decode(b []byte) *engine.Task {
	t, err := engine.DecodeTask(slices.Clone(b))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}

// Task finds one record of history.
func (c *Cold) Task(_ context.Context, k engine.Key) (*engine.Task, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, b, ok := c.tasks.Get(k); ok {
		return decode(b), nil
	}
	return nil, engine.ErrNotFound
}

// Ranks are the ranks of records.
func (c *Cold) Ranks(_ context.Context, ks []engine.Key) ([]engine.Rank, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ranks := make([]engine.Rank, len(ks))
	for i, k := range ks {
		if _, b, ok := c.tasks.Get(k); ok {
			ranks[i] = engine.RankOf(decode(b))
		}
	}
	return ranks, nil
}

// Taken reports whether dues in ranges have a record, or a row of their own.
func (c *Cold) Taken(_ context.Context, ranges []engine.Owed) ([]bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := make([]bool, len(ranges))
	for i, o := range ranges {
		for k, row := range c.owed.of(o.Key.Timer, o.Key.Due-1) {
			taken[i] = taken[i] || row.To == 0 && k.Due <= o.To
		}
		for k := range c.tasks.Ascend(btreemap.GE(engine.Key{Due: o.To, Timer: math.MaxUint64}), btreemap.LE(engine.Key{Due: o.Key.Due})) {
			taken[i] = taken[i] || k.Timer == o.Key.Timer
		}
	}
	return taken, nil
}

// LastTask is the newest record of a timer.
func (c *Cold) LastTask(ctx context.Context, id engine.TimerID) (*engine.Task, error) {
	ts, _, err := c.Tasks(ctx, engine.TaskFilter{Timer: id}, engine.Key{}, 1)
	if len(ts) == 0 && err == nil {
		err = engine.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return ts[0], nil
}

// LeftOut lists the minutes of [from, to) whose history is incomplete.
func (c *Cold) LeftOut(_ context.Context, from, to int64) (minutes []int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.leftOut {
		if m+minuteMs > from && m < to {
			minutes = append(minutes, m)
		}
	}
	slices.Sort(minutes)
	return minutes, nil
}

// Tasks lists history newest first, by due and then by timer.
func (c *Cold) Tasks(_ context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := btreemap.Min[engine.Key](), btreemap.Max[engine.Key]()
	switch {
	case before != engine.Key{}:
		from = btreemap.GT(before)
	case f.To != 0:
		from = btreemap.GE(engine.Key{Due: f.To - 1, Timer: math.MaxUint64})
	}
	for k, b := range c.tasks.Ascend(from, to) {
		if k.Due < f.From {
			break
		}
		if f.Timer != 0 && k.Timer != f.Timer || f.To != 0 && k.Due >= f.To {
			continue
		}
		t := decode(b)
		if !f.Matches(t) {
			continue
		}
		if len(ts) >= limit {
			return ts, next, nil
		}
		ts, next = append(ts, t), k
	}
	return ts, engine.Key{}, nil
}

func newestFirst(a, b engine.Key) int {
	return cmp.Or(cmp.Compare(b.Due, a.Due), cmp.Compare(b.Timer, a.Timer))
}
