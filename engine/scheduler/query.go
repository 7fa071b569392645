package scheduler

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/resident"
)

// View is a timer as a reader sees it now.
type View struct {
	*engine.Timer
	Status   engine.Status // hides the stored one: see Timer.StatusAt
	Until    int64         // disabled until (Unix ms); 0: none
	NextDue  int64         // Unix ms; 0: none
	LastTask *engine.Task  // with its last attempt only; nil: none yet
}

// view is a timer as it stands now, without its last task.
func (e *Scheduler) view(ctx context.Context, t *engine.Timer) View {
	now := e.now()
	v := View{Timer: t, Status: e.status(t, now), Until: t.DisabledUntil(now)}
	if t.Status == engine.Enabled {
		v.NextDue = e.nextDue(ctx, t, now)
	}
	return v
}

// status is the timer's status with its end derived: it is over when its last
// due has passed and nothing of it is under way.
func (e *Scheduler) status(t *engine.Timer, now int64) engine.Status {
	if t.LastDue == 0 || t.LastDue > now {
		return t.StatusAt(now, false)
	}
	return t.StatusAt(now, !e.memory.IsBusy(t.ID, now))
}

// Definition finds one timer as it is stored, without its last task.
func (e *Scheduler) Definition(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	return e.cfg.Cold.Timer(ctx, id)
}

// Timer finds one timer.
func (e *Scheduler) Timer(ctx context.Context, id engine.TimerID) (View, error) {
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return View{}, err
	}
	return e.View(ctx, t)
}

// TimerByName finds one timer by its name.
func (e *Scheduler) TimerByName(ctx context.Context, app, name string) (View, error) {
	t, err := e.cfg.Cold.TimerByName(ctx, app, name)
	if err != nil {
		return View{}, err
	}
	return e.View(ctx, t)
}

// View completes what Definition found.
func (e *Scheduler) View(ctx context.Context, t *engine.Timer) (v View, err error) {
	v = e.view(ctx, t)
	if v.LastTask, err = e.lastTask(ctx, t.ID); err != nil {
		return v, err
	}
	if v.Status == engine.Finished && t.Status == engine.Enabled {
		// A retry that is minutes away is not in memory.
		open, err := e.isOwed(ctx, t)
		if err != nil {
			return v, err
		}
		if open {
			v.Status = engine.Enabled
		}
	}
	return v, nil
}

// Timers lists timers by keyset; views have no LastTask: see LastTasks. f.Status is the status
// that a reader sees. A page may be short and still have a next cursor.
func (e *Scheduler) Timers(ctx context.Context, f engine.TimerFilter, after string, limit int) ([]View, string, error) {
	stored := f
	if f.HasStatus {
		// What a reader sees as finished or disabled may be stored as enabled.
		stored.HasStatus = f.Status == engine.Enabled
	}
	ts, next, err := e.cfg.Cold.Timers(ctx, stored, after, limit)
	if err != nil {
		return nil, "", err
	}
	vs := make([]View, 0, len(ts))
	for _, t := range ts {
		if v := e.view(ctx, t); !f.HasStatus || v.Status == f.Status {
			vs = append(vs, v)
		}
	}
	return vs, next, nil
}

// What a count of timers goes through: so many that it finds, or for so long.
const (
	mostCounted = 10_000
	countFor    = 50 * time.Millisecond
)

// CountTimers counts the timers that f selects; not exact: there are at least so many.
func (e *Scheduler) CountTimers(ctx context.Context, f engine.TimerFilter) (n int64, exact bool, err error) {
	if f.IsEmpty() {
		c, err := e.cfg.Cold.Counts(ctx)
		return c.Enabled + c.Disabled + c.Finished, true, err
	}
	stored := f
	if f.HasStatus {
		stored.HasStatus = f.Status == engine.Enabled
	}
	now := e.now()
	for begun, after := time.Now(), ""; ; {
		ts, next, err := e.cfg.Cold.Timers(ctx, stored, after, 1000)
		if err != nil {
			return 0, false, err
		}
		for _, t := range ts {
			if !f.HasStatus || e.status(t, now) == f.Status {
				n++
			}
		}
		if after = next; next == "" || n >= mostCounted || time.Since(begun) >= countFor {
			return min(n, mostCounted), next == "" && n <= mostCounted, nil
		}
	}
}

// Upcoming lists the next n dues of a timer that will be called.
func (e *Scheduler) Upcoming(ctx context.Context, id engine.TimerID, n int) ([]int64, error) {
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.Status != engine.Enabled {
		return []int64{}, nil
	}
	return e.upcoming(ctx, t, e.now(), n)
}

// upcoming are the next n dues of a timer after now that will be called. The watermark is
// later than now only after the clock was set back: what the plan has up to there is then
// called if it is owed.
func (e *Scheduler) upcoming(ctx context.Context, t *engine.Timer, now int64, n int) ([]int64, error) {
	p, err := plan.Of(t)
	if err != nil {
		return nil, err
	}
	w := e.memory.FinishedTo(t.ID)
	if w <= now {
		return called(&p, now, nil, nil, n), nil
	}
	rows, err := e.rowsOfTimer(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var spent policy.Spans
	rows = slices.DeleteFunc(rows, func(o engine.Owed) bool {
		return o.Generation != t.Generation || o.Used() || max(o.Key.Due, o.To) <= now
	})
	for i := range rows {
		o := &rows[i]
		if o.To == 0 {
			continue
		}
		if o.NotBefore = max(o.NotBefore, now+1); o.To == engine.Endless {
			o.To = w
		}
		s, err := e.spent(ctx, t, &p, o.NotBefore-1, o.To)
		if err != nil {
			return nil, err
		}
		spent = append(spent, s...)
	}
	slices.SortFunc(spent, policy.CompareSpans)
	return called(&p, w, rows, spent, n), nil
}

// nextDue is the next due of a timer after now that will be called, 0 for none.
func (e *Scheduler) nextDue(ctx context.Context, t *engine.Timer, now int64) int64 {
	dues, err := e.upcoming(ctx, t, now, 1)
	if err != nil || len(dues) == 0 {
		return 0
	}
	return dues[0]
}

// called are the first n dues of a timer that will be called: those of its rows that are
// not spent, and those of its plan that come after the rows and after w.
func called(p *plan.Plan, w int64, rows []engine.Owed, spent policy.Spans, n int) []int64 {
	dues := make([]int64, 0, n)
	add := func(after, to int64) {
		for due, ok := p.Next(after); ok && due <= to && n > 0; due, ok = p.Next(due) {
			dues = append(dues, due)
			n--
		}
	}
	most := n
	for i := range rows {
		o := &rows[i]
		if n = most; o.To == 0 {
			dues = append(dues, o.Key.Due)
			continue
		}
		for _, s := range spent.Open(p, o.NotBefore-1, o.To) {
			add(s[0]-1, s[1])
		}
		w = max(w, o.To)
	}
	n = most
	add(w, engine.MaxDue)
	slices.Sort(dues)
	dues = slices.Compact(dues)
	return dues[:min(most, len(dues))]
}

// Task finds one task, open or finished.
func (e *Scheduler) Task(ctx context.Context, k engine.Key) (*engine.Task, error) {
	if t := e.memory.Task(k); t != nil {
		return t, nil
	}
	ended := e.ended.now()
	stored, err := e.cfg.Cold.Task(ctx, k)
	if err == nil {
		ended.show(stored)
	}
	return stored, err
}

// newest copies the newest tasks in memory that f selects and that are older than
// before (zero: all of them), limit of them at most: a look costs the memory of what it
// returns, however many tasks wait. All that f selects and that is not older than next
// is among them.
func (e *Scheduler) newest(f *engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key) {
	found := newestTasks{limit: limit}
	add := func(t *resident.Task) {
		if f.Matches(&t.Task) && (before == engine.Key{} || t.Key.Compare(before) < 0) {
			found.add(t)
		}
	}
	if f.Timer != 0 {
		e.memory.EachTaskOf(f.Timer.Shard(), add)
	} else {
		e.memory.EachTask(add)
	}
	if found.more {
		next = found.heap[0].Key
	}
	for _, t := range found.heap {
		e.memory.Look(t, func() {
			if f.Matches(&t.Task) { // as it stands now
				ts = append(ts, inspect.Listed(&t.Task))
			}
		})
	}
	return ts, next
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

// Tasks lists tasks newest first, by (due, timer), those in memory included:
// what is older than before (zero: from the newest on). A zero next is the end. Of a
// task's attempts it has the last only; Task has all.
func (e *Scheduler) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) (page []*engine.Task, next engine.Key, err error) {
	memory, inMemory := e.newest(&f, before, limit) // first: what is settled meanwhile is then in both
	stored, next, err := e.stored(ctx, f, before, limit)
	if err != nil {
		return nil, engine.Key{}, err
	}
	if next.Compare(inMemory) < 0 {
		next = inMemory
	}
	byKey := make(map[engine.Key]*engine.Task, len(stored)+len(memory))
	for _, t := range stored {
		byKey[t.Key] = t
	}
	for _, t := range memory {
		byKey[t.Key] = t // as it stands now
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

// stored reads a page of history in pieces.
func (e *Scheduler) stored(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	for next = before; len(ts) < limit; {
		n := min(limit-len(ts), storedAtOnce)
		var piece []*engine.Task
		ended := e.ended.now()
		if piece, next, err = e.cfg.Cold.Tasks(ctx, f, next, n); err != nil {
			return nil, engine.Key{}, err
		}
		for _, t := range piece {
			if live := e.memory.Task(t.Key); live != nil {
				t = live // the record is of before
			} else {
				ended.show(t)
			}
			if f.Matches(t) {
				ts = append(ts, inspect.Listed(t))
			}
		}
		if len(piece) < n || next == (engine.Key{}) {
			break
		}
	}
	return ts, next, nil
}
