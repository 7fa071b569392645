package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"xtimer/engine"
)

// Settle stores results and progress in one commit.
func (s *Store) Settle(ctx context.Context, st *engine.Settlement) error {
	for _, m := range st.Marks {
		if m.Shard < 0 || m.Shard >= engine.Shards {
			return fmt.Errorf("there is no shard %d", m.Shard)
		}
	}
	c := *st
	var ws []write
	if c.Replayed {
		c.Tasks = cloneRecords(st.Tasks)
	} else {
		ws = settledWrites(st.Tasks)
		c.Tasks = nil
	}
	c.Owe, c.Pay, c.Marks = slices.Clone(st.Owe), slices.Clone(st.Pay), slices.Clone(st.Marks)
	weight := len(st.Tasks) + len(st.Owe) + len(st.Pay) + 1
	return s.do(ctx, weight, func(g *group) error { return g.settle(&c, ws) })
}

// settledWrites encodes records in the caller's goroutine: the records in the
// order of their keys, for numbers are sorted faster than keys, and then the
// index by timer.
func settledWrites(rs []engine.Record) []write {
	size := 0
	order := make([]int32, len(rs))
	for i := range rs {
		size += len(rs[i].Encoded) + 32
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &rs[a].Key, &rs[b].Key
		return cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.Timer, y.Timer), cmp.Compare(a, b))
	})
	ws, buf := make([]write, 0, len(rs)+len(rs)/8+8), make([]byte, 0, size)
	indexed := make([]engine.Key, 0, len(rs))
	for _, i := range order {
		r := &rs[i]
		n := len(buf)
		buf = append(buf, r.Encoded...)
		ws, buf = recordWrites(ws, buf, r.Key, r.Status, buf[n:len(buf):len(buf)])
		if !r.Alone {
			indexed = append(indexed, r.Key)
		}
	}
	return indexWrites(ws, indexed)
}

func cloneRecords(rs []engine.Record) []engine.Record {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].Encoded = slices.Clone(rs[i].Encoded)
	}
	return rs
}

// settle judges a settlement: all of it or nothing.
func (g *group) settle(c *engine.Settlement, ws []write) error {
	for _, m := range c.Marks {
		if m.Fence != g.st.shards[m.Shard].Fence {
			return engine.ErrFenced
		}
	}
	if err := g.fetchOwed(c.Pay, c.Owe); err != nil {
		return err
	}
	if c.Replayed {
		var err error
		if ws, err = g.replayed(c.Tasks); err != nil {
			return err
		}
		c.Owe = slices.DeleteFunc(c.Owe, func(o engine.Owed) bool {
			was := g.owed[o.Key]
			return was != nil && engine.RankOf(o.Task).Attempt < engine.RankOf(was.Task).Attempt
		})
	}
	g.putAll(ws)
	g.pay(c.Pay)
	g.owe(c.Owe)
	for _, m := range c.Marks {
		g.mark(c.Owner, m)
	}
	return nil
}

// replayed picks those records of a journal that say more than what is stored.
func (g *group) replayed(rs []engine.Record) ([]write, error) {
	var ws []write
	ranks := map[engine.Key]engine.Rank{}
	for _, r := range rs {
		t, err := engine.DecodeTask(r.Encoded)
		if err != nil {
			return nil, err
		}
		was, ok := ranks[r.Key]
		if !ok {
			if was, err = g.rank(r.Key); err != nil {
				return nil, err
			}
		}
		if now := engine.RankOf(t); !now.Below(was) {
			ranks[r.Key] = now
			ws, _ = recordWrites(ws, nil, r.Key, r.Status, r.Encoded)
			ws = indexWrites(ws, []engine.Key{r.Key})
		}
	}
	for k, r := range ranks {
		g.ranks[k] = r
	}
	return ws, nil
}

// rank of the stored record; zero for none.
func (g *group) rank(k engine.Key) (engine.Rank, error) {
	if r, ok := g.ranks[k]; ok {
		return r, nil
	}
	g.probe = recordKey(g.probe[:0], k)
	b, err := g.get(g.probe)
	if b == nil || err != nil {
		return engine.Rank{}, err
	}
	t, err := engine.DecodeTask(b)
	if err != nil {
		return engine.Rank{}, damaged(g.probe, err)
	}
	return engine.RankOf(t), nil
}

// recordWrites are the writes of one record, their keys cut from buf, but for the
// index by timer. The entry of a failure stays when a redrive succeeds: readers
// look at the record.
func recordWrites(ws []write, buf []byte, k engine.Key, st engine.TaskStatus, encoded []byte) ([]write, []byte) {
	cut := func(n int) []byte { return buf[n:len(buf):len(buf)] }
	n := len(buf)
	buf = recordKey(buf, k)
	ws = append(ws, write{key: cut(n), val: encoded})
	if st.IsFailure() {
		n = len(buf)
		buf = timeKey(buf, kindFailure, k.Due, k.Timer)
		ws = append(ws, write{key: cut(n), val: none})
	}
	return ws, buf
}
