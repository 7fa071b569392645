package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
)

// View is a timer as a reader sees it now.
type View struct {
	*Timer
	Status   Status // hides the stored one: see Timer.StatusAt
	Until    int64  // disabled until (Unix ms); 0: none
	NextDue  int64  // Unix ms; 0: none
	LastTask *Task  // nil: none yet
}

// view is a timer as it stands now, without its last task.
func (e *Engine) view(t *Timer) View {
	now := e.now()
	v := View{Timer: t, Status: e.status(t, now)}
	if v.Status == Disabled && t.Status == Enabled {
		v.Until = t.ValidFrom
	}
	if t.Status == Enabled {
		v.NextDue = e.nextDue(t, now)
	}
	return v
}

// status is the timer's status with its end derived: it is over when its last
// due has passed and nothing of it is under way.
func (e *Engine) status(t *Timer, now int64) Status {
	if t.LastDue == 0 || t.LastDue > now {
		return t.StatusAt(now, false)
	}
	sh := e.shardOf(t.ID)
	sh.mu.Lock()
	lv := sh.timers[t.ID]
	busy := lv != nil && (lv.tasks != nil || lv.next != 0 && lv.next <= now)
	sh.mu.Unlock()
	return t.StatusAt(now, !busy)
}

func (e *Engine) nextDue(t *Timer, now int64) int64 {
	p, err := PlanOf(t)
	if err != nil {
		return 0
	}
	if due, ok := p.Next(now); ok {
		return due
	}
	return 0
}

// Timer finds one timer.
func (e *Engine) Timer(ctx context.Context, id TimerID) (View, error) {
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return View{}, err
	}
	return e.viewWithLast(ctx, t)
}

// TimerByName finds one timer by its name.
func (e *Engine) TimerByName(ctx context.Context, app, name string) (View, error) {
	t, err := e.cfg.Cold.TimerByName(ctx, app, name)
	if err != nil {
		return View{}, err
	}
	return e.viewWithLast(ctx, t)
}

func (e *Engine) viewWithLast(ctx context.Context, t *Timer) (View, error) {
	v := e.view(t)
	last, err := e.cfg.Cold.LastTask(ctx, t.ID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return v, err
	}
	for _, m := range e.inMemory(&TaskFilter{Timer: t.ID}) {
		if last == nil || m.Key.Due >= last.Key.Due {
			last = m
		}
	}
	v.LastTask = last
	if v.Status == Finished && t.Status == Enabled {
		// A retry that is minutes away is not in memory.
		rows, err := e.cfg.Cold.OwedOf(ctx, t.ID)
		if err != nil {
			return v, err
		}
		if len(rows) > 0 {
			v.Status = Enabled
		}
	}
	return v, nil
}

// Timers lists timers by keyset; views have no LastTask. f.Status is the status
// that a reader sees. A page may be short and still have a next cursor.
func (e *Engine) Timers(ctx context.Context, f TimerFilter, after string, limit int) ([]View, string, error) {
	stored := f
	if f.HasStatus {
		// What a reader sees as finished or disabled may be stored as enabled.
		stored.HasStatus = f.Status == Enabled
	}
	ts, next, err := e.cfg.Cold.Timers(ctx, stored, after, limit)
	if err != nil {
		return nil, "", err
	}
	vs := make([]View, 0, len(ts))
	for _, t := range ts {
		if v := e.view(t); !f.HasStatus || v.Status == f.Status {
			vs = append(vs, v)
		}
	}
	return vs, next, nil
}

// Upcoming lists the next n dues of a timer.
func (e *Engine) Upcoming(ctx context.Context, id TimerID, n int) ([]int64, error) {
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return nil, err
	}
	dues := make([]int64, 0, n)
	if t.Status != Enabled {
		return dues, nil
	}
	p, err := PlanOf(t)
	if err != nil {
		return nil, err
	}
	for due, ok := p.Next(e.now()); ok && len(dues) < n; due, ok = p.Next(due) {
		dues = append(dues, due)
	}
	return dues, nil
}

// Task finds one task, open or finished.
func (e *Engine) Task(ctx context.Context, k Key) (*Task, error) {
	sh := e.shardOf(k.Timer)
	sh.mu.Lock()
	t := sh.tasks.find(k)
	if t != nil {
		c := t.snapshot()
		sh.mu.Unlock()
		return c, nil
	}
	sh.mu.Unlock()
	return e.cfg.Cold.Task(ctx, k)
}

// snapshot is a copy for a reader. mu is held.
func (t *task) snapshot() *Task {
	c := t.Task
	c.Attempts = slices.Clone(t.Attempts)
	return &c
}

// inMemory are copies of the tasks in memory that a filter selects.
func (e *Engine) inMemory(f *TaskFilter) []*Task {
	var out []*Task
	for i := range e.shards {
		sh := &e.shards[i]
		if f.Timer != 0 && f.Timer.Shard() != i {
			continue
		}
		sh.mu.Lock()
		for t := range sh.tasks.all {
			if f.Matches(&t.Task) {
				out = append(out, t.snapshot())
			}
		}
		sh.mu.Unlock()
		runtime.Gosched() // what is due goes first
	}
	return out
}

// Tasks lists tasks newest first, by (due, timer), those in memory included:
// what is older than before (zero: from the newest on). A zero next is the end.
func (e *Engine) Tasks(ctx context.Context, f TaskFilter, before Key, limit int) (page []*Task, next Key, err error) {
	memory := e.inMemory(&f) // first: what is settled meanwhile is then in both
	stored, next, err := e.cfg.Cold.Tasks(ctx, f, before, limit)
	if err != nil {
		return nil, Key{}, err
	}
	byKey := make(map[Key]*Task, limit)
	for _, t := range stored {
		byKey[t.Key] = t
	}
	for _, t := range memory {
		if (before == Key{} || older(t.Key, before)) && !older(t.Key, next) {
			byKey[t.Key] = t // as it stands now
		}
	}
	page = slices.SortedFunc(maps.Values(byKey), func(a, b *Task) int { return compare(b.Key, a.Key) })
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Key
	}
	return page, next, nil
}

func compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Timer, b.Timer))
}

func older(a, b Key) bool { return compare(a, b) < 0 }
