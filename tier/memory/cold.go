package memory

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"xtimer/engine"
	"xtimer/engine/policy"
)

var _ engine.Cold = (*Cold)(nil)

// Cold is the cold tier for tests and simulation: maps behind one lock, sorted
// when they are listed. What it does depends on its calls alone. It keeps what
// it holds over Close and Open, as a disk does.
type Cold struct {
	mu     sync.Mutex // guards all below
	timers map[engine.TimerID]*engine.Timer
	names  map[pair]engine.TimerID // (app, name), of timers with a name
	former map[engine.TimerID][]former
	// deleted is when a timer was deleted whose former versions are kept.
	deleted map[engine.TimerID]int64
	bounds  map[engine.TimerID]int64 // of recurring timers, once raised
	once    map[pair]*policy.Use     // (app, Idempotency-Key)
	owed    map[engine.Key]engine.Owed
	tasks   map[engine.Key][]byte // as AppendTask wrote them
	leftOut map[int64]bool        // minutes
	objects map[engine.ObjectKey]engine.Object
	buckets map[string]engine.Bucket
	shards  [engine.Shards]engine.Shard
	newest  engine.TimerID // the greatest id that was ever stored
	clock   int64          // the latest instant heard of
}

type pair struct{ app, key string }

type former struct {
	timer    *engine.Timer
	replaced int64
}

// NewCold builds an empty tier.
func NewCold() *Cold {
	return &Cold{
		timers:  map[engine.TimerID]*engine.Timer{},
		names:   map[pair]engine.TimerID{},
		former:  map[engine.TimerID][]former{},
		deleted: map[engine.TimerID]int64{},
		bounds:  map[engine.TimerID]int64{},
		once:    map[pair]*policy.Use{},
		owed:    map[engine.Key]engine.Owed{},
		tasks:   map[engine.Key][]byte{},
		leftOut: map[int64]bool{},
		objects: map[engine.ObjectKey]engine.Object{},
		buckets: map[string]engine.Bucket{},
	}
}

// Open has nothing to open.
func (c *Cold) Open(context.Context) error { return nil }

// Close has nothing to close.
func (c *Cold) Close() error { return nil }

// Backup is refused: there is nothing on a disk to copy.
func (c *Cold) Backup(context.Context, string) error {
	return errors.New("a tier in memory has no backup")
}

// Timer finds one timer as it is now.
func (c *Cold) Timer(_ context.Context, id engine.TimerID) (*engine.Timer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timer(id)
}

// TimerByName finds one timer by its name.
func (c *Cold) TimerByName(_ context.Context, app, name string) (*engine.Timer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timer(c.names[pair{app, name}])
}

func (c *Cold) timer(id engine.TimerID) (*engine.Timer, error) {
	if t := c.timers[id]; t != nil {
		return t, nil
	}
	return nil, engine.ErrNotFound
}

// Load reads many encoded definitions, as they are carried, in the order of ids.
func (c *Cold) Load(_ context.Context, ids []engine.TimerID) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([][]byte, len(ids))
	for i, id := range ids {
		if t := c.timers[id]; t != nil {
			out[i] = engine.Carried(t)
		}
	}
	return out, nil
}

// Timers lists by id.
func (c *Cold) Timers(_ context.Context, f engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error) {
	var last engine.TimerID
	if after != "" {
		if last, err = openCursor(after); err != nil {
			return nil, "", err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.ids() {
		if id <= last || !f.Matches(c.timers[id]) {
			continue
		}
		if len(ts) >= limit {
			if len(ts) == 0 {
				return nil, after, nil
			}
			return ts, makeCursor(ts[len(ts)-1].ID), nil
		}
		ts = append(ts, c.timers[id])
	}
	return ts, "", nil
}

func (c *Cold) ids() []engine.TimerID { return slices.Sorted(maps.Keys(c.timers)) }

// Versions lists former versions of a timer, newest first.
func (c *Cold) Versions(_ context.Context, id engine.TimerID, before uint32, limit int) ([]*engine.Timer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ts []*engine.Timer
	for _, f := range slices.Backward(c.former[id]) {
		if len(ts) < limit && (before == 0 || f.timer.Version < before) {
			ts = append(ts, f.timer)
		}
	}
	return ts, nil
}

// Lives pages through every timer that stands or has a version kept.
func (c *Cold) Lives(_ context.Context, after engine.TimerID, limit int) ([]engine.Life, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := append(c.ids(), slices.Collect(maps.Keys(c.former))...)
	slices.Sort(ids)
	var ls []engine.Life
	for _, id := range slices.Compact(ids) {
		if id <= after || len(ls) == limit {
			continue
		}
		l := engine.Life{ID: id}
		for _, f := range c.former[id] {
			l.Versions = append(l.Versions, carried(f.timer))
		}
		if t := c.timers[id]; t != nil {
			l.Versions = append(l.Versions, carried(t))
		} else {
			l.Deleted = c.deleted[id]
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// carried is a timer as it is carried.
func carried(t *engine.Timer) *engine.Timer {
	if t.Payload() > engine.MaxCarried {
		return engine.Head(t)
	}
	return t
}

// Counts counts the timers by stored status.
func (c *Cold) Counts(context.Context) (n engine.Counts, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timers {
		switch t.Status {
		case engine.Enabled:
			n.Enabled++
		case engine.Disabled:
			n.Disabled++
		case engine.Finished:
			n.Finished++
		}
	}
	return n, nil
}

// Due pages through every enabled timer that may have a due in (from, to].
func (c *Cold) Due(_ context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	c.mu.Lock()
	var cs []engine.Candidate
	for _, id := range c.ids() {
		t := c.timers[id]
		if t.Status != engine.Enabled || !of.Has(id.Shard()) {
			continue
		}
		if t.Schedule.OneShot() {
			if due := lastDue(t); due > from && due <= to && due > t.ValidFrom {
				cs = append(cs, engine.Candidate{ID: id, Due: due})
			}
		} else if b := max(t.ValidFrom, c.bounds[id]); b <= to {
			cs = append(cs, engine.Candidate{ID: id, Due: b, Definition: engine.Carried(t)})
		}
	}
	c.mu.Unlock()
	for page := range slices.Chunk(cs, pageSize) {
		if err := yield(page); err != nil {
			return err
		}
	}
	return nil
}

// lastDue is the last due of a timer, of a one-shot the only one; 0 when there
// is no end.
func lastDue(t *engine.Timer) int64 {
	if t.LastDue != 0 {
		return t.LastDue
	}
	return t.At
}

// Raise stores new lower bounds, each for one version of its timer.
func (c *Cold) Raise(_ context.Context, bounds []engine.Bound) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	owing := c.owing()
	for _, b := range bounds {
		t := c.timers[b.ID]
		if t == nil || t.Version != b.Version || t.Status != engine.Enabled || t.Schedule.OneShot() {
			continue
		}
		if b.Finished {
			c.archive(t, owing)
		} else {
			c.bounds[b.ID] = max(c.bounds[b.ID], b.Due)
		}
	}
	return nil
}

// archive marks a timer as finished if its last due is settled and nothing of
// it is owed.
func (c *Cold) archive(t *engine.Timer, owing map[engine.TimerID]bool) {
	if t.Status != engine.Enabled || lastDue(t) > c.shards[t.ID.Shard()].Watermark || t.ValidFrom > c.clock || owing[t.ID] {
		return
	}
	done := *t
	done.Status = engine.Finished
	c.timers[t.ID] = &done
	delete(c.bounds, t.ID)
}

// owing are the timers that have owed rows.
func (c *Cold) owing() map[engine.TimerID]bool {
	owing := map[engine.TimerID]bool{}
	for k := range c.owed {
		owing[k.Timer] = true
	}
	return owing
}

// Owed pages through the owed rows with NotBefore in (from, to].
func (c *Cold) Owed(_ context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	rows := c.owedRows(func(o *engine.Owed) bool {
		return of.Has(o.Key.Timer.Shard()) && o.NotBefore > from && o.NotBefore <= to
	})
	for page := range slices.Chunk(rows, pageSize) {
		if err := yield(page); err != nil {
			return err
		}
	}
	return nil
}

// OwedPage lists the owed rows of one timer that are due after an instant.
func (c *Cold) OwedPage(_ context.Context, id engine.TimerID, after int64, limit int) ([]engine.Owed, error) {
	rows := c.owedRows(func(o *engine.Owed) bool { return o.Key.Timer == id && o.Key.Due > after })
	slices.SortFunc(rows, func(a, b engine.Owed) int { return cmp.Compare(a.Key.Due, b.Key.Due) })
	return rows[:min(len(rows), limit)], nil
}

// Lanes lists the lanes that have a row with NotBefore ≤ to.
func (c *Cold) Lanes(_ context.Context, of engine.Set, to int64) ([]engine.Lane, error) {
	seen := map[engine.Lane]bool{}
	for _, o := range c.owedRows(func(o *engine.Owed) bool { return of.Has(o.Key.Timer.Shard()) && o.NotBefore <= to }) {
		seen[o.Lane] = true
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// OwedIn lists the rows of a lane after a place.
func (c *Cold) OwedIn(_ context.Context, of engine.Set, lane engine.Lane, after engine.Place, to int64, limit int) ([]engine.Owed, error) {
	rows := c.owedRows(func(o *engine.Owed) bool {
		return of.Has(o.Key.Timer.Shard()) && o.Lane == lane && o.NotBefore <= to && o.Place().Compare(after) > 0
	})
	return rows[:min(limit, len(rows))], nil
}

func (c *Cold) owedRows(want func(*engine.Owed) bool) []engine.Owed {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rows []engine.Owed
	o := new(engine.Owed) // one for all: what want is given is on the heap
	for _, *o = range c.owed {
		if want(o) {
			rows = append(rows, *o)
		}
	}
	slices.SortFunc(rows, func(a, b engine.Owed) int { return a.Place().Compare(b.Place()) })
	return rows
}

// Snapshot returns a function that puts the tier back to what it holds now, as a server is
// restored from a backup. It may be called once.
func (c *Cold) Snapshot() (restore func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := &Cold{
		timers: maps.Clone(c.timers), names: maps.Clone(c.names), former: maps.Clone(c.former), deleted: maps.Clone(c.deleted),
		bounds: maps.Clone(c.bounds), once: maps.Clone(c.once), owed: maps.Clone(c.owed), tasks: maps.Clone(c.tasks),
		leftOut: maps.Clone(c.leftOut), objects: maps.Clone(c.objects), shards: c.shards, newest: c.newest, clock: c.clock,
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers, c.names, c.former, c.deleted = was.timers, was.names, was.former, was.deleted
		c.bounds, c.once, c.owed, c.tasks = was.bounds, was.once, was.owed, was.tasks
		c.leftOut, c.objects, c.shards, c.newest, c.clock = was.leftOut, was.objects, was.shards, was.newest, was.clock
	}
}
