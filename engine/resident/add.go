package resident

import (
	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Scheduled reports whether a timer has its next due in the wheel, or needs none there.
func (m *Memory) Scheduled(id engine.TimerID) bool {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	lv := sh.timers[id]
	return lv != nil && (lv.next != 0 || lv.late || lv.behind)
}

// Load puts a timer into memory that was read from a tier and schedules its first due ≥ from
// that is not finished; t is nil when the tier has none, or when it was enrolled
// already. again tells that the timer is being changed, or was since it was read.
func (m *Memory) Load(id engine.TimerID, t *engine.Timer, from int64, own bool, read *Read) (again bool, wait <-chan struct{}, err error) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	if sh.stay == away || sh.stay == closed {
		return false, nil, nil
	}
	if c := sh.changing[id]; c.over != nil && !c.rows && !own {
		return true, c.over, nil
	}
	if lv := sh.timers[id]; t == nil && lv != nil {
		t = lv.def
	}
	if t == nil || t.Status != engine.Enabled {
		return false, nil, nil
	}
	if max(sh.changed[id], sh.opened) > read.from && !own {
		return true, nil, nil
	}
	after := max(from-1, sh.watermark, sh.decided[id])
	lv, err := m.enrollToLoad(sh, t, after)
	if lv == nil {
		return false, nil, err
	}
	m.scheduleLoaded(sh, lv, after)
	sh.dismiss(lv)
	return false, nil, nil
}

// enrollToLoad is enroll for a timer that is loaded; nil: it is deferred. mu is held.
func (m *Memory) enrollToLoad(sh *shard, t *engine.Timer, after int64) (*Timer, error) {
	if t.Schedule.OneShot() && sh.timers[t.ID] == nil && m.Lanes.of(t).isGated() {
		p, err := plan.Of(t)
		if err != nil || m.defers(t, &p, after) {
			return nil, err
		}
	}
	return m.enroll(sh, t)
}

// scheduleLoaded schedules the first due after the instant of a timer that is loaded. mu is held.
func (m *Memory) scheduleLoaded(sh *shard, lv *Timer, after int64) {
	// The decision about a timer that is late begins at the watermark, and what
	// follows is scheduled when it was made.
	if !lv.late && !lv.behind && !lv.frozen && !lv.deleted {
		if lv.next == 0 {
			if !m.addFull(lv, after) {
				m.schedule(lv, after)
			}
		} else if due, ok := sh.skipped(lv, after); ok {
			m.unschedule(lv)
			m.schedule(lv, due-1)
		}
	}
}

// addRow makes the task of a row; it is returned when it is to be queued now. spent are
// the spent dues of a range. mu is held.
func (m *Memory) addRow(sh *shard, def *engine.Timer, o engine.Owed, spent policy.Spans, now int64) (*Task, error) {
	lv, err := m.enroll(sh, def)
	if err != nil {
		return nil, err
	}
	if o.To != 0 {
		m.addRange(lv, &o, spent, now)
		sh.dismiss(lv)
		return nil, nil
	}
	t := &Task{timer: lv, row: rowCurrent}
	t.Key, t.Origin, t.Since, t.Generation = o.Key, o.Origin, o.Key.Due, o.Generation
	t.App, t.Name = def.App, def.Name
	if o.Task != nil {
		t.Task = *o.Task
	}
	// A task that was there before the start may have had any number of attempts more
	// than its row and the journal tell of: what the former process had not synced is
	// lost, begins and ends of several. So each attempt of it may be a repeat, the first
	// after the start and all later ones.
	switch {
	case o.Begun:
		t.past = wasUnended
	case t.Since <= sh.repeats:
		t.past = mayRepeat
	}
	if len(t.Attempts) > t.Base || o.Begun && (o.Key.Due <= now || !t.yields()) {
		t.busy = true // its timer is busy: see Overlap
		lv.busy++
	}
	t.Status, t.NotBefore = engine.Waiting, o.NotBefore
	if t.forced = def.IsForced(&o); t.forced {
		t.Lane, t.turn.Lane = m.Lanes.ofRow(def, &o), m.Lanes.forcedQueueOf(def)
	}
	t.backlog = !t.forced && o.Origin == engine.FromSchedule && lv.hasBacklogLane(t.past != noPast)
	if o.Held != 0 {
		m.wasHeld(sh, t, &o, now)
	}
	if t.busy && !t.forced && lv.queueLane().IsGated() {
		t.turn.Lane = lv.queueLane()
		m.Queue.Keep(&t.turn)
	}
	sh.attach(t)
	if o.NotBefore > now {
		t.move(Retrying)
		t.noteSetBack(now)
		t.Status = engine.Retrying
		t.handle = m.Wheel.Add(o.NotBefore, Item{id: o.Key.Timer, due: o.Key.Due})
		return nil, nil
	}
	t.await(now)
	return t, nil
}

// addRange has the wheel go through a range, or leaves the range to refill. Of several, the wheel goes
// through the earliest. mu is held.
func (m *Memory) addRange(lv *Timer, o *engine.Owed, spent policy.Spans, now int64) {
	switch {
	case lv.rangeTo() != 0 && lv.turning.from == o.Key.Due: // the wheel goes through it already
	case o.To > now && !lv.plan.Has(o.Key.Due) && (lv.rangeTo() == 0 || o.Key.Due < lv.turning.from):
		// The clock was set back behind the watermark; see ranges.
		if x := lv.turning; lv.rangeTo() != 0 {
			m.Lanes.Of(x.lane).Waits(engine.Place{NotBefore: x.from, Key: engine.Key{Timer: lv.def.ID, Due: x.from}})
		}
		lv.turns(o, spent)
		m.unschedule(lv)
		m.schedule(lv, o.Key.Due)
	default:
		m.Lanes.Of(o.Lane).Waits(o.Place())
		if o.Lane != lv.def.Lane() { // the target was changed while the row was being stored
			m.Moving.Add(&MovingTimer{lv.def.ID, o.Key.Due - 1})
		}
	}
}

// Add puts a timer into memory whose definition was just committed, with its rows: what
// is due within what is loaded. spent are dues that a range among the rows does not owe.
func (m *Memory) Add(t *engine.Timer, p *plan.Plan, owe []engine.Owed, spent policy.Spans) {
	now, sh := m.now(), m.shardOf(t.ID)
	sh.mu.Lock()
	ready := m.add(sh, t, p, owe, spent, now)
	sh.mu.Unlock()
	m.Enqueue(ready)
}

func (m *Memory) add(sh *shard, t *engine.Timer, p *plan.Plan, owe []engine.Owed, spent policy.Spans, now int64) (ready []*Task) {
	due, ok := p.Next(t.ValidFrom)
	if len(owe) == 0 && (!ok || due >= m.Horizon.Load()) {
		return nil
	}
	lv := sh.timers[t.ID]
	if lv == nil && len(owe) == 0 && m.defers(t, p, t.ValidFrom) {
		return nil
	}
	if lv == nil || lv.def.Version != t.Version {
		lv = m.join(sh, t, p)
	}
	for _, o := range owe {
		if o.To != 0 {
			lv.turns(&o, spent)
			continue
		}
		if !lv.inMemory().admits(o.Place()) {
			continue // refill brings it
		}
		tk := sh.enlist(lv, o.Key, o.Origin, rowCurrent, now)
		if o.NotBefore > now {
			tk.move(Retrying)
			tk.handle = m.Wheel.Add(o.NotBefore, Item{id: o.Key.Timer, due: o.Key.Due})
			continue
		}
		ready = append(ready, tk)
	}
	if lv.next == 0 && !(len(owe) == 1 && p.OneShot()) {
		m.schedule(lv, t.ValidFrom)
	}
	sh.dismiss(lv)
	return ready
}

// RowFate is what became of a row that was to come into memory.
type RowFate uint8

const (
	RowKept     RowFate = iota // its task is in memory, or refill brings it
	RowChanging                // it waits for a change of its timer, for a decision, or for an earlier row, and is read again then
	RowOutdated                // it, or the definition, may have changed since it was read
	RowEnded                   // its generation is over
	RowWaits                   // its lane has no room
)

// Row is a row that was read, with what is needed to take it into memory.
type Row struct {
	engine.Owed
	Timer *engine.Timer // nil: there is none
	Spent policy.Spans  // of a range
	Read  *Read
	// ByLane: refill has read it; else it stays in the cold tier when its lane has no room.
	ByLane bool
}

// AddRow takes a row into memory. ready is its task, if it is to be queued now; change is
// what it waits for.
func (m *Memory) AddRow(r *Row, now int64) (fate RowFate, ready *Task, change <-chan struct{}, err error) {
	if r.Timer != nil && r.ByLane {
		m.Lanes.Identify(r.Timer)
	}
	sh := m.lock(r.Key.Timer)
	defer sh.mu.Unlock()
	switch ch := sh.changing[r.Key.Timer].over; {
	case sh.stay == away || sh.stay == closed: // another node has it
	case ch != nil:
		return RowChanging, nil, ch, nil
	case sh.tasks.find(r.Key) != nil:
	default:
		if fate, change = m.fateOf(sh, r); fate == RowKept {
			ready, err = m.addRow(sh, r.Timer, r.Owed, r.Spent, now)
		}
	}
	if fate != RowChanging && fate != RowOutdated {
		sh.notAside(r.Key)
	}
	return fate, ready, change, err
}

// AddRequested is AddStored for the row of a task that somebody has requested. Where its lane has no room, refill
// brings it.
func (m *Memory) AddRequested(t *engine.Timer, o engine.Owed) error {
	if !m.Lanes.ofRow(t, &o).admits(o.Place()) {
		return nil
	}
	o.Held = 0
	return m.AddStored(t, o)
}

// AddStored takes a row into memory that was just stored. Its timer is claimed. A row of a
// shard that leaves stays in the cold tier.
func (m *Memory) AddStored(t *engine.Timer, o engine.Owed) error {
	sh := m.lock(t.ID)
	if sh.stay == away || sh.stay == closed {
		sh.mu.Unlock()
		return nil
	}
	ready, err := m.addRow(sh, t, o, nil, m.now())
	sh.mu.Unlock()
	if err == nil && ready != nil {
		m.Enqueue([]*Task{ready})
	}
	return err
}

// ReplaceRange takes the rows of a claimed timer into memory, in place of its range.
func (m *Memory) ReplaceRange(t *engine.Timer, os []engine.Owed, spent policy.Spans) error {
	var ready []*Task
	sh, now := m.shardOf(t.ID), m.now()
	sh.mu.Lock()
	defer func() {
		sh.mu.Unlock()
		m.Enqueue(ready)
	}()
	if lv := sh.timers[t.ID]; lv != nil {
		lv.turning = nil
	}
	for _, o := range os {
		if o.To == 0 && sh.tasks.find(o.Key) != nil {
			continue
		}
		tk, err := m.addRow(sh, t, o, spent, now)
		if err != nil {
			return err
		}
		if tk != nil {
			ready = append(ready, tk)
		}
	}
	return nil
}

// Item is what lies in the wheel: a timer's next due, or (Due ≠ 0) the retry of
// one of its tasks.
type Item struct {
	id  engine.TimerID
	due int64
}

// take makes the task of a due, nil when it was taken already: it is in memory, or not
// later than the watermark and not owed, or spent. mu is held.
func (sh *shard) take(lv *Timer, due, now int64) *Task {
	k := engine.Key{Timer: lv.def.ID, Due: due}
	ranged := due <= lv.rangeTo()
	if due <= sh.watermark && !ranged {
		return nil
	}
	// Looking, in memory that no cache holds, was a twentieth of a fire. A timer's dues
	// come in order, except minutes that are admitted late and rows that are owed
	// ahead of a clock that was set back.
	if due <= lv.latest && sh.tasks.find(k) != nil {
		sh.reaches(lv, due)
		return nil
	}
	var t *Task
	if !lv.spent().Has(due) {
		row := noRow
		if ranged {
			row = rowStale // it needs one of its own, for the range goes when it is over
		}
		t = sh.enlist(lv, k, engine.FromSchedule, row, now)
		t.ranged = ranged
	}
	sh.reaches(lv, due)
	return t
}

// reaches ends the range that the wheel goes through with the last due of the range. mu is held.
func (sh *shard) reaches(lv *Timer, due int64) {
	to := lv.rangeTo()
	if to == 0 {
		return
	}
	if next, ok := lv.plan.Next(due); !ok || next > to {
		sh.paid = append(sh.paid, engine.Key{Timer: lv.def.ID, Due: lv.turning.from})
		sh.toSettle.Store(true)
		lv.turning = nil
	}
}

// wake makes a task ready whose time in the wheel has come. mu is held.
func (sh *shard) wake(k engine.Key, now int64) *Task {
	t := sh.tasks.find(k)
	if t == nil || t.state != Retrying {
		return nil
	}
	t.await(now)
	return t
}

// Fire takes what is due from the wheel: makes tasks, puts each timer's next due
// back into the wheel, and queues the tasks. It runs on the wheel's goroutine,
// so nothing in it waits for a disk or a network; and the wheel counts a due as
// handed over when it has returned, which is what the watermark relies on.
func (m *Memory) Fire(due int64, batch []Item) {
	now := m.now()
	stepped := min(m.Stepped.Load(), now) // it may have been set back since
	ready := m.ready[:0]
	for _, it := range batch {
		sh := m.lock(it.id)
		var t *Task
		switch lv := sh.timers[it.id]; {
		case sh.stay == closed: // what is due is another node's
		case it.due != 0:
			t = sh.wake(engine.Key{Timer: it.id, Due: it.due}, now)
		case lv == nil || lv.next != due:
			// Removed or changed while the wheel was handing it over.
		case lv.frozen && due <= lv.rangeTo():
			// The change under way decides about the whole range. If it fails, Thaw has the due fire.
		case stepped-due > policy.MisfireAfter:
			m.addLate(lv, LateTimer{due: due, at: stepped})
		case sh.fallsBehind(lv, due, now):
			m.addLate(lv, LateTimer{due: due, at: now, behind: true})
		default:
			if t = sh.take(lv, due, now); t != nil && (lv.plan.OneShot() || lv.def.Overlap == engine.OverlapAllow) && !t.Lane.takes(t) {
				t.move(Leaving)
				t.backlog = lv.hasBacklogLane(false)
				t = nil
			}
			if t != nil {
				t = m.takesTurn(sh, t, now)
			}
			failpoint.Hit("next-compute")
			m.schedule(lv, due)
			sh.dismiss(lv)
		}
		sh.mu.Unlock()
		if t != nil {
			ready = append(ready, t)
		}
	}
	failpoint.Hit("pop-before-intent")
	m.Enqueue(ready)
	clear(ready)
	m.ready = ready[:0]
}
