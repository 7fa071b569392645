package inspect

import (
	"context"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/plan"
	"xtimer/engine/resident"
)

// lateAfter is how late (ms) the oldest task of a lane must be for a warning.
const lateAfter = minute

// mostTold is of how many tasks that wait Config.First is told in a count.
const mostTold = 10_000

// overdue is what is due and not begun, by lane: the tasks in memory, and the dues whose
// rows wait in the cold tier. It is counted in the background, for a count goes through
// all of them.
type overdue struct {
	mu    sync.Mutex
	lanes map[engine.Lane]waiting

	all rested
}

// waiting is what of a lane waits.
type waiting struct {
	tasks  int64
	rows   int64  // how many of them are not in memory
	app    string // "": none of its tasks is in memory
	oldest int64  // the first instant at which one might have been tried (Unix ms)
}

// CountOverdue counts what is due and not begun, for those that read of it later.
func (r *Reader) CountOverdue(ctx context.Context) error {
	now := r.now()
	lanes := map[engine.Lane]waiting{}
	stored := map[engine.Lane]waiting{}
	add := func(id engine.Lane, n, oldest int64) {
		l := stored[id]
		l.add(n, oldest)
		stored[id] = l
	}
	var err error
	if r.memory.Lanes.AnySpilled() { // else all that waits is in memory
		err = r.countRows(ctx, now, add)
	}
	r.memory.Deferred.Overdue(now, add)
	inMemory := map[engine.Lane]int64{} // rows of tasks in memory
	told := 0
	r.memory.EachTask(func(t *resident.Task) {
		if r.cfg.First != nil && told < mostTold {
			if late := r.memory.LateSoFar(t, now); late > 0 {
				told++
				r.cfg.First(t.Key, t.App, t.Name, late)
			}
		}
		if t.HasOpenRow() && max(t.NotBefore, t.Key.Due) <= now {
			inMemory[t.Lane.ID]++
		}
		if t.Waits() { // parked tasks wait for their timer
			l := lanes[t.Lane.ID]
			l.app = t.App
			l.add(1, max(t.NotBefore, t.Key.Due))
			lanes[t.Lane.ID] = l
		}
	})
	for id, x := range stored {
		if n := x.tasks - inMemory[id]; n > 0 {
			l := lanes[id]
			l.add(n, x.oldest)
			l.rows = n
			lanes[id] = l
		}
	}
	r.overdue.mu.Lock()
	r.overdue.lanes = lanes
	r.overdue.mu.Unlock()
	return err
}

// countRows counts the dues of the rows that may be tried by now, by lane.
func (r *Reader) countRows(ctx context.Context, now int64, add func(id engine.Lane, n, oldest int64)) error {
	err := r.cfg.Cold.Owed(ctx, r.memory.Owned(), -1, now, func(os []engine.Owed) error {
		var ranges []engine.Owed
		var ids []engine.TimerID
		for i := range os {
			switch o := &os[i]; {
			case o.Damaged != nil: // it does not wait for its turn
			case o.To == 0:
				add(o.Lane, 1, o.NotBefore)
			default:
				ranges, ids = append(ranges, *o), append(ids, o.Key.Timer)
			}
		}
		defs, err := r.cfg.Cold.Load(ctx, ids)
		if err != nil {
			return err
		}
		for i, o := range ranges {
			n, err := r.waitingIn(ctx, &o, defs[i], now)
			if err != nil {
				return err
			}
			if n > 0 {
				add(o.Lane, n, o.Key.Due)
			}
		}
		return ctx.Err()
	})
	r.cfg.Tiers.Read(err)
	return err
}

// waitingIn is how many dues of a range have come that refill has still to go through.
func (r *Reader) waitingIn(ctx context.Context, o *engine.Owed, definition []byte, now int64) (int64, error) {
	if definition == nil {
		return 0, nil
	}
	t, err := engine.DecodeTimer(definition)
	if err != nil || t.Generation != o.Generation {
		return 0, nil
	}
	p, err := plan.Of(t)
	if err != nil || r.memory.IsTurning(o.Key) {
		return 0, nil
	}
	return r.waitingDues(ctx, &p, o, now)
}

func (w *waiting) add(tasks, oldest int64) {
	if w.tasks == 0 || oldest < w.oldest {
		w.oldest = oldest
	}
	w.tasks += tasks
}

// countOverdue counts what is due and not begun; what is not in memory as it was counted
// of late. The queue cannot tell: it also has what was cancelled while it waited.
func (r *Reader) countOverdue() int64 {
	return r.overdue.all.of(func() int64 {
		var s Stats
		spilled := r.overdue.spilled()
		r.memory.EachTask(func(t *resident.Task) {
			s.add(t, t.Key.Due)
			spilled.takeOut(t)
		})
		return s.Overdue + spilled.sum(nil).tasks
	})
}

// countRest is for how many times the time that a count took its result stands.
const countRest = 20

// rested is the result of a count that takes long where there is much to count. A reader
// that asks too soon gets the former result, so all readers together take a twentieth of a
// core.
type rested struct {
	mu   sync.Mutex // one counts at a time, and the others wait for it
	n    int64
	next time.Time // when it is counted again
}

func (c *rested) of(count func() int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if began := time.Now(); !began.Before(c.next) {
		c.n = count()
		ended := time.Now()
		c.next = ended.Add(countRest * ended.Sub(began))
	}
	return c.n
}

// stored is how many tasks of a lane wait that are not in memory, where so many are in memory now: some of the
// rows that were counted may have come into memory since.
func (w waiting) stored(inMemory int64) int64 {
	if w.rows == 0 {
		return 0
	}
	return max(0, w.tasks-inMemory)
}

// storedIn is that of a lane.
func (o *overdue) storedIn(id engine.Lane, inMemory int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lanes[id].stored(inMemory)
}

// spilled is what waited when it was counted in the lanes of which not all was in memory.
func (o *overdue) spilled() spilled {
	s := spilled{}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, l := range o.lanes {
		if l.rows > 0 {
			s[id] = &l
		}
	}
	return s
}

// spilled is what waits in some lanes, without the tasks that were taken out.
type spilled map[engine.Lane]*waiting

// takeOut takes out a task that is in memory now.
func (s spilled) takeOut(t *resident.Task) {
	if len(s) == 0 || !t.Waits() {
		return
	}
	if l := s[t.Lane.ID]; l != nil {
		l.tasks--
	}
}

// sum is that of all lanes together, or of those that are selected.
func (s spilled) sum(selected func(engine.Lane) bool) (sum waiting) {
	for id, l := range s {
		if l.tasks > 0 && (selected == nil || selected(id)) {
			sum.add(l.tasks, l.oldest)
		}
	}
	return sum
}

// HeldBy is what a flow key or a target holds, as counted of late: how many tasks that are not in
// memory, and since when the oldest of all might have been tried (Unix ms; 0: none was counted).
func (r *Reader) HeldBy(n flow.Name) (stored, oldest int64) {
	lanes := r.memory.HeldBy(n)
	r.overdue.mu.Lock()
	defer r.overdue.mu.Unlock()
	for id, inMemory := range lanes {
		l, ok := r.overdue.lanes[id]
		if stored += l.stored(inMemory); ok && (oldest == 0 || l.oldest < oldest) {
			oldest = l.oldest
		}
	}
	return stored, oldest
}

// OverdueOf is how many tasks of each app are due and not begun, as counted of late.
func (r *Reader) OverdueOf() map[string]int64 {
	of := map[string]int64{}
	r.overdue.mu.Lock()
	defer r.overdue.mu.Unlock()
	for _, l := range r.overdue.lanes {
		of[l.app] += l.tasks
	}
	return of
}

// late are the lanes whose oldest task is late by more than lateAfter.
func (o *overdue) late(now int64) (lanes int, sum waiting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		if now-l.oldest > lateAfter {
			lanes++
			sum.add(l.tasks, l.oldest)
		}
	}
	return lanes, sum
}
