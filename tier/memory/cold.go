package memory

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/RaduBerinde/btreemap"

	"xtimer/engine"
	"xtimer/engine/policy"
)

var _ engine.Cold = (*Cold)(nil)

// Cold is the cold tier for tests and simulation: maps behind one lock, sorted
// when they are listed. What it does depends on its calls alone. It keeps what
// it holds over Close and Open, as a disk does.
type Cold struct {
	mu     sync.Mutex // guards all below
	timers *btreemap.BTreeMap[engine.TimerID, *engine.Timer]
	names  map[pair]engine.TimerID // (app, name), of timers with a name
	former map[engine.TimerID][]former
	// deleted is when a timer was deleted whose former versions are kept.
	deleted map[engine.TimerID]int64
	bounds  map[engine.TimerID]int64 // of recurring timers, once raised
	once    map[pair]*policy.Use     // (app, Idempotency-Key)
	owed    rows
	tasks   *btreemap.BTreeMap[engine.Key, []byte] // newest first, as AppendTask wrote them
	leftOut map[int64]bool                         // minutes
	objects map[engine.ObjectKey]engine.Object
	revised uint64 // grows with each change of the objects
	buckets map[string]engine.Bucket
	shards  [engine.Shards]engine.Shard
	newest  engine.TimerID  // the greatest id that was ever stored
	clock   int64           // the latest instant heard of
	marked  func(shard int) // tells the table of nodes that a watermark is stored; nil: there is none
}

type pair struct{ app, key string }

type former struct {
	timer    *engine.Timer
	replaced int64
}

// NewCold builds an empty tier.
func NewCold() *Cold {
	return &Cold{
		timers:  btreemap.New[engine.TimerID, *engine.Timer](degree, cmp.Compare[engine.TimerID]),
		names:   map[pair]engine.TimerID{},
		former:  map[engine.TimerID][]former{},
		deleted: map[engine.TimerID]int64{},
		bounds:  map[engine.TimerID]int64{},
		once:    map[pair]*policy.Use{},
		owed:    newRows(),
		tasks:   btreemap.New[engine.Key, []byte](degree, newestFirst),
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
	if t := c.get(id); t != nil {
		return t, nil
	}
	return nil, engine.ErrNotFound
}

// get is nil for a timer that does not stand. mu is held.
func (c *Cold) get(id engine.TimerID) *engine.Timer {
	_, t, _ := c.timers.Get(id)
	return t
}

// all are the timers by id. mu is held.
func (c *Cold) all() iter.Seq2[engine.TimerID, *engine.Timer] {
	return c.timers.Ascend(btreemap.Min[engine.TimerID](), btreemap.Max[engine.TimerID]())
}

// Load reads many encoded definitions, as they are carried, in the order of ids.
func (c *Cold) Load(_ context.Context, ids []engine.TimerID) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([][]byte, len(ids))
	for i, id := range ids {
		if t := c.get(id); t != nil {
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
	for _, t := range c.timers.Ascend(btreemap.GT(last), btreemap.Max[engine.TimerID]()) {
		if !f.Matches(t) {
			continue
		}
		if len(ts) >= limit {
			if len(ts) == 0 {
				return nil, after, nil
			}
			return ts, makeCursor(ts[len(ts)-1].ID), nil
		}
		ts = append(ts, t)
	}
	return ts, "", nil
}

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
	var ids []engine.TimerID
	for id := range c.timers.Ascend(btreemap.GT(after), btreemap.Max[engine.TimerID]()) {
		ids = append(ids, id)
	}
	for id := range c.former {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var ls []engine.Life
	for _, id := range slices.Compact(ids) {
		if len(ls) == limit {
			break
		}
		l := engine.Life{ID: id}
		for _, f := range c.former[id] {
			l.Versions = append(l.Versions, carried(f.timer))
		}
		if t := c.get(id); t != nil {
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
	for _, t := range c.all() {
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
	for id, t := range c.all() {
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
	for _, b := range bounds {
		t := c.get(b.ID)
		if t == nil || t.Version != b.Version || t.Status != engine.Enabled || t.Schedule.OneShot() {
			continue
		}
		if b.Finished {
			c.archive(t)
		} else {
			c.bounds[b.ID] = max(c.bounds[b.ID], b.Due)
		}
	}
	return nil
}

// archive marks a timer as finished if its last due is settled and nothing of
// it is owed.
func (c *Cold) archive(t *engine.Timer) {
	if t.Status != engine.Enabled || lastDue(t) > c.shards[t.ID.Shard()].Watermark || t.ValidFrom > c.clock || c.owed.has(t.ID) {
		return
	}
	done := *t
	done.Status = engine.Finished
	c.timers.ReplaceOrInsert(t.ID, &done)
	delete(c.bounds, t.ID)
}
