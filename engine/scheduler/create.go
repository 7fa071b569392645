package scheduler

import (
	"context"
	"errors"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/resident"
)

// Created is the outcome of one create.
type Created struct {
	View inspect.View
	// Existed: the same definition was there already, or the Idempotency-Key
	// was used for it; nothing was made.
	Existed  bool
	Replayed bool // … by its Idempotency-Key: answer as the first time (201)
	Err      error
}

// Create makes a timer. once may be nil.
func (e *Scheduler) Create(ctx context.Context, d engine.Definition, once *engine.Once) Created {
	if err := e.open(); err != nil {
		return Created{Err: err}
	}
	now := e.now()
	for {
		made, again := e.create(ctx, &d, once, now)
		if !again {
			return made
		}
	}
}

// create does it once; again: the id is taken, by a clock that had stepped back, and
// another is to be minted.
func (e *Scheduler) create(ctx context.Context, d *engine.Definition, once *engine.Once, now int64) (made Created, again bool) {
	var b *births
	h := e.memory.Pins.Pin(now)
	defer func() {
		if b == nil {
			e.memory.Pins.Release(h)
		}
	}()
	c, err := e.draft(ctx, d, now)
	if err != nil {
		return Created{Err: err}, false
	}
	c.Once = once
	b = e.birth([]*engine.Change{c}, h)
	failpoint.Hit("create-before-commit")
	a, err := e.cfg.Cold.Apply(ctx, c)
	if err != nil {
		a.Err = err
	}
	failpoint.Hit("create-after-commit")
	nexts := b.take(ctx, []engine.Applied{a})
	if errors.Is(a.Err, engine.ErrConflict) && a.Existing == nil {
		return Created{}, true
	}
	return e.created(ctx, d, c, a, nexts[0]), false
}

// CreateAll makes many, each by itself; outcomes in order.
func (e *Scheduler) CreateAll(ctx context.Context, ds []engine.Definition) []Created {
	out := make([]Created, len(ds))
	if err := e.open(); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	now := e.now()
	var b *births
	h := e.memory.Pins.Pin(now)
	defer func() {
		if b == nil {
			e.memory.Pins.Release(h)
		}
	}()
	changes := make([]*engine.Change, 0, len(ds))
	places := make([]int, 0, len(ds))
	for i := range ds {
		c, err := e.draft(ctx, &ds[i], now)
		if err != nil {
			out[i].Err = err
			continue
		}
		changes, places = append(changes, c), append(places, i)
	}
	b = e.birth(changes, h)
	failpoint.Hit("create-before-commit")
	as := e.cfg.Cold.ApplyAll(ctx, changes)
	failpoint.Hit("create-after-commit")
	nexts := b.take(ctx, as)
	failpoint.Hit("create-before-ack")
	for j, a := range as {
		i := places[j]
		if out[i] = e.created(ctx, &ds[i], changes[j], a, nexts[j]); errors.Is(a.Err, engine.ErrConflict) && a.Existing == nil {
			out[i] = e.Create(ctx, ds[i], nil)
		}
	}
	return out
}

// births are timers being created: claimed, so that who finds one in a tier
// before it is seated waits, and with a hold on the watermark.
type births struct {
	e       *Scheduler
	changes []*engine.Change
	hold    *resident.Pin
	release func()
}

// birth begins them. The hold was taken before their changes were drafted: what was
// to be owed of them was read off the watermark.
func (e *Scheduler) birth(cs []*engine.Change, h *resident.Pin) *births {
	return &births{e, cs, h, e.memory.ClaimNew(cs)}
}

// take seats what was made and ends the births; it returns the next dues. Those
// whose commit is in doubt stay claimed until it is known.
func (b *births) take(ctx context.Context, as []engine.Applied) (next []int64) {
	var warm []engine.Entry
	doubt := false
	next = make([]int64, len(as))
	for i, a := range as {
		switch {
		case a.Existing != nil:
		case a.Err == nil:
			next[i] = b.e.welcome(b.changes[i].Timer, b.changes[i].Owe, nil, &warm)
		case inDoubt(a.Err):
			doubt = true
		}
	}
	b.e.addWarm(ctx, warm, true)
	if !doubt {
		b.end()
		return next
	}
	b.e.process.Go(func(ctx context.Context) {
		var warm []engine.Entry
		for i, a := range as {
			if a.Existing != nil || a.Err == nil || !inDoubt(a.Err) {
				continue
			}
			made, sure := b.e.resolve(ctx, b.changes[i])
			if !sure {
				return
			}
			if made {
				b.e.welcome(b.changes[i].Timer, b.changes[i].Owe, nil, &warm)
			}
		}
		b.e.addWarm(ctx, warm, true)
		b.end()
	})
	return next
}

func (b *births) end() {
	b.release()
	b.e.memory.Pins.Release(b.hold)
}

// creatable says why a timer would not be created, as far as is known before a commit.
func (e *Scheduler) creatable(ctx context.Context, d *engine.Definition) error {
	if err := e.open(); err != nil {
		return err
	}
	_, err := e.draft(ctx, d, e.now())
	return err
}

// draft is the change that creates a timer.
func (e *Scheduler) draft(ctx context.Context, d *engine.Definition, now int64) (*engine.Change, error) {
	if err := plan.Validate(d); err != nil { // before an id is used
		return nil, err
	}
	t, err := plan.NewTimer(d, e.ids.Next(now), now)
	if err != nil {
		return nil, err
	}
	t.UpdatedBy = engine.Author(ctx)
	owe, err := e.owing(t, true, 0, func(engine.Key) (bool, error) { return false, nil })
	return &engine.Change{Timer: t, ID: t.ID, At: now, Owe: owe}, err
}

// owing are the rows that a new generation of a timer starts with: what its
// plan will not derive. That is an instant that was given though it is past
// (fresh: enabling never brings one back), and, after the clock stepped back
// behind the watermark, what lies up to there, or up to reached. taken tells of keys of
// tasks, see policy.Ranges.
func (e *Scheduler) owing(t *engine.Timer, fresh bool, reached int64, taken func(engine.Key) (bool, error)) ([]engine.Owed, error) {
	if t.Status != engine.Enabled {
		return nil, nil
	}
	_, w := e.memory.Watermark(t.ID)
	o := engine.Owed{Generation: t.Generation, Lane: t.Lane()}
	if t.Schedule.OneShot() {
		due := t.LastDue
		if due > t.ValidFrom && due > w || due <= t.ValidFrom && !fresh {
			return nil, nil
		}
		o.Key, o.NotBefore = engine.Key{Timer: t.ID, Due: due}, due
		return []engine.Owed{o}, nil
	}
	if w = max(w, reached); w <= t.ValidFrom {
		return nil, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		panic("BUG: a definition that Resolve has seen has no plan: " + err.Error())
	}
	return policy.Ranges(t, &p, t.ValidFrom, w, taken)
}

// created turns the tier's outcome into the caller's.
func (e *Scheduler) created(ctx context.Context, d *engine.Definition, c *engine.Change, a engine.Applied, next int64) Created {
	switch {
	case a.Replayed:
		return Created{View: e.Standing(ctx, a.Existing), Existed: true, Replayed: true}
	case a.Existing != nil && a.Existing.Definition.Equal(d):
		return Created{View: e.Standing(ctx, a.Existing), Existed: true}
	case a.Existing != nil:
		return Created{Err: &engine.Fault{
			Kind: engine.FaultConflict, Code: "name_taken",
			Detail: "app " + d.App + " has another timer of that name: " + a.Existing.ID.String(),
			Fields: []engine.FieldFault{{Field: "name", Detail: "is taken by timer " + a.Existing.ID.String() + ", whose definition differs"}},
		}}
	case a.Err != nil:
		return Created{Err: a.Err}
	}
	return Created{View: inspect.View{Timer: c.Timer, Status: c.Timer.Status, NextDue: next}}
}

// welcome admits a timer whose definition was just committed, wherever its next
// dues belong: rows of owed and the next minutes into memory, the coming hour
// into the warm tier (warm collects its entries). spent are dues that a range among the
// rows does not owe. It returns the next due.
func (e *Scheduler) welcome(t *engine.Timer, owe []engine.Owed, spent policy.Spans, warm *[]engine.Entry) (next int64) {
	if t.Status != engine.Enabled {
		return 0
	}
	p, err := plan.Of(t)
	if err != nil {
		panic("BUG: a timer was stored whose schedule does not parse: " + err.Error())
	}
	horizon := e.memory.Horizon.Load() // before Add: what a raise adds meanwhile is in both
	e.memory.Add(t, &p, owe, spent)
	if dues := inspect.Called(&p, max(t.ValidFrom, e.memory.FinishedTo(t.ID)), owe, spent, 1); len(dues) > 0 {
		next = dues[0]
	}
	e.metrics.created.Inc()
	if filled := e.migrator.warmed.Load(); next != 0 && next < filled {
		*warm = entries(*warm, t.ID, engine.Carried(t), &p, max(horizon, t.ValidFrom+1), filled)
	}
	return next
}

// addWarm puts entries of new or changed timers into the warm tier. Its loss
// costs speed only: a minute that cannot be trusted is built from the cold tier.
// own: the caller is who creates or changes these timers.
func (e *Scheduler) addWarm(ctx context.Context, es []engine.Entry, own bool) {
	if len(es) == 0 {
		return
	}
	e.migrator.minutes.Add(es)
	lost := !e.tiers.WarmAnswers.Load() // nobody who creates a timer waits for it then
	if !lost {
		if err := e.cfg.Warm.Add(ctx, es); err != nil {
			e.log.Warn("cannot add to the warm tier; the minutes concerned are filled anew", "error", err)
			if lost = true; ctx.Err() == nil { // else it was the caller who left
				e.migrator.lose(err)
			}
		}
	}
	if lost {
		for i := range es {
			e.migrator.distrust(es[i].Due)
		}
	}
	// The migrator may have loaded a minute since its horizon was looked at:
	// it raises the horizon before it reads the bucket, so looking again after
	// the entry is in finds every one that it may have missed.
	horizon := e.memory.Horizon.Load()
	for _, x := range es {
		if x.Due < horizon {
			read := e.memory.Reads.Begin()
			busy, _, err := e.admit(ctx, []engine.Entry{x}, x.Due, own, read)
			read.End()
			if len(busy) > 0 {
				e.admitLater(busy, x.Due)
			}
			if err != nil {
				e.log.Error("cannot admit a timer; the next start will", "timer", x.ID, "error", err)
			}
		}
	}
}

// updateWarm tells the warm tier what became of a timer that it may know.
func (e *Scheduler) updateWarm(ctx context.Context, id engine.TimerID, t *engine.Timer) {
	var definition []byte
	if t != nil {
		definition = engine.Carried(t)
	}
	e.cfg.Warm.Update(ctx, id, definition)
}
