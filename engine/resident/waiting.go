package resident

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// What waits for a flow key is listed first as it waits in the queue, and then as the rows of the
// lanes that have more of them than room:
//
//	WaitingFor, until all is listed ──► StoredFor ──► WaitingFor once more ──► the rows, with AtRow
//
// A row whose task has come into memory meanwhile has a task that came to the queue after all that
// was listed.

// Waiter is a task that waits in the queue for a flow key.
type Waiter struct {
	Task *engine.Task // nil: it waits no more
	fair.Waiter[*Task]
}

// WaitingFor lists what waits in the queue for a flow key of an app; see fair.Queue.
func (m *Memory) WaitingFor(app, key string, seen *fair.Seen, most int) (ws []Waiter, upTo uint64, all bool) {
	found, upTo, all := m.Queue.WaitingFor(app, key, seen, most)
	ws = make([]Waiter, len(found))
	for i, w := range found {
		ws[i].Waiter = w
		t := w.Value
		sh := m.lock(t.Key.Timer)
		if t.state == Queued {
			ws[i].Task = m.shown(t)
		}
		sh.mu.Unlock()
	}
	return ws, upTo, all
}

// StoredLane is a lane with rows that are not in memory: all of them are later than After.
type StoredLane struct {
	ID    engine.Lane
	After engine.Place
}

// StoredFor are the lanes of a flow key of an app with rows that are not in memory.
func (m *Memory) StoredFor(app, key string) (stored []StoredLane) {
	for _, id := range m.LanesFor(app, key) {
		if after, ok := m.Lanes.storedAfter(id); ok {
			stored = append(stored, StoredLane{id, after})
		}
	}
	return stored
}

// LanesFor are the lanes of a flow key of an app.
func (m *Memory) LanesFor(app, key string) (ids []engine.Lane) {
	return lanesOf(m.Queue.LanesFor(app, key))
}

// HeldBy are the lanes that a flow key, a target or a pause holds, each with how many tasks wait in memory.
func (m *Memory) HeldBy(n flow.Name) map[engine.Lane]int64 {
	held := map[engine.Lane]int64{}
	for _, l := range m.Queue.HeldBy(n) {
		held[engine.LaneOf(l.App, l.Target, engine.Flow(l.Flow))] += int64(l.Waiting)
	}
	return held
}

// lanesOf has each lane once: the queue has one for each class of batches.
func lanesOf(ns []fair.LaneName) (ids []engine.Lane) {
	had := map[engine.Lane]bool{}
	for _, n := range ns {
		if id := engine.LaneOf(n.App, n.Target, engine.Flow(n.Flow)); !had[id] {
			had[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// storedAfter is the place that all rows of a lane are later than that are not in memory; ok is
// false if there are none.
func (ls *Lanes) storedAfter(id engine.Lane) (after engine.Place, ok bool) {
	ls.mu.Lock()
	l := ls.byID[id]
	ls.mu.Unlock()
	if l == nil {
		return after, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if after = l.next; l.lowest.Compare(after) < 0 {
		after = l.lowest
	}
	return after, l.spilled.Load()
}

// AtRow is the task of a row of a timer as it waits; nil if it does not, or if it came to the queue
// as one of those up to upTo.
func (m *Memory) AtRow(def *engine.Timer, o *engine.Owed, upTo uint64, read *Read) *engine.Task {
	now := m.now()
	sh := m.lock(o.Key.Timer)
	defer sh.mu.Unlock()
	if t := sh.tasks.find(o.Key); t != nil {
		if came := m.Queue.Came(&t.turn); t.state == Queued && (came == 0 || came > upTo) {
			return m.shown(t) // 0: it is about to come
		}
		return nil
	}
	if sh.removed[o.Key] > read.from {
		return nil
	}
	t := &engine.Task{}
	if o.Task != nil {
		*t = *o.Task
	}
	t.Key, t.Origin, t.Generation = o.Key, o.Origin, o.Generation
	t.App, t.Name, t.Status, t.NotBefore = def.App, def.Name, engine.Waiting, 0
	l := m.Lanes.queueOf(def)
	cause := m.Queue.Cause(l)
	t.Reason = cause.By.String() + " " + cause.Name
	if took := sh.heldAsRow(t, o, now); took > 0 {
		t.AddHolds(holdsOf(m.Queue.Causes(l, took)))
	}
	return t
}

// EstimateOf is when what waits for a flow key may be called, by Unix time.
func (m *Memory) EstimateOf(app, key string) flow.Estimate {
	e := m.Queue.EstimateOf(app, key)
	if e.Next != flow.Never {
		e.Next = time.Duration(m.cfg.Now().UnixNano()) + max(e.Next-m.Queue.Now(), 0)
	}
	return e
}
