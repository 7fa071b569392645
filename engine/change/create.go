package change

import (
	"context"
	"errors"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/quota"
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
func (e *Maker) Create(ctx context.Context, d engine.Definition, once *engine.Once) Created {
	return e.create(ctx, []engine.Definition{d}, once)[0]
}

// CreateAll makes many, each by itself; outcomes in order.
func (e *Maker) CreateAll(ctx context.Context, ds []engine.Definition) []Created {
	return e.create(ctx, ds, nil)
}

// create makes timers, each by itself. once is of a single one.
func (e *Maker) create(ctx context.Context, ds []engine.Definition, once *engine.Once) []Created {
	out := make([]Created, len(ds))
	if err := e.cfg.Open(); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	room, err := e.cfg.Quotas.Begin(ctx, appsOf(ds)...)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	now := e.now()
	b := creation{e: e, pin: e.memory.Pins.Pin(now), under: room, release: func() {}}
	places := b.takeRoom(ctx, b.draft(ctx, ds, once, now, out), out)
	if len(places) == 0 {
		b.end()
		return out
	}
	failpoint.Hit("create-before-commit")
	as := e.commit(ctx, b.changes)
	failpoint.Hit("create-after-commit")
	nexts := b.take(ctx, as)
	failpoint.Hit("create-before-ack")
	for j, a := range as {
		i := places[j]
		out[i] = e.created(ctx, &ds[i], b.changes[j], a, nexts[j])
		if errors.Is(a.Err, engine.ErrConflict) && a.Existing == nil {
			out[i] = e.Create(ctx, ds[i], once) // its id is taken, by a clock that had stepped back
		}
	}
	return out
}

// draft makes the changes, and claims their timers. places are those of the timers that may
// be created; the others have their error in out.
func (b *creation) draft(ctx context.Context, ds []engine.Definition, once *engine.Once, now int64, out []Created) (places []int) {
	for ok, again := false, false; !ok; again = true {
		b.changes, places = nil, nil
		for i := range ds {
			if out[i].Err != nil {
				continue
			}
			c, err := b.e.draft(ctx, &ds[i], now)
			if err == nil && !again {
				err = b.e.cfg.Quotas.Create(ds[i].App)
			}
			if err != nil {
				out[i].Err = err
				continue
			}
			c.Once = once
			b.changes, places = append(b.changes, c), append(places, i)
		}
		if len(places) == 0 {
			return nil
		}
		var release func()
		if release, ok = b.e.memory.ClaimNew(b.changes); ok { // else with ids of other shards
			b.release = release
		}
	}
	return places
}

// takeRoom takes room for the changes; those that a quota does not allow are not made. places
// are those of the timers that are left. A timer that is there already needs no room.
func (b *creation) takeRoom(ctx context.Context, places []int, out []Created) (left []int) {
	all := b.changes
	b.changes = nil // all is of release
	for j, c := range all {
		room, err := b.under.Take(nil, c.Timer, func() bool {
			_, err := b.e.cfg.Cold.TimerByName(ctx, c.Timer.App, c.Timer.Name)
			return err == nil
		})
		if err != nil {
			out[places[j]].Err = err
			continue
		}
		b.changes, b.rooms, left = append(b.changes, c), append(b.rooms, room), append(left, places[j])
	}
	return left
}

// appsOf are the apps of some timers.
func appsOf(ds []engine.Definition) (apps []string) {
	for i := range ds {
		if i == 0 || ds[i].App != ds[i-1].App {
			apps = append(apps, ds[i].App)
		}
	}
	return apps
}

// commit makes changes in the cold tier.
func (e *Maker) commit(ctx context.Context, cs []*engine.Change) []engine.Applied {
	if len(cs) > 1 {
		return e.cfg.Cold.ApplyAll(ctx, cs)
	}
	a, err := e.cfg.Cold.Apply(ctx, cs[0])
	if err != nil {
		a.Err = err
	}
	return []engine.Applied{a}
}

// creation is timers being created. They are claimed, so that who finds one in a tier
// before it is in memory waits, and have room in the quotas of their apps. The watermark is
// pinned since before their changes were drafted: what is owed of them was read off it.
type creation struct {
	e       *Maker
	changes []*engine.Change
	pin     *resident.Pin
	release func()
	under   *quota.Changes
	rooms   []quota.Room
}

// take adds to memory what was made and ends the creation; it returns the next dues. Those
// whose commit is in doubt stay claimed until it is known.
func (b *creation) take(ctx context.Context, as []engine.Applied) (next []int64) {
	var warm []engine.Entry
	doubt := false
	next = make([]int64, len(as))
	for i, a := range as {
		switch {
		case a.Existing == nil && a.Err == nil:
			next[i] = b.e.add(b.changes[i].Timer, b.changes[i].Owe, nil, &warm)
			b.rooms[i].End(true)
		case a.Existing == nil && inDoubt(a.Err):
			doubt = true
		default:
			b.rooms[i].End(false)
		}
	}
	b.e.cfg.AddWarm(ctx, warm)
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
			made, sure := b.e.resolveChange(ctx, b.changes[i])
			if !sure {
				return
			}
			if made {
				b.e.add(b.changes[i].Timer, b.changes[i].Owe, nil, &warm)
			}
			b.rooms[i].End(made)
		}
		b.e.cfg.AddWarm(ctx, warm)
		b.end()
	})
	return next
}

func (b *creation) end() {
	b.under.End()
	b.release()
	b.e.memory.Pins.Release(b.pin)
}

// creatable says why a timer would not be created, as far as is known before a commit.
func (e *Maker) creatable(ctx context.Context, d *engine.Definition) error {
	if err := e.cfg.Open(); err != nil {
		return err
	}
	c, err := e.draft(ctx, d, e.now())
	if err != nil {
		return err
	}
	return e.hasRoom(ctx, nil, c.Timer)
}

// hasRoom returns the error of a change that the quota of its app does not allow, before
// the change is made. No other change may be under way in the same call: Begin may wait for it.
func (e *Maker) hasRoom(ctx context.Context, was, now *engine.Timer) error {
	under, err := e.cfg.Quotas.Begin(ctx, now.App)
	if err != nil {
		return err
	}
	defer under.End()
	return under.Allows(was, now)
}

// draft is the change that creates a timer.
func (e *Maker) draft(ctx context.Context, d *engine.Definition, now int64) (*engine.Change, error) {
	if err := plan.Validate(d); err != nil { // before an id is used
		return nil, err
	}
	own := e.memory.Owned() // where the node can call it, and change it
	if own == (engine.Set{}) {
		return nil, engine.ErrElsewhere
	}
	t, err := plan.NewTimer(d, e.IDs.Next(now, own), now)
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
func (e *Maker) owing(t *engine.Timer, fresh bool, reached int64, taken func(engine.Key) (bool, error)) ([]engine.Owed, error) {
	if t.Status != engine.Enabled {
		return nil, nil
	}
	_, w := e.memory.Watermark(t.ID)
	o := engine.Owed{Generation: t.Generation, Lane: t.Lane(), OneShot: t.Schedule.OneShot()}
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

// replayed is what a create with a used Idempotency-Key answers of the timer that it made:
// as it stands, or that it was deleted since. made may be its last version.
func (e *Maker) replayed(ctx context.Context, made *engine.Timer) inspect.View {
	if _, err := e.cfg.Cold.Timer(ctx, made.ID); errors.Is(err, engine.ErrNotFound) {
		return inspect.Deleted(made)
	}
	return e.Standing(ctx, made)
}

// errRemoved refuses a create that repeats an Idempotency-Key when no version of the timer
// is kept any more: a second timer must not be made, and nothing tells how the first was.
var errRemoved = &engine.Fault{
	Kind: engine.FaultConflict, Code: "timer_removed",
	Detail: "the Idempotency-Key was already used to create a timer; the timer was removed since",
}

// created turns the tier's outcome into the caller's.
func (e *Maker) created(ctx context.Context, d *engine.Definition, c *engine.Change, a engine.Applied, next int64) Created {
	switch {
	case a.Replayed && errors.Is(a.Err, engine.ErrNotFound):
		return Created{Err: errRemoved}
	case a.Replayed && a.Err == nil:
		return Created{View: e.replayed(ctx, a.Existing), Existed: true, Replayed: true}
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

// add admits a timer whose definition was just committed, wherever its next
// dues belong: rows of owed and the next minutes into memory, the coming hour
// into the warm tier (warm collects its entries). spent are dues that a range among the
// rows does not owe. It returns the next due.
func (e *Maker) add(t *engine.Timer, owe []engine.Owed, spent policy.Spans, warm *[]engine.Entry) (next int64) {
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
	e.made.Inc()
	if next != 0 {
		*warm = append(*warm, e.cfg.Entries(t, &p, next, max(horizon, t.ValidFrom+1))...)
	}
	return next
}

// updateWarm tells the warm tier what became of a timer that it may know.
func (e *Maker) updateWarm(ctx context.Context, id engine.TimerID, t *engine.Timer) {
	var definition []byte
	if t != nil {
		definition = engine.Carried(t)
	}
	e.cfg.Warm.Update(ctx, id, definition)
}
