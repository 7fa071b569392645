package limit

import (
	"log/slog"
	"strings"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/engine/object"
	"xtimer/engine/resident"
)

// Book keeps the rules of a queue as the objects say. A rule is in force when the write of its object returns.
type Book struct {
	set     *object.Set
	queue   *fair.Queue[*resident.Task]
	held    *resident.Backlogs
	now     func() int64
	log     *slog.Logger
	inForce map[engine.ObjectKey]*engine.Object // guarded by the set: no write is made meanwhile
}

// New registers the kinds of objects of a set that is not loaded yet.
func New(set *object.Set, memory *resident.Memory, now func() int64, log *slog.Logger) *Book {
	b := &Book{set: set, queue: memory.Queue, held: &memory.Backlogs, now: now, log: log, inForce: map[engine.ObjectKey]*engine.Object{}}
	for _, kind := range []string{FlowKind, PauseKind, TargetKind, FlowKind + leftBehind, TargetKind + leftBehind} {
		set.Register(object.Kind{
			Name: kind, Uncounted: strings.HasSuffix(kind, leftBehind), ClockSet: func() { b.clockSet(kind) },
			Changed: func(k engine.ObjectKey) {
				if k == (engine.ObjectKey{}) {
					b.load(kind)
				} else {
					b.put(k, false)
				}
			},
		})
	}
	return b
}

// load puts the objects of a kind into force that are not yet, after all were read from the store. Each put
// costs a walk through the lanes, and there may be 10,000 objects of which another node has written one.
func (b *Book) load(kind string) {
	for _, app := range b.set.Apps(kind) {
		for _, o := range b.set.List(kind, app) {
			if b.inForce[o.ObjectKey] != o {
				b.put(o.ObjectKey, true)
			}
		}
	}
	for k := range b.inForce {
		if k.Kind == kind && b.set.Get(k) == nil {
			b.put(k, false)
		}
	}
}

// clockSet puts the objects of a kind into force again whose rules are counted by the wall clock.
func (b *Book) clockSet(kind string) {
	for k, o := range b.inForce {
		if k.Kind != kind {
			continue
		}
		if x, err := Read(o); err == nil && x.hasInstants() {
			b.put(k, false)
		}
	}
}

// put puts an object into force, as it stands. started: it was there before the process.
func (b *Book) put(k engine.ObjectKey, started bool) {
	o := b.set.Get(k)
	if b.inForce[k] = o; o == nil {
		delete(b.inForce, k)
	}
	x, err := Read(o)
	if err != nil {
		b.log.Error("a limit is not in force", "error", err)
		return
	}
	of := k
	of.Kind = strings.TrimSuffix(k.Kind, leftBehind)
	b.held.Set(NameOf(of), b.backlog(of)) // first: what the gate lets through is to know it
	if of != k {
		return
	}
	var rule *flow.Rule
	if o != nil {
		rule = x.rule(b.now(), b.queue.Now())
		rule.Started = started
		if p := x.Paused(o, b.now()); p != nil {
			rule.PausedSince = p.Since
		}
	}
	b.queue.SetRule(NameOf(k), rule)
}

// backlog is what an object says of dues that were held, and what a former one has left behind.
func (b *Book) backlog(k engine.ObjectKey) (all engine.Backlog) {
	for _, k := range []engine.ObjectKey{k, leftKey(k)} {
		if x, err := Read(b.set.Get(k)); err == nil {
			all = all.And(x.backlog())
		}
	}
	return all
}
