package inspect

import (
	"context"
	"slices"

	"xtimer/engine"
)

// Told is what the process that has a timer tells another one of it, see View.
type Told struct {
	ID       engine.TimerID
	Status   engine.Status
	NextDue  int64
	LastTask []byte // as history stores it
}

// Owners asks other processes how their timers stand, with the last tasks if last is set. A
// timer that they tell nothing of is shown as the cold tier has it.
type Owners func(ctx context.Context, ids []engine.TimerID, last bool) []Told

// toldAtOnce is how many definitions are in memory while another process is told of timers.
const toldAtOnce = 64

// Tell tells another process of those timers that this process has. elsewhere: it does not
// have all of them.
func (r *Reader) Tell(ctx context.Context, ids []engine.TimerID, last bool) (told []Told, elsewhere bool, err error) {
	for piece := range slices.Chunk(ids, toldAtOnce) {
		ts, _, err := r.Definitions(ctx, piece)
		if err != nil {
			return nil, false, err
		}
		ts = slices.DeleteFunc(ts, func(t *engine.Timer) bool { return t == nil || r.memory.Owns(t.ID) != nil })
		vs, err := r.views(ctx, ts, &engine.TimerFilter{}, last, nil)
		if err != nil {
			return nil, false, err
		}
		for i := range vs {
			x := Told{ID: vs[i].ID, Status: vs[i].Status, NextDue: vs[i].NextDue}
			if vs[i].LastTask != nil {
				x.LastTask = engine.EncodeTask(vs[i].LastTask)
			}
			told = append(told, x)
		}
	}
	own := r.memory.Owned() // after the look: of a shard that was given away meanwhile memory knew nothing
	told = slices.DeleteFunc(told, func(x Told) bool { return !own.Has(x.ID.Shard()) })
	return told, slices.ContainsFunc(ids, func(id engine.TimerID) bool { return !own.Has(id.Shard()) }), nil
}

// ask asks the owners of those timers that another process has. Without the last tasks only
// memory tells one thing: whether a timer is over whose last due has passed.
func (r *Reader) ask(ctx context.Context, ts []*engine.Timer, now int64, last bool, owners Owners) map[engine.TimerID]Told {
	var ids []engine.TimerID
	own := r.memory.Owned()
	for _, t := range ts {
		if !own.Has(t.ID.Shard()) && (last || t.Status == engine.Enabled && t.StatusAt(now, true) == engine.Finished) {
			ids = append(ids, t.ID)
		}
	}
	told := map[engine.TimerID]Told{}
	if len(ids) > 0 && owners != nil {
		for _, x := range owners(ctx, ids, last) {
			told[x.ID] = x
		}
	}
	return told
}

// statuses are those of timers as readers see them.
func (r *Reader) statuses(ctx context.Context, ts []*engine.Timer, now int64, told map[engine.TimerID]Told) ([]engine.Status, error) {
	all := make([]engine.Status, len(ts))
	for i, t := range ts {
		if x, is := told[t.ID]; is {
			all[i] = x.Status
			continue
		}
		var err error
		if all[i], err = r.standing(ctx, t, now); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// views are timers as readers see them, those of a status if f has one.
func (r *Reader) views(ctx context.Context, ts []*engine.Timer, f *engine.TimerFilter, last bool, owners Owners) ([]View, error) {
	now := r.now()
	told := r.ask(ctx, ts, now, last, owners)
	statuses, err := r.statuses(ctx, ts, now, told)
	if err != nil {
		return nil, err
	}
	vs := make([]View, 0, len(ts))
	for i, t := range ts {
		if f.HasStatus && statuses[i] != f.Status { // without a look for its next due
			continue
		}
		v := r.viewAs(ctx, t, statuses[i], now)
		if x, is := told[t.ID]; is && last {
			v.NextDue, v.told = x.NextDue, true
			if x.LastTask != nil {
				if v.LastTask, err = engine.DecodeTask(x.LastTask); err != nil {
					return nil, err
				}
			}
		}
		vs = append(vs, v)
	}
	if last {
		return vs, r.LastTasks(ctx, vs)
	}
	return vs, nil
}

// count counts the timers of a status, as readers see it.
func (r *Reader) count(ctx context.Context, ts []*engine.Timer, of engine.Status, owners Owners) (n int, err error) {
	now := r.now()
	statuses, err := r.statuses(ctx, ts, now, r.ask(ctx, ts, now, false, owners))
	for _, s := range statuses {
		if s == of {
			n++
		}
	}
	return n, err
}
