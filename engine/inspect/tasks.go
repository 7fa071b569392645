package inspect

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"

	"xtimer/engine"
	"xtimer/engine/resident"
)

// Task finds one task, open or finished. ErrElsewhere: see View.
func (r *Reader) Task(ctx context.Context, k engine.Key) (*engine.Task, error) {
	if err := r.memory.Owns(k.Timer); err != nil {
		return nil, err
	}
	if t := r.memory.Task(k); t != nil {
		return t, nil
	}
	ended := r.memory.Former.Timers()
	stored, err := r.cfg.Cold.Task(ctx, k)
	switch {
	case err == nil:
		ended.Show(stored)
	case errors.Is(err, engine.ErrNotFound):
		if stored, err = r.outside(ctx, k); err == nil {
			ended.Show(stored)
		} else if errors.Is(err, engine.ErrNotFound) { // the row may have been removed since: then there is a record
			stored, err = r.cfg.Cold.Task(ctx, k)
		}
	}
	return stored, err
}

// outside makes the task of a row that no record tells of: the task waits for room in memory.
func (r *Reader) outside(ctx context.Context, k engine.Key) (*engine.Task, error) {
	o, err := r.RowAt(ctx, k)
	if err != nil {
		return nil, err
	}
	if o == nil || o.To != 0 || o.Damaged != nil {
		return nil, engine.ErrNotFound
	}
	t, err := r.cfg.Cold.Timer(ctx, k.Timer)
	if err != nil {
		return nil, err
	}
	return &engine.Task{
		Key: k, App: t.App, Name: t.Name, Generation: o.Generation, Origin: o.Origin, Status: engine.Waiting, Since: k.Due, NotBefore: o.NotBefore,
	}, nil
}

// HadTask reports whether a key is or was a task's.
func (r *Reader) HadTask(ctx context.Context, k engine.Key) (bool, error) {
	_, err := r.Task(ctx, k)
	if errors.Is(err, engine.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Newest is the newest tasks in the memory of a process that a list selects.
type Newest struct {
	Tasks []*engine.Task // with their last attempts only
	// Next: all that are selected and not older are among them; zero: all are.
	Next engine.Key
}

// Tasks lists tasks newest first, by (due, timer), those in memory included:
// what is older than before (zero: from the newest on). A zero next is the end. Of a
// task's attempts it has the last only; Task has all. elsewhere is what Newest of the other
// nodes said of the same list before.
func (r *Reader) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int, elsewhere ...Newest) (page []*engine.Task, next engine.Key, err error) {
	inMemory := append(elsewhere, r.Newest(&f, before, limit)) // first: what is settled meanwhile is then in both
	stored, next, err := r.stored(ctx, f, before, limit)
	if err != nil {
		return nil, engine.Key{}, err
	}
	byKey := make(map[engine.Key]*engine.Task, len(stored))
	for _, t := range stored {
		byKey[t.Key] = t
	}
	for _, n := range inMemory {
		if next.Compare(n.Next) < 0 {
			next = n.Next
		}
		for _, t := range n.Tasks {
			byKey[t.Key] = t // as it stands now
		}
	}
	maps.DeleteFunc(byKey, func(k engine.Key, _ *engine.Task) bool { return k.Compare(next) < 0 })
	page = slices.SortedFunc(maps.Values(byKey), func(a, b *engine.Task) int { return b.Key.Compare(a.Key) })
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Key
	}
	return page, next, nil
}

// storedAtOnce is how many records of history a list has in memory with all that is in
// them: one may have a hundred attempts, and more.
const storedAtOnce = 64

// stored reads a page of history in pieces, without the records that cannot be read: verify
// tells of these.
func (r *Reader) stored(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	for next = before; len(ts) < limit; {
		n := min(limit-len(ts), storedAtOnce)
		ended := r.memory.Former.Timers()
		piece, after, err := r.cfg.Cold.Tasks(ctx, f, next, n)
		if d := engine.DamagedRecord(err, next); d != nil {
			next = d.Key
			continue
		}
		if err != nil {
			return nil, engine.Key{}, err
		}
		next = after
		for _, t := range piece {
			if live := r.memory.Task(t.Key); live != nil {
				t = live // the record is of before
			} else {
				ended.Show(t)
			}
			if f.Matches(t) {
				ts = append(ts, Listed(t))
			}
		}
		if len(piece) < n || next == (engine.Key{}) {
			break
		}
	}
	return ts, next, nil
}

// Newest copies the newest tasks in memory that f selects and that are older than
// before (zero: all of them), limit of them at most: a look costs the memory of what it
// returns, however many tasks wait.
func (r *Reader) Newest(f *engine.TaskFilter, before engine.Key, limit int) (n Newest) {
	found := newestTasks{limit: limit}
	add := func(t *resident.Task) {
		if f.Matches(&t.Task) && (before == engine.Key{} || t.Key.Compare(before) < 0) {
			found.add(t)
		}
	}
	if f.Timer != 0 {
		r.memory.EachTaskOf(f.Timer.Shard(), add)
	} else {
		r.memory.EachTask(add)
	}
	if found.more {
		n.Next = found.heap[0].Key
	}
	for _, t := range found.heap {
		r.memory.Look(t, func() {
			if f.Matches(&t.Task) { // as it stands now
				n.Tasks = append(n.Tasks, r.open(t))
			}
		})
	}
	return n
}

// newestTasks keeps the newest of the tasks that are added, the oldest of them first.
type newestTasks struct {
	limit int
	heap  []*resident.Task
	more  bool // older ones were left out
}

func (h *newestTasks) Len() int           { return len(h.heap) }
func (h *newestTasks) Less(i, j int) bool { return h.heap[i].Key.Compare(h.heap[j].Key) < 0 }
func (h *newestTasks) Swap(i, j int)      { h.heap[i], h.heap[j] = h.heap[j], h.heap[i] }
func (h *newestTasks) Push(x any)         { h.heap = append(h.heap, x.(*resident.Task)) }
func (h *newestTasks) Pop() any           { panic("BUG: nothing takes a task out") }

func (h *newestTasks) add(t *resident.Task) {
	switch {
	case len(h.heap) < h.limit:
		heap.Push(h, t)
	case h.heap[0].Key.Compare(t.Key) < 0:
		h.heap[0], h.more = t, true
		heap.Fix(h, 0)
	default:
		h.more = true
	}
}

// LastTasks gives each view its LastTask, unless its owner has told it: one read of the history
// each, of one record.
// A shard's tasks in memory are looked through once for all of its timers.
func (r *Reader) LastTasks(ctx context.Context, vs []View) error {
	open := r.newestOf(vs)
	ended := r.memory.Former.Timers()
	for i := range vs {
		if vs[i].told {
			continue
		}
		id := vs[i].ID
		last, err := r.cfg.Cold.LastTask(ctx, id)
		if err != nil && !errors.Is(err, engine.ErrNotFound) && !errors.As(err, new(*engine.Damage)) {
			return err
		}
		if last != nil {
			ended.Show(last)
		}
		if t := open[id]; t != nil && (last == nil || t.Key.Due >= last.Key.Due) {
			last = t
		}
		if last != nil {
			vs[i].LastTask = Listed(last)
		}
	}
	return nil
}

// newestOf copies the newest task in memory of each of these timers that has one.
func (r *Reader) newestOf(vs []View) map[engine.TimerID]*engine.Task {
	var wanted [engine.Shards]map[engine.TimerID]*resident.Task
	for i := range vs {
		n := vs[i].ID.Shard()
		if wanted[n] == nil {
			wanted[n] = make(map[engine.TimerID]*resident.Task)
		}
		wanted[n][vs[i].ID] = nil
	}
	copies := make(map[engine.TimerID]*engine.Task)
	for i, newest := range wanted {
		if newest == nil {
			continue
		}
		r.memory.EachTaskOf(i, func(t *resident.Task) {
			if last, ok := newest[t.Key.Timer]; ok && (last == nil || last.Key.Compare(t.Key) < 0) {
				newest[t.Key.Timer] = t
			}
		})
		for id, t := range newest {
			if t != nil {
				r.memory.Look(t, func() { copies[id] = r.open(t) })
			}
		}
		runtime.Gosched() // what is due goes first
	}
	return copies
}

// open is a copy for a list of a task in memory. Mu of its shard is held.
func (r *Reader) open(t *resident.Task) *engine.Task {
	c := Listed(&t.Task)
	r.memory.Holding(t, c)
	return c
}

// Listed is a copy of a task for a list: of the attempts it has the last only, and it
// keeps no memory of the others. A task may have had hundreds, of 1 KiB each.
func Listed(t *engine.Task) *engine.Task {
	c := *t
	c.App, c.Name, c.Reason = strings.Clone(t.App), strings.Clone(t.Name), strings.Clone(t.Reason)
	c.Attempts = slices.Clone(t.Attempts[max(0, len(t.Attempts)-1):])
	for i := range c.Attempts {
		a := &c.Attempts[i]
		a.ErrorClass, a.Response = strings.Clone(a.ErrorClass), bytes.Clone(a.Response)
	}
	return &c
}
