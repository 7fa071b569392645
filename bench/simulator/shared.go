package simulator

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"xtimer/engine"
	"xtimer/tier/memory"
)

var errDead = errors.New("this process is dead")

// write has a life write to MySQL: if the table has not ended it, in one transaction with
// that look.
func (l *life) write(ctx context.Context, do func() error) error {
	n := l.node
	return l.cross(ctx, func() error {
		n.writing.Lock()
		defer n.writing.Unlock()
		switch {
		case l.isOver():
			return errDead
		case !n.living(l.n):
			return engine.ErrFenced
		}
		return do()
	}, &n.all, &n.mysql)
}

// read has a life read from MySQL.
func (l *life) read(ctx context.Context, do func() error) error {
	return l.cross(ctx, func() error {
		if l.isOver() {
			return errDead
		}
		return do()
	}, &l.node.all, &l.node.mysql)
}

// isOver reports whether nothing of a life reaches anybody any more.
func (l *life) isOver() bool {
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	return l.over
}

// sharedCold is the cold tier as one life of a node sees it.
type sharedCold struct {
	*memory.Cold
	l *life
}

func (c *sharedCold) Apply(ctx context.Context, ch *engine.Change) (a engine.Applied, err error) {
	err = c.l.write(ctx, func() (err error) { a, err = c.Cold.Apply(ctx, ch); return err })
	if err != nil {
		a.Err = err
	}
	return a, err
}

func (c *sharedCold) ApplyAll(ctx context.Context, cs []*engine.Change) (as []engine.Applied) {
	if err := c.l.write(ctx, func() error { as = c.Cold.ApplyAll(ctx, cs); return nil }); err != nil {
		as = make([]engine.Applied, len(cs))
		for i := range as {
			as[i].Err = err
		}
	}
	return as
}

func (c *sharedCold) Settle(ctx context.Context, s *engine.Settlement) error {
	c.l.reach("before a settle")
	defer c.l.reach("after a settle")
	return c.l.write(ctx, func() error {
		f := c.l.node.fleet
		if c.l.settled > f.settled[c.l.n] { // MySQL has lost some
			return engine.ErrFenced
		}
		if err := c.l.holds(ctx, s.Marks); err != nil {
			return err
		}
		err := c.Cold.Settle(ctx, s)
		if err == nil {
			f.settled[c.l.n]++
			c.l.settled = f.settled[c.l.n]
		}
		for _, m := range s.Marks {
			if err == nil {
				c.l.marked[m.Shard] = max(c.l.marked[m.Shard], m.W)
			}
		}
		return err
	})
}

// holds refuses marks as MySQL does: of shards that another life holds, be it under the same
// fence, and of those whose watermark is earlier than the life has stored. writing is held.
func (l *life) holds(ctx context.Context, marks []engine.Mark) error {
	seen, err := l.node.table.Look(ctx, 0)
	if err != nil {
		return err
	}
	shards, err := l.node.cold.Shards(ctx)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if seen.Shards[m.Shard].Holder != uint64(l.n) || shards[m.Shard].Watermark < l.marked[m.Shard] {
			return engine.ErrFenced
		}
	}
	return nil
}

func (c *sharedCold) Raise(ctx context.Context, bs []engine.Bound) error {
	return c.l.write(ctx, func() error {
		seen, err := c.l.node.table.Look(ctx, 0)
		if err != nil {
			return err
		}
		held := slices.DeleteFunc(slices.Clone(bs), func(b engine.Bound) bool { return seen.Shards[b.ID.Shard()].Holder != uint64(c.l.n) })
		marks := make([]engine.Mark, len(held))
		for i := range held {
			marks[i].Shard = held[i].ID.Shard()
		}
		if err := c.l.holds(ctx, marks); err != nil {
			return err
		}
		return c.Cold.Raise(ctx, held)
	})
}

func (c *sharedCold) Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (more bool, err error) {
	err = c.l.write(ctx, func() (err error) { more, err = c.Cold.Sweep(ctx, now, finishedBefore, historyBefore); return err })
	return more, err
}

func (c *sharedCold) Timer(ctx context.Context, id engine.TimerID) (t *engine.Timer, err error) {
	err = c.l.read(ctx, func() (err error) { t, err = c.Cold.Timer(ctx, id); return err })
	return t, err
}

func (c *sharedCold) TimerByName(ctx context.Context, app, name string) (t *engine.Timer, err error) {
	err = c.l.read(ctx, func() (err error) { t, err = c.Cold.TimerByName(ctx, app, name); return err })
	return t, err
}

func (c *sharedCold) Load(ctx context.Context, ids []engine.TimerID) (bs [][]byte, err error) {
	err = c.l.read(ctx, func() (err error) { bs, err = c.Cold.Load(ctx, ids); return err })
	return bs, err
}

func (c *sharedCold) Counts(ctx context.Context) (n engine.Counts, err error) {
	err = c.l.read(ctx, func() (err error) { n, err = c.Cold.Counts(ctx); return err })
	return n, err
}

// Shards is what a gain reads first: now it looks what is late.
func (c *sharedCold) Shards(ctx context.Context) (shards []engine.Shard, err error) {
	c.l.reach("before a gain")
	err = c.l.read(ctx, func() (err error) { shards, err = c.Cold.Shards(ctx); return err })
	n := c.l.node
	n.mu.Lock()
	n.looks = append(n.looks, look{n.since(), n.wallOf(c.l).UnixMilli()})
	n.mu.Unlock()
	return shards, err
}

// Due and Owed take their pages at the tier, and yield them here.
func (c *sharedCold) Due(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	var pages [][]engine.Candidate
	err := c.l.read(ctx, func() error {
		return c.Cold.Due(ctx, of, from, to, func(cs []engine.Candidate) error {
			pages = append(pages, slices.Clone(cs))
			return nil
		})
	})
	for _, p := range pages {
		if err == nil {
			err = yield(p)
		}
	}
	return err
}

func (c *sharedCold) Owed(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	var pages [][]engine.Owed
	err := c.l.read(ctx, func() error {
		return c.Cold.Owed(ctx, of, from, to, func(os []engine.Owed) error {
			pages = append(pages, slices.Clone(os))
			return nil
		})
	})
	for _, p := range pages {
		if err == nil {
			err = yield(p)
		}
	}
	return err
}

func (c *sharedCold) Lanes(ctx context.Context, of engine.Set, to int64) (ls []engine.Lane, err error) {
	err = c.l.read(ctx, func() (err error) { ls, err = c.Cold.Lanes(ctx, of, to); return err })
	return ls, err
}

func (c *sharedCold) OwedIn(ctx context.Context, of engine.Set, lane engine.Lane, after engine.Place, to int64, limit int) (os []engine.Owed, err error) {
	err = c.l.read(ctx, func() (err error) {
		n := c.l.node
		n.writing.Lock()
		defer n.writing.Unlock()
		if c.l.settled > n.fleet.settled[c.l.n] { // MySQL has lost some
			return engine.ErrFenced
		}
		os, err = c.Cold.OwedIn(ctx, of, lane, after, to, limit)
		return err
	})
	return os, err
}

func (c *sharedCold) OwedPage(ctx context.Context, id engine.TimerID, after int64, limit int) (os []engine.Owed, err error) {
	err = c.l.read(ctx, func() (err error) { os, err = c.Cold.OwedPage(ctx, id, after, limit); return err })
	return os, err
}

func (c *sharedCold) Task(ctx context.Context, k engine.Key) (t *engine.Task, err error) {
	err = c.l.read(ctx, func() (err error) { t, err = c.Cold.Task(ctx, k); return err })
	return t, err
}

func (c *sharedCold) Taken(ctx context.Context, ranges []engine.Owed) (taken []bool, err error) {
	err = c.l.read(ctx, func() (err error) { taken, err = c.Cold.Taken(ctx, ranges); return err })
	return taken, err
}

func (c *sharedCold) Ranks(ctx context.Context, ks []engine.Key) (ranks []engine.Rank, err error) {
	err = c.l.read(ctx, func() (err error) { ranks, err = c.Cold.Ranks(ctx, ks); return err })
	return ranks, err
}

func (c *sharedCold) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	err = c.l.read(ctx, func() (err error) { ts, next, err = c.Cold.Tasks(ctx, f, before, limit); return err })
	return ts, next, err
}

// sharedWarm is the warm tier as one life sees it. What makes a minute whole is known to the
// life alone; the definitions that it has put there stay, also while another node has their
// shard.
type sharedWarm struct {
	*memory.Warm
	l           *life
	definitions map[engine.TimerID][]byte // guarded by machine.mu, as is versions
	versions    map[engine.TimerID]uint32 // the latest that it was told of; of a timer that is deleted the greatest number
}

func (w *sharedWarm) do(ctx context.Context, f func() error) error {
	return w.l.cross(ctx, f, &w.l.node.redis)
}

func (w *sharedWarm) Open(ctx context.Context) error {
	return w.do(ctx, func() error { return w.Warm.Open(ctx) })
}

func (w *sharedWarm) Add(ctx context.Context, es []engine.Entry) error {
	return w.do(ctx, func() error {
		w.l.node.mu.Lock()
		for i := range es {
			if es[i].Definition != nil {
				w.put(es[i].ID, es[i].Definition)
			}
		}
		w.l.node.mu.Unlock()
		return w.Warm.Add(ctx, es)
	})
}

func (w *sharedWarm) Seal(ctx context.Context, of engine.Set, from, to int64) error {
	return w.do(ctx, func() error { return w.Warm.Seal(ctx, of, from, to) })
}

func (w *sharedWarm) Load(ctx context.Context, of engine.Set, minute int64, yield func([]engine.Entry) error) error {
	var pages [][]engine.Entry
	err := w.do(ctx, func() error {
		return w.Warm.Load(ctx, of, minute, func(es []engine.Entry) error {
			w.l.node.mu.Lock()
			for i := range es {
				es[i].Definition = w.definitions[es[i].ID]
			}
			w.l.node.mu.Unlock()
			pages = append(pages, es)
			return nil
		})
	})
	for _, p := range pages {
		if err == nil {
			err = yield(p)
		}
	}
	return err
}

func (w *sharedWarm) Update(_ context.Context, id engine.TimerID, definition []byte) {
	w.l.node.mu.Lock()
	defer w.l.node.mu.Unlock()
	if definition == nil {
		w.versions[id] = math.MaxUint32
		delete(w.definitions, id)
	} else {
		w.put(id, definition)
	}
}

// put keeps a definition, unless a later version was told of. machine.mu is held.
func (w *sharedWarm) put(id engine.TimerID, definition []byte) {
	if v := versionOf(definition); v >= w.versions[id] {
		w.versions[id], w.definitions[id] = v, bytes.Clone(definition)
	}
}

func (w *sharedWarm) Drop(ctx context.Context, before int64) error {
	return w.do(ctx, func() error { return w.Warm.Drop(ctx, before) })
}

func versionOf(definition []byte) uint32 {
	var t engine.Timer
	if err := engine.DecodeTimerHead(definition, &t); err != nil {
		panic(err)
	}
	return t.Version
}

// sharedMirror is the mirror as one life sees it.
type sharedMirror struct{ l *life }

// now is the mirror as Redis has it now.
func (m *sharedMirror) now() *memory.Mirror {
	m.l.node.mu.Lock()
	defer m.l.node.mu.Unlock()
	return m.l.node.mirror
}

func (m *sharedMirror) Append(ctx context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	m.l.reach("before a copy")
	err = m.l.cross(ctx, func() (err error) {
		if m.l.isOver() {
			return errDead
		}
		whole, err = m.now().Append(ctx, life, groups, first, last)
		return err
	}, &m.l.node.redis)
	return whole, err
}

func (m *sharedMirror) Read(ctx context.Context, life uint64, yield func(task []byte) error) error {
	return m.l.cross(ctx, func() error { return m.now().Read(ctx, life, yield) }, &m.l.node.redis)
}
