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
	inForce map[engine.ObjectKey]bool // guarded by the set: no write is made meanwhile
}

// New registers the kinds of objects of a set that is not loaded yet.
func New(set *object.Set, memory *resident.Memory, now func() int64, log *slog.Logger) *Book {
	b := &Book{set: set, queue: memory.Queue, held: &memory.Backlogs, now: now, log: log, inForce: map[engine.ObjectKey]bool{}}
	for _, kind := range []string{FlowKind, PauseKind, TargetKind, FlowKind + leftBehind, TargetKind + leftBehind} {
		set.Register(object.Kind{Name: kind, Uncounted: strings.HasSuffix(kind, leftBehind), Changed: func(k engine.ObjectKey) {
			if k == (engine.ObjectKey{}) {
				b.load(kind)
			} else {
				b.put(k, false)
			}
		}})
	}
	return b
}

// load puts all objects of a kind into force, after they were read from the store.
func (b *Book) load(kind string) {
	stands := map[engine.ObjectKey]bool{}
	for _, app := range b.set.Apps(kind) {
		for _, o := range b.set.List(kind, app) {
			stands[o.ObjectKey] = true
			b.put(o.ObjectKey, true)
		}
	}
	for k := range b.inForce {
		if k.Kind == kind && !stands[k] {
			b.put(k, false)
		}
	}
}

// put puts an object into force, as it stands. started: it was there before the process.
func (b *Book) put(k engine.ObjectKey, started bool) {
	o := b.set.Get(k)
	x, err := Read(o)
	if err != nil {
		b.log.Error("a limit is not in force", "error", err)
		return
	}
	if b.inForce[k] = o != nil; o == nil {
		delete(b.inForce, k)
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
