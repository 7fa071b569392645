package resident

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/policy"
)

// Backlogs say of the apps, targets and flow keys that somebody has resumed which of the dues that were
// held are not called (engine.Backlog). Package resume decides about each timer that has such
// dues; until then no attempt of them begins. The Inbox has those timers, and 0 where a
// backlog is new: all timers are to be looked at then.
type Backlogs struct {
	Inbox[engine.TimerID]
	upTo  atomic.Int64 // no backlog decides about later dues
	mu    sync.RWMutex // comes after that of a shard; guards rules
	rules flow.Rules
	// open are the backlogs that may not be decided yet about all timers: false until those in memory
	// were looked at once. idle: nothing was to be decided when the stage last asked.
	open map[flow.Name]bool
	idle bool
}

// Set puts the backlog of a name into force; the zero one says nothing. All timers are looked
// at only if it is new: the object of the name keeps it, and is written for other reasons.
func (b *Backlogs) Set(n flow.Name, x engine.Backlog) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stands := b.rules.Of(n)
	isNew := x != (engine.Backlog{}) && (stands == nil || stands.Backlog != x)
	switch {
	case isNew:
		b.rules.Set(n, &flow.Rule{Backlog: x})
		if b.open == nil {
			b.open = map[flow.Name]bool{}
		}
		b.open[n] = false
		Raise(&b.upTo, x.UpTo())
		b.Add(0)
	case x == (engine.Backlog{}):
		b.rules.Set(n, nil)
		delete(b.open, n)
	}
}

// Next are the timers that are to be decided about.
func (b *Backlogs) Next() []engine.TimerID {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := b.Take()
	if b.idle = len(ids) == 0; b.idle {
		for n := range b.open {
			b.open[n] = true
		}
	}
	return ids
}

// Deciding says what becomes of the dues that a pause of a name held, BacklogLatest or BacklogSkip, while
// that is being decided in this process; "" when it is decided, or all are called.
func (m *Memory) Deciding(n flow.Name) string {
	b := &m.Backlogs
	b.mu.RLock()
	looked, is := b.open[n]
	busy := !looked || !b.idle || !b.IsEmpty()
	var x engine.Backlog
	if r := b.rules.Of(n); r != nil {
		x = r.Backlog
	}
	b.mu.RUnlock()
	switch {
	case !is:
		return ""
	case !busy && !m.Lanes.haveRowsUpTo(n, x.UpTo()):
		return ""
	case x.Latest > x.Skip:
		return engine.BacklogLatest
	}
	return engine.BacklogSkip
}

// haveRowsUpTo reports whether lanes that a name is about may have rows of dues up to an instant that
// are not in memory.
func (ls *Lanes) haveRowsUpTo(n flow.Name, upTo int64) bool {
	if ls.spilled.Load() == 0 {
		return false
	}
	ls.mu.Lock()
	all := slices.Collect(maps.Values(ls.byID))
	ls.mu.Unlock()
	return slices.ContainsFunc(all, func(l *Lane) bool {
		q := l.queued.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.spilled.Load() && min(l.next.NotBefore, l.lowest.NotBefore) <= upTo && (q == nil || q.IsUnder(n))
	})
}

// Of is what is said of a timer.
func (b *Backlogs) Of(t *engine.Timer) (x engine.Backlog) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.rules.IsEmpty() {
		return x
	}
	names := []flow.Name{{Kind: flow.OfApp, App: flow.EachApp}, {Kind: flow.OfApp, App: t.App}, {Kind: flow.OfTarget, Key: flow.TargetOf(t.Callback.URL)}}
	for _, key := range t.Flow.Keys() {
		names = append(names, flow.Name{Kind: flow.OfFlow, App: t.App, Key: key})
	}
	for _, n := range names {
		x = x.And(b.rules.Match(n).Backlog)
	}
	return x
}

// mayWait reports whether a backlog may decide about dues from one on. A timer that fires in
// time pays no more than this.
func (b *Backlogs) mayWait(due int64) bool { return due <= b.upTo.Load() }

// IsOpen reports whether it is to be decided whether the dues of a range are called.
func (b *Backlogs) IsOpen(t *engine.Timer, o *engine.Owed, now int64) bool {
	return b.mayWait(o.Key.Due) && policy.InBacklog(b.Of(t), t, o.Origin, o.Key.Due, now)
}

// isOpen reports whether it is to be decided whether a task is called. mu of its shard is held.
func (b *Backlogs) isOpen(t *Task, now int64) bool {
	if !b.mayWait(t.Key.Due) || len(t.Attempts) > 0 || t.past == wasUnended {
		return false
	}
	x := b.Of(t.timer.def)
	return t.decided < x.UpTo() && policy.InBacklog(x, t.timer.def, t.Origin, t.Key.Due, now)
}

// isFrozen reports whether a task waits for a change of its timer, or for a decision, which it
// asks for: see package resume. mu of its shard is held.
func (m *Memory) isFrozen(t *Task, now int64) bool {
	if t.timer.frozen {
		return true
	}
	open := m.Backlogs.isOpen(t, now)
	if open {
		m.Backlogs.Add(t.Key.Timer)
	}
	return open
}

// comes has a task decided about that has come into memory. mu of its shard is held.
func (b *Backlogs) comes(t *Task) {
	if b.isOpen(t, math.MaxInt64) {
		b.Add(t.Key.Timer)
	}
}

// waits reports whether a task has come due and is in no attempt. mu is held.
func (t *Task) waits() bool {
	switch t.state {
	case Queued, Frozen, Parked, Leaving, Retrying:
		return true
	}
	return false
}

// Backlog lists the timers of a shard that may have dues in a backlog.
func (m *Memory) Backlog(shard int) (ids []engine.TimerID) {
	sh, now := m.lockShard(shard), m.now()
	defer sh.mu.Unlock()
	for id, lv := range sh.timers {
		open := lv.behind || lv.late || lv.next != 0 && m.Backlogs.mayWait(lv.next)
		for t := lv.newest; t != nil && !open; t = t.older {
			open = m.Backlogs.isOpen(t, now)
		}
		if open && m.Backlogs.Of(lv.def) != (engine.Backlog{}) {
			ids = append(ids, id)
		}
	}
	return ids
}

// SkipShot decides about the due of a one-shot, if that is in memory; a row of it is decided
// about when refill has brought it. ok is false if the timer needs more than that.
func (m *Memory) SkipShot(id engine.TimerID) (ok bool) {
	sh := m.lock(id)
	var freed *Task
	defer func() {
		sh.mu.Unlock()
		m.enqueueFreed(freed)
	}()
	lv, now := sh.timers[id], m.now()
	if lv == nil || !lv.plan.OneShot() || lv.frozen {
		return false
	}
	for t := lv.oldest; t != nil; {
		newer := t.newer
		if t.waits() && m.Backlogs.isOpen(t, now) {
			freed = cmp.Or(m.conclude(sh, t, engine.Skipped, engine.ReasonPaused, now), freed)
		}
		t = newer
	}
	if freed != nil && freed.state != Queued {
		freed = nil
	}
	return true
}

// enqueueFreed queues a task that has got the turn of its timer, nil for none.
func (m *Memory) enqueueFreed(t *Task) {
	if t != nil {
		m.Enqueue([]*Task{t})
	}
}

// Waiting are the dues of a timer in a backlog that have a task in memory.
type Waiting struct {
	// Stored have a row and are not later than the watermark: no plan derives them. The
	// Others get a record of their own.
	Stored, Others policy.Spans
	Watermark      int64
	Has            func(due int64) bool // reports whether a due has a task in memory
}

// Waiting is what waits of a timer that is claimed and frozen. ok is false while dues of it are
// still to come into memory, or to be decided.
func (m *Memory) Waiting(t *engine.Timer) (w Waiting, ok bool) {
	if !m.IsJudged(t.ID) {
		return w, false
	}
	sh, now := m.lock(t.ID), m.now()
	defer sh.mu.Unlock()
	w.Watermark = sh.watermark
	has := map[int64]bool{}
	w.Has = func(due int64) bool { return has[due] }
	if sh.done > 0 { // rows of tasks that have ended stay until a settle, which may have their records under way
		for _, x := range sh.taskDues(t.ID, -1, math.MaxInt64) {
			has[x[0]] = true
		}
	}
	lv := sh.timers[t.ID]
	if lv == nil {
		return w, true
	}
	if upTo := m.Backlogs.Of(t).UpTo(); lv.late || lv.deciding || lv.next != 0 && lv.next <= min(upTo, now) {
		return w, false
	}
	for k := lv.oldest; k != nil; k = k.newer {
		has[k.Key.Due] = true
		switch {
		case !k.waits() || !m.Backlogs.isOpen(k, now):
		case k.HasOpenRow() && k.Key.Due <= sh.watermark && k.journaled == 0:
			w.Stored = append(w.Stored, [2]int64{k.Key.Due, k.Key.Due})
		default:
			w.Others = append(w.Others, [2]int64{k.Key.Due, k.Key.Due})
		}
	}
	return w, true
}

// Decided puts a decision into force about what waits of a timer that is claimed and frozen:
// of the dues all are not called but one. The rows of those that are stored have been removed.
// whole: there is nothing else to decide about the dues up to the end of the backlog.
func (m *Memory) Decided(t *engine.Timer, w *Waiting, last int64, whole bool) {
	sh, now := m.lock(t.ID), m.now()
	var freed *Task
	defer func() {
		sh.mu.Unlock()
		m.enqueueFreed(freed)
	}()
	lv := sh.timers[t.ID]
	if lv == nil {
		return
	}
	for _, x := range w.Stored {
		if k := sh.tasks.find(engine.Key{Timer: t.ID, Due: x[0]}); x[0] != last && k != nil {
			m.forget(sh, k)
			if k.busy {
				k.busy = false
				lv.busy--
			}
		}
	}
	for _, x := range w.Others {
		if k := sh.tasks.find(engine.Key{Timer: t.ID, Due: x[0]}); x[0] != last && k != nil {
			freed = cmp.Or(m.conclude(sh, k, engine.Skipped, engine.ReasonPaused, now), freed)
		}
	}
	upTo := m.Backlogs.Of(t).UpTo()
	for k := lv.oldest; k != nil && whole; k = k.newer {
		if k.Key.Due <= upTo {
			k.decided = max(k.decided, upTo)
		}
	}
	if freed == nil || freed.state != Queued {
		freed = lv.nextTurn(now)
	}
}

// FreezeAll freezes several timers, and waits for what is under way once.
func (m *Memory) FreezeAll(ctx context.Context, ids []engine.TimerID) error {
	for _, id := range ids {
		sh := m.lock(id)
		if lv := sh.timers[id]; lv != nil {
			lv.frozen = true
		}
		sh.mu.Unlock()
	}
	for _, id := range ids {
		if err := m.Freeze(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// TryClaim is Claim for a caller that does not wait; see TryClaimRows. The timer is not loaded
// meanwhile, for it is frozen.
func (m *Memory) TryClaim(id engine.TimerID) (release func(), change <-chan struct{}) {
	return m.tryClaim(id, false)
}
