package resident

import (
	"slices"
	"sync"
	"sync/atomic"

	"xtimer/engine"
	"xtimer/engine/fair"
)

// Where the tasks of a flow key, or of a target, go one after the other in the order of their dues
// (engine/fair, order.go), the queue has to know what is due and not in it, or a task of another lane
// would go before an older one. A mark in the queue says from which due on that may be:
//
//	rows of a spilled lane           Lane.mark: the first place that refill has not read
//	a task that leaves for its row   Lane.leaving
//	dues that are being decided      LateTimer.mark, from the due to the row
//	one-shots that are deferred      deferredSecond.marks
//	rows on their way                Expect: a commit, a change of the timer
//
// Marks are made of lanes with gates. Of a lane that no timer in memory has, as after a start, nobody knows the
// keys; while such a lane has rows, or shards are gained, nothing is known (order.tell).

// order is what the queue knows of what is due.
type order struct {
	mu      sync.Mutex    // comes after that of a lane
	loaded  *atomic.Int64 // see Memory
	unknown int           // spilled lanes of unknown keys, and gains under way
}

// tell tells the queue up to when it knows what is due. mu is held.
func (o *order) tell(q *fair.Queue[*Task]) {
	if o.unknown > 0 {
		q.SetKnown(0)
	} else {
		q.SetKnown(o.loaded.Load())
	}
}

// addUnknown adds to the number of unknown lanes and gains, and tells the queue if all is known now, or no more.
func (ls *Lanes) addUnknown(n int) {
	ls.order.mu.Lock()
	defer ls.order.mu.Unlock()
	was := ls.order.unknown
	if ls.order.unknown += n; (was > 0) != (ls.order.unknown > 0) {
		ls.order.tell(ls.queue)
	}
}

// TellLoaded tells the queue up to when all dues are loaded.
func (m *Memory) TellLoaded() {
	o := &m.Lanes.order
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tell(m.Queue)
}

// Gaining notes that shards come whose rows no lane knows yet; the caller calls known when they do.
func (m *Memory) Gaining() (known func()) {
	m.Lanes.addUnknown(1)
	return func() { m.Lanes.addUnknown(-1) }
}

// told is what the queue knows of the rows of a lane that wait.
type told struct {
	from    int64 // outside
	mark    *fair.Mark[*Task]
	unknown bool // mark is nil, for the keys of the lane are not known
	// expected are rows on their way to memory of which refill has known since before the keys of the lane were known.
	expected []*expected
}

// expected is a row that is on its way to memory. The mu of its lane guards it.
type expected struct {
	from int64
	mark *fair.Mark[*Task] // nil: the keys of the lane are not known
}

// outside is from which instant on rows of the lane wait outside memory. mu is held.
func (l *Lane) outside() int64 {
	if !l.spilled.Load() {
		return fair.None
	}
	return min(l.next.NotBefore, l.lowest.NotBefore)
}

// tell tells the queue which rows wait. mu is held.
func (l *Lane) tell() {
	at := l.outside()
	if at == l.from {
		return
	}
	l.from = at
	switch q := l.queued.Load(); {
	case q == nil && l.unknown != (at != fair.None):
		if l.unknown = !l.unknown; l.unknown {
			l.all.addUnknown(1)
		} else {
			l.all.addUnknown(-1)
		}
	case q == nil:
	case l.mark == nil:
		l.mark = l.all.queue.Mark(q, at)
	default:
		l.all.queue.Move(l.mark, at)
	}
}

// isIn notes in which lane of the queue the tasks of the lane wait.
func (l *Lane) isIn(q *fair.Lane[*Task]) {
	if l.queued.Swap(q) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from != fair.None && l.mark == nil {
		l.mark = l.all.queue.Mark(q, l.from)
	}
	for _, x := range l.expected { // before others of the keys go on
		if q.IsGated() {
			x.mark = l.all.queue.Mark(q, x.from)
		}
	}
	l.expected = nil
	if l.unknown {
		l.unknown = false
		l.all.addUnknown(-1)
	}
}

// Identify has the lane of a timer know its keys.
func (ls *Lanes) Identify(t *engine.Timer) {
	ls.of(t)
}

// markOf makes a mark of a task that leaves; nil: its lane has no gates. mu is held.
func (l *Lane) markOf(t *Task) *fair.Mark[*Task] {
	if !l.isGated() {
		return nil
	}
	return l.all.queue.Mark(t.lane(), t.place().NotBefore)
}

// lacksRows reports whether the lane is to have rows read although it has no room: its key is
// unknown, or keeps order, and those that wait in memory have to wait for the rows. mu is held.
func (l *Lane) lacksRows() bool {
	q := l.queueLane()
	return l.resident.Load() < int64(l.all.HeldMost+refillPage) && (q == nil || l.all.queue.Lacks(q))
}

// IsGated reports whether the tasks of a timer go through gates, or may.
func (m *Memory) IsGated(t *engine.Timer) bool { return m.Lanes.queueOf(t).IsGated() }

// InOrder reports whether the tasks of a timer go in the order of their dues.
func (m *Memory) InOrder(t *engine.Timer) bool { return m.Lanes.queueOf(t).IsOrdered() }

// Expect notes that a row is on its way to memory, of a timer if it is known; the caller calls come when it is
// there, or its lane knows of it.
func (m *Memory) Expect(t *engine.Timer, o *engine.Owed) (come func()) {
	if t != nil {
		m.Lanes.Identify(t)
	}
	l := m.Lanes.Of(o.Lane)
	x := &expected{from: o.NotBefore}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch q := l.queueLane(); {
	case q == nil:
		l.expected = append(l.expected, x)
	case !q.IsGated():
		return func() {}
	default:
		x.mark = m.Queue.Mark(q, x.from)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.expected = slices.DeleteFunc(l.expected, func(y *expected) bool { return y == x })
		m.Queue.Move(x.mark, fair.None)
	}
}

// The tasks of a timer with overlap "queue" are called in the order of their dues, so its rows come
// into memory in this order. A start, and a gain, stores them in one lane (recovery.changeLanes), as does a change of
// the target (Move), and refill reads the rows of a lane in order, but a row may have to wait: for a change of the timer, for a decision about its late dues, or
// for room. Until the row is in memory, or refill is to read it again, no later row of the timer comes into memory, and
// no later due becomes a task (fallsBehind):
//
//	the row waits for a change or a decision   SetAside notes it until it is resumed
//	the row waits for room                     Lane.lowest is its place, from which refill reads again
//	the lanes do not know yet which rows of    the row waits until Known, and refill reads its lane again from there:
//	its shard wait (it was just gained)        refill may have passed the place of an earlier row
//
// A row whose task was begun does not wait for earlier rows, wherever its next attempt stands in its lane: its
// timer is busy with that task before a later due is called.

// SetAside notes rows that wait for a change of their timer, for a decision, or for an earlier range; end is called
// when all have been resumed.
func (m *Memory) SetAside(os []engine.Owed) (end func()) {
	for i := range os {
		m.setAside(os[i].Key)
	}
	return func() {
		for i := range os {
			sh := m.lock(os[i].Key.Timer)
			sh.notAside(os[i].Key)
			sh.mu.Unlock()
		}
	}
}

func (m *Memory) setAside(k engine.Key) {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	dues := sh.aside[k.Timer]
	at, _ := slices.BinarySearch(dues, k.Due)
	sh.aside[k.Timer] = slices.Insert(dues, at, k.Due)
}

// MovingTimer is a timer whose rows are to be stored in its present lane.
type MovingTimer struct {
	ID    engine.TimerID
	After int64 // the due of the last row that was looked at
}

// Move adds a timer that is given another target, or other flow keys, to Moving if rows may wait in its former lane.
// Refill would read them when that lane has room, and the former target may be mute. Until Moved no later due of a
// timer with overlap "queue" becomes a task, and none of its rows comes into memory. The only row of a one-shot
// overtakes none, and stays where it is.
func (m *Memory) Move(was, now *engine.Timer) {
	if was.Lane() != now.Lane() && !now.Schedule.OneShot() && m.Lanes.Of(was.Lane()).hasRows(was.ID.Shard()) {
		m.setAside(engine.Key{Timer: was.ID})
		m.Moving.Add(&MovingTimer{was.ID, -1})
	}
}

// Moved notes that the rows of a timer are in its present lane.
func (m *Memory) Moved(id engine.TimerID) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	sh.notAside(engine.Key{Timer: id})
}

// hasRows reports whether rows of timers in a shard may wait in the lane.
func (l *Lane) hasRows(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spilled.Load() && l.rowsIn.Has(shard)
}

// notAside notes that a row is not set aside any more. mu is held.
func (sh *shard) notAside(k engine.Key) {
	dues, ok := sh.aside[k.Timer]
	if !ok {
		return
	}
	at, found := slices.BinarySearch(dues, k.Due)
	switch {
	case !found:
	case len(dues) == 1:
		delete(sh.aside, k.Timer)
	case at == 0: // the usual one: rows are resumed in order
		sh.aside[k.Timer] = dues[1:]
	default:
		sh.aside[k.Timer] = slices.Delete(dues, at, at+1)
	}
}

// overtakes reports whether a row would come before an earlier one of its timer, which is set
// aside. mu is held.
func (sh *shard) overtakes(r *Row) bool {
	return r.KeepsOrder() && sh.hasAside(r.Key.Timer, r.Key.Due)
}

// hasAside reports whether a row of a timer is set aside that is earlier than a due. mu is held.
func (sh *shard) hasAside(id engine.TimerID, due int64) bool {
	dues := sh.aside[id]
	return len(dues) > 0 && dues[0] < due
}

// comesEarly notes a row that has come before the lanes know which rows of the shard wait. mu is held.
func (sh *shard) comesEarly(id engine.Lane, at engine.Place) {
	if sh.early == nil {
		sh.early = map[engine.Lane]engine.Place{}
	}
	if first, ok := sh.early[id]; !ok || at.Compare(first) < 0 {
		sh.early[id] = at
	}
}

// KeepsOrder reports whether a row comes into memory after all earlier ones of its timer.
func (r *Row) KeepsOrder() bool {
	return r.To == 0 && !isUnderWay(&r.Owed) && r.Timer != nil && r.Timer.Overlap == engine.OverlapQueue
}

// isUnderWay reports whether an attempt of a row's task was begun.
func isUnderWay(o *engine.Owed) bool {
	return o.Begun || o.Task != nil && len(o.Task.Attempts) > o.Task.Base
}

// KeepsTurn reports whether an attempt of a row's task was begun, and others wait for the end of the task: later
// ones of its timer, or those that want its places. Such a row comes into memory whatever room its lane has.
func (m *Memory) KeepsTurn(t *engine.Timer, o *engine.Owed) bool {
	return isUnderWay(o) && (t.Overlap != engine.OverlapAllow || m.KeepsPlaces(t))
}

// isPassed reports whether an earlier row has joined the lane since refill read the row at a place. If so,
// refill reads both rows again.
func (l *Lane) isPassed(at engine.Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lowest.Compare(at) >= 0 {
		return false
	}
	l.joins(at)
	return true
}

// fateOf is what becomes of a row that is not in memory, and whose timer is not being changed. mu is held.
func (m *Memory) fateOf(sh *shard, r *Row) (fate RowFate, change <-chan struct{}) {
	k, def, lv := r.Key, r.Timer, sh.timers[r.Key.Timer]
	switch {
	case lv != nil && lv.deciding: // it may be of the decision, which will be stored once more
		return RowChanging, m.Settled.Wait()
	case max(sh.removed[k], sh.changed[k.Timer], sh.opened) > r.Read.from:
		return RowOutdated, nil
	case def == nil || def.Generation != r.Generation:
		return RowEnded, nil
	case sh.unread && r.KeepsOrder():
		sh.comesEarly(m.Lanes.ofRow(def, &r.Owed).ID, r.Place())
		return RowWaits, nil
	case sh.overtakes(r):
		return RowChanging, m.Settled.Wait()
	case r.ByLane && r.KeepsOrder() && m.Lanes.ofRow(def, &r.Owed).isPassed(r.Place()):
		return RowWaits, nil
	case r.To != 0 || m.KeepsTurn(def, &r.Owed):
	case (!r.ByLane || r.Lane != def.LaneFor(&r.Owed)) && !m.Lanes.ofRow(def, &r.Owed).admits(r.Place()):
		return RowWaits, nil
	}
	return RowKept, nil
}
