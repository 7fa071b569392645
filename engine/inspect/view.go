package inspect

import (
	"context"
	"errors"
	"time"

	"xtimer/engine"
)

// View is a timer as a reader sees it now.
type View struct {
	*engine.Timer
	Status   engine.Status // hides the stored one: see Timer.StatusAt
	Deleted  bool          // the timer is no more: this is its last version
	Until    int64         // disabled until (Unix ms); 0: none
	NextDue  int64         // Unix ms; 0: none
	LastTask *engine.Task  // with its last attempt only; nil: none yet
	told     bool          // its owner has told its last task
}

// Standing is a timer as it stands now, without its last task. A timer whose rows cannot
// be read is shown without the tasks that are not in memory.
func (r *Reader) Standing(ctx context.Context, t *engine.Timer) View {
	now := r.now()
	status, _ := r.standing(ctx, t, now)
	return r.viewAs(ctx, t, status, now)
}

// Deleted is a timer that is no more, by its last version: no due of it is called.
func Deleted(last *engine.Timer) View {
	return View{Timer: last, Status: engine.Finished, Deleted: true}
}

func (r *Reader) viewAs(ctx context.Context, t *engine.Timer, status engine.Status, now int64) View {
	v := View{Timer: t, Status: status, Until: t.DisabledUntil(now)}
	if t.Status == engine.Enabled {
		v.NextDue = r.NextDue(ctx, t, now)
	}
	return v
}

// standing is the timer's status as each reader sees it: a retry that is minutes away is
// not in memory, and its timer is not over. An error leaves the status that memory tells.
func (r *Reader) standing(ctx context.Context, t *engine.Timer, now int64) (engine.Status, error) {
	status := r.Status(t, now)
	if status != engine.Finished || t.Status != engine.Enabled {
		return status, nil
	}
	open, err := r.IsOwed(ctx, t)
	if open {
		status = engine.Enabled
	}
	return status, err
}

// Status is the timer's status with its end derived: it is over when its last
// due has passed and nothing of it in memory is under way.
func (r *Reader) Status(t *engine.Timer, now int64) engine.Status {
	if t.LastDue == 0 || t.LastDue > now {
		return t.StatusAt(now, false)
	}
	return t.StatusAt(now, !r.memory.IsBusy(t.ID, now))
}

// Definition finds one timer as it is stored, without its last task.
func (r *Reader) Definition(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	return r.cfg.Cold.Timer(ctx, id)
}

// DefinitionByName is Definition by the timer's name.
func (r *Reader) DefinitionByName(ctx context.Context, app, name string) (*engine.Timer, error) {
	return r.cfg.Cold.TimerByName(ctx, app, name)
}

// Owned are the shards of this process. Of timers in them it knows the tasks that are under
// way, and only those does it change.
func (r *Reader) Owned() engine.Set { return r.memory.Owned() }

// Definitions finds many, in the order of ids; a missing one is nil, and so are those that
// are stored and cannot be read: unread tells why.
func (r *Reader) Definitions(ctx context.Context, ids []engine.TimerID) (ts []*engine.Timer, unread map[engine.TimerID]error, err error) {
	defs, err := r.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	ts = make([]*engine.Timer, len(ids))
	for i, b := range defs {
		if b == nil {
			continue
		}
		if ts[i], err = engine.DecodeTimer(b); err != nil {
			if ts[i] = nil; unread == nil {
				unread = map[engine.TimerID]error{}
			}
			unread[ids[i]] = err
		}
	}
	return ts, unread, nil
}

// Timer finds one timer. ErrElsewhere: see View.
func (r *Reader) Timer(ctx context.Context, id engine.TimerID) (View, error) {
	if err := r.memory.Owns(id); err != nil {
		return View{}, err // whether it exists is the other's to say
	}
	t, err := r.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return View{}, err
	}
	return r.View(ctx, t)
}

// TimerByName finds one timer by its name.
func (r *Reader) TimerByName(ctx context.Context, app, name string) (View, error) {
	t, err := r.cfg.Cold.TimerByName(ctx, app, name)
	if err != nil {
		return View{}, err
	}
	return r.View(ctx, t)
}

// View completes what Definition found. ErrElsewhere: another node has the tasks of the
// timer that are under way.
func (r *Reader) View(ctx context.Context, t *engine.Timer) (v View, err error) {
	if err := r.memory.Owns(t.ID); err != nil {
		return View{}, err
	}
	now := r.now()
	status, err := r.standing(ctx, t, now)
	if err != nil {
		return View{}, err
	}
	vs := []View{r.viewAs(ctx, t, status, now)}
	err = r.LastTasks(ctx, vs)
	return vs[0], err
}

// Timers lists timers by keyset, with their last tasks if last is set. f.Status is the status
// that a reader sees. A page may be short and still have a next cursor.
func (r *Reader) Timers(ctx context.Context, f engine.TimerFilter, after string, limit int, last bool, owners Owners) ([]View, string, error) {
	ts, next, err := r.cfg.Cold.Timers(ctx, stored(f), after, limit)
	if err != nil {
		return nil, "", err
	}
	vs, err := r.views(ctx, ts, &f, last, owners)
	if err != nil {
		return nil, "", err
	}
	return vs, next, nil
}

// stored is a filter for the cold tier: what a reader sees as finished or disabled may be
// stored as enabled.
func stored(f engine.TimerFilter) engine.TimerFilter {
	f.HasStatus = f.HasStatus && f.Status == engine.Enabled
	return f
}

// What a count of timers goes through: so many that it finds, or for so long.
const (
	mostCounted = 10_000
	countFor    = 50 * time.Millisecond
)

// CountTimers counts the timers that f selects; not exact: there are at least so many.
func (r *Reader) CountTimers(ctx context.Context, f engine.TimerFilter, owners Owners) (n int64, exact bool, err error) {
	if f.IsEmpty() {
		c, err := r.cfg.Cold.Counts(ctx)
		return c.Enabled + c.Disabled + c.Finished, true, err
	}
	for begun, after := time.Now(), ""; ; {
		ts, next, err := r.cfg.Cold.Timers(ctx, stored(f), after, 1000)
		if err != nil {
			return 0, false, err
		}
		more := len(ts)
		if f.HasStatus {
			if more, err = r.count(ctx, ts, f.Status, owners); err != nil {
				return 0, false, err
			}
		}
		n += int64(more)
		if after = next; next == "" || n >= mostCounted || time.Since(begun) >= countFor {
			return min(n, mostCounted), next == "" && n <= mostCounted, nil
		}
	}
}

// AppOf is the app of a timer, or of a deleted one while a version of it is kept. It
// takes the same steps whether the timer is there or not.
func (r *Reader) AppOf(ctx context.Context, id engine.TimerID) (string, error) {
	t, err := r.cfg.Cold.Timer(ctx, id)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return "", err
	}
	former, err := r.cfg.Cold.Versions(ctx, id, 0, 1)
	switch {
	case err != nil:
		return "", err
	case t != nil:
		return t.App, nil
	case len(former) > 0:
		return former[0].App, nil
	}
	return "", engine.ErrNotFound
}

// Versions lists a timer as it is and as it was, newest first: the versions before one
// (0: all). A deleted timer has only what it was.
func (r *Reader) Versions(ctx context.Context, id engine.TimerID, before uint32, limit int) ([]View, error) {
	t, err := r.cfg.Cold.Timer(ctx, id)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	var vs []View
	if t != nil && (before == 0 || t.Version < before) {
		vs = append(vs, r.Standing(ctx, t))
	}
	former, err := r.cfg.Cold.Versions(ctx, id, before, limit-len(vs))
	if err != nil {
		return nil, err
	}
	for _, f := range former {
		vs = append(vs, View{Timer: f, Status: f.Status})
	}
	return vs, nil
}

// IsOwed reports whether a row of the timer's generation has a task that is not over: what
// ended is stored with the next settle.
func (r *Reader) IsOwed(ctx context.Context, t *engine.Timer) (open bool, err error) {
	read := r.memory.Reads.Begin()
	defer read.End()
	err = r.EachRow(ctx, t.ID, -1, func(o *engine.Owed) bool {
		open = (o.Generation == t.Generation || o.Damaged != nil) && !r.memory.Ended(o.Key, read)
		return !open
	})
	return open, err
}
