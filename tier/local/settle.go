package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// Settle stores results and progress in one commit.
func (s *Store) Settle(ctx context.Context, st *engine.Settlement) error {
	for _, m := range st.Marks {
		if m.Shard < 0 || m.Shard >= engine.Shards {
			return fmt.Errorf("there is no shard %d", m.Shard)
		}
	}
	c := *st
	w := settlers.Get().(*settler)
	if c.Replayed {
		c.Tasks = slices.Clone(st.Tasks)
	} else {
		w.encode(st.Tasks)
		c.Tasks = nil
	}
	c.Owe, c.Pay, c.Marks, c.LeftOut = slices.Clone(st.Owe), slices.Clone(st.Pay), slices.Clone(st.Marks), slices.Clone(st.LeftOut)
	newest := st.Newest()
	weight := len(st.Tasks) + len(st.Owe) + len(st.Pay) + 1
	if err := s.do(ctx, weight, func(g *group) error { return g.settle(&c, w.writes, newest) }); err != nil {
		return err // w may still be in the committer's hands
	}
	w.recycle()
	return nil
}

// settler encodes records in the caller's goroutine. Its room is used again: made
// anew for each settle it was a tenth of the garbage of a fire.
type settler struct {
	order  []dueOrder
	keys   []byte // of the records
	index  []engine.Key
	writes []write
}

// dueOrder is a record's place in the order of the keys of history.
type dueOrder struct {
	due   int64
	timer engine.TimerID
	at    int // among the records
}

var settlers = sync.Pool{New: func() any { return new(settler) }}

// maxSettler is the most writes that a settler has room for when it is kept.
const maxSettler = 1 << 17

func (w *settler) recycle() {
	if cap(w.writes) > maxSettler {
		return
	}
	clear(w.writes)
	w.order, w.keys, w.index, w.writes = w.order[:0], w.keys[:0], w.index[:0], w.writes[:0]
	settlers.Put(w)
}

// encode makes the writes: the records in the order of their keys, for numbers
// are sorted faster than keys, and then the index by timer.
func (w *settler) encode(rs []engine.Record) {
	for i := range rs {
		w.order = append(w.order, dueOrder{rs[i].Key.Due, rs[i].Key.Timer, i})
	}
	slices.SortFunc(w.order, func(a, b dueOrder) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.timer, b.timer), cmp.Compare(a.at, b.at))
	})
	w.keys = slices.Grow(w.keys, len(recordKey(nil, engine.Key{}))*len(rs))
	w.writes = slices.Grow(w.writes, len(rs)+len(rs)/8+8)
	for n, o := range w.order {
		if n%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
		r := &rs[o.at]
		w.writes, w.keys = recordWrites(w.writes, w.keys, r.Key, r.Status, r.Encoded)
		if !r.Alone {
			w.index = append(w.index, r.Key)
		}
	}
	w.writes = indexWrites(w.writes, w.index)
}

// settle writes a settlement, all of it or nothing. newest is its greatest id.
func (g *group) settle(c *engine.Settlement, ws []write, newest engine.TimerID) error {
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
		c.Owe = policy.LaterRows(c.Owe, func(k engine.Key) *engine.Owed { return g.owed[k] })
	}
	if newest > g.st.newest { // no stored timer holds it
		g.note(newest)
	}
	g.st.touch(ws)
	g.putAll(ws)
	g.pay(c.Pay)
	g.owe(c.Owe)
	for _, m := range c.LeftOut {
		g.put(leftOutKey(m), none)
	}
	for _, m := range c.Marks {
		g.mark(c.Owner, m)
	}
	return nil
}

// replayed returns the writes of the records of a journal that say no less than
// the stored ones.
func (g *group) replayed(rs []engine.Record) (ws []write, err error) {
	ranks := map[engine.Key]engine.Rank{}
	for _, r := range rs {
		if ranks[r.Key], err = g.rank(r.Key); err != nil {
			return nil, err
		}
	}
	later, err := policy.LaterRecords(rs, ranks)
	if err != nil {
		return nil, err
	}
	maps.Copy(g.ranks, ranks)
	for i := range later {
		r := &later[i]
		ws, _ = recordWrites(ws, nil, r.Key, r.Status, r.Encoded)
		ws = indexWrites(ws, []engine.Key{r.Key})
	}
	return ws, nil
}

// rank of the stored record; zero for none, and for one that is damaged: the journal has
// it whole.
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
		return engine.Rank{}, nil
	}
	return engine.RankOf(t), nil
}

// recordWrites are the writes of one record, their keys cut from buf, except for the
// index by timer. The entry of a failure stays when a redrive succeeds: readers
// look at the record.
func recordWrites(ws []write, buf []byte, k engine.Key, st engine.TaskStatus, encoded []byte) ([]write, []byte) {
	cut := func(n int) []byte { return buf[n:len(buf):len(buf)] }
	n := len(buf)
	buf = recordKey(buf, k)
	ws = append(ws, write{key: cut(n), val: encoded})
	if kind, value := indexOf(st, encoded); kind != 0 {
		n = len(buf)
		buf = timeKey(buf, kind, k.Due, k.Timer)
		ws = append(ws, write{key: cut(n), val: value})
	}
	return ws, buf
}

// indexOf is the index that has a record, that of failures or that of misfires, and what the
// index says: the record's app, so that a search for those of one app does not read the records
// of the others. 0: none has it.
func indexOf(st engine.TaskStatus, encoded []byte) (kind byte, value []byte) {
	if !st.IsFailure() && st != engine.Skipped {
		return 0, nil
	}
	t, err := engine.DecodeTask(encoded)
	switch {
	case err != nil && st.IsFailure():
		return kindFailure, none // the reader finds the damage in the record
	case err == nil && st.IsFailure():
		kind = kindFailure
	case err == nil && t.IsMisfire():
		kind = kindMisfire
	default:
		return 0, nil
	}
	return kind, append(slices.Clone(none), t.App...)
}
