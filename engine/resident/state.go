package resident

import (
	"cmp"
	"context"
	"fmt"

	"xtimer/engine"
)

// State is where a task in memory stands. Its way:
//
//	     due, row             row of a later time
//	        │                          │
//	        ▼        its time          ▼
//	     Queued ◄────────────────── Retrying ◄──────────────┐
//	┌───── │ ▲ ───── not yet ─────────► ▲                   │
//	│      │ │                          │ not sent          │
//	│      │ └── the definition is ─┐   │                   │
//	│      ▼          another       │   │                   │ to be tried again
//	│   Preparing ──────────────────┴───┤                   │
//	│      │ ▲                          │                   │
//	│      ▼ │ no byte was sent         │                   │
//	│   Writing ────────────────────────┤ (a panic)         │
//	│      │ first byte                 │                   │
//	│      ▼                            ▼                   │
//	│   Sending ──────────────────────────────────────────► ┤
//	│                                                       ▼
//	└───────────────────────────────────────────────────► Done ──► Gone
//
// and what it waits for beside its turn:
//
//	Queued, Preparing ──► Frozen    a change of its timer is being committed  ──► Queued
//	Queued ────────────► Frozen     its backlog is being decided              ──► Queued
//	Queued ────────────► Parked     another task of its timer (overlap: queue) ──► Queued
//	Queued ────────────► Leaving    its lane has no room: its row is stored    ──► Gone, or Queued
//
// A change ends what is not in a call: Done when it has a row or attempts, else Gone. A
// retry that is far leaves memory: Gone. All leave with their shard: Gone.
type State uint8

const (
	isNew     State = iota
	Queued          // in the queue
	Frozen          // taken from the queue while a change was being committed
	Parked          // waits for another task of its timer (overlap: queue)
	Preparing       // an attempt runs, of which no byte was sent
	Writing         // … whose first bytes are being written
	Sending         // … whose first byte was sent
	Retrying        // its next attempt lies in the wheel
	Leaving         // its lane has no room: it goes when its row is stored
	Done            // over, and in memory until that is settled
	Gone            // not in memory any more
	states
)

var stateNames = [states]string{"new", "queued", "frozen", "parked", "preparing", "writing", "sending", "retrying", "leaving", "done", "gone"}

func (s State) String() string { return stateNames[s] }

// moves has for each state those that may follow it.
var moves = [states][]State{
	isNew:     {Queued, Retrying},
	Queued:    {Frozen, Parked, Preparing, Retrying, Leaving, Done, Gone},
	Frozen:    {Queued, Done, Gone},
	Parked:    {Queued, Done, Gone},
	Preparing: {Queued, Frozen, Writing, Retrying, Done, Gone},
	Writing:   {Preparing, Sending, Retrying, Done, Gone},
	Sending:   {Retrying, Done, Gone},
	Retrying:  {Queued, Done, Gone},
	Leaving:   {Queued, Done, Gone},
	Done:      {Gone},
	Gone:      {},
}

// mayMove is moves as a table of bits.
var mayMove = func() (table [states]uint16) {
	for from, tos := range moves {
		for _, to := range tos {
			table[from] |= 1 << to
		}
	}
	return table
}()

// move takes a task to another state. mu is held.
func (t *Task) move(to State) {
	if mayMove[t.state]&(1<<to) == 0 {
		panic(fmt.Sprintf("BUG: task %s is %v and becomes %v", t.Key, t.state, to))
	}
	if t.state == Parked {
		t.timer.parked--
	}
	if t.early {
		t.early = false
		t.Lane.early.Add(-1)
	}
	switch t.state = to; {
	case to == Parked:
		t.timer.parked++
	case to == Retrying && len(t.Attempts) == t.Base: // the clock is behind its due
		t.countEarly()
	}
}

// countEarly counts a task as early. mu is held.
func (t *Task) countEarly() {
	if !t.early {
		t.early = true
		t.Lane.early.Add(1)
	}
}

// noteSetBack counts a task as early if the clock was set back since the instant was chosen that the task waits for: the
// task waits for longer than a backoff may last, or waits for another task of its timer, before its own due. mu is held.
func (t *Task) noteSetBack(now int64) {
	if t.NotBefore-now > t.timer.def.Retry.MaxBackoff.Milliseconds() || t.state == Parked && t.Key.Due > now {
		t.countEarly()
	}
}

// SetBack notes that the clock was set back: tasks may wait for hours, and other tasks of their lanes do not wait for them.
func (m *Memory) SetBack() {
	now := m.now()
	for i := range m.shards {
		sh := m.lockShard(i)
		for _, t := range sh.order {
			if t.state == Retrying || t.state == Parked {
				t.noteSetBack(now)
			}
		}
		sh.mu.Unlock()
	}
}

// inCall reports whether bytes of a call of it may have been sent, or are being sent.
func (t *Task) inCall() bool { return t.state == Writing || t.state == Sending }

// rowState is how a task stands in the cold tier.
type rowState uint8

const (
	noRow      rowState = iota
	rowStale            // its row does not say how it stands
	rowCurrent          // … does
	rowShared           // one row stands for it and for other dues of its timer: see sharedRow
)

// touch notes that its row, if it has one, does not say any more how it stands.
func (t *Task) touch() {
	if t.row == rowCurrent {
		t.row = rowStale
	}
}

// write adds the row of an unfinished task to a settlement, and its attempts. mu is held.
func (m *Memory) write(s *engine.Settlement, t *Task) {
	s.Owe = append(s.Owe, m.owed(t))
	if len(t.Attempts) > 0 {
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, &t.Task)})
	}
	t.row, t.shared = rowCurrent, nil
}

// owed is the row of a task, as the task stands. An attempt that a former process began stays
// begun until it is repeated: else the next owner would repeat it without its mark. mu is held.
func (m *Memory) owed(t *Task) engine.Owed {
	o := engine.Owed{
		Key: t.Key, Generation: t.Generation, Origin: t.Origin,
		Begun:     t.past == wasUnended || t.state == Preparing || t.inCall(),
		NotBefore: max(t.NotBefore, t.Key.Due), Lane: t.Lane.ID, OneShot: t.alone(), Held: m.heldFor(t),
	}
	if len(t.Attempts) > 0 || t.Base > 0 || t.Since != t.Key.Due {
		c := t.Task
		c.Attempts = append([]engine.Attempt(nil), t.Attempts...)
		o.Task = &c
	}
	return o
}

// place is where the row of the task stands in its lane. mu is held.
func (t *Task) place() engine.Place {
	return engine.Place{NotBefore: max(t.NotBefore, t.Key.Due), Key: t.Key}
}

// alone: see Record. The timer may have been changed since. mu is held.
func (t *Task) alone() bool {
	def := t.timer.def
	return t.Origin == engine.FromSchedule && def.Schedule.OneShot() && t.Key.Due == cmp.Or(def.LastDue, def.At)
}

// past is what is known of attempts that a former process may have made.
type past uint8

const (
	noPast     past = iota
	mayRepeat       // its attempts may have been made before
	wasUnended      // … and one is known to have begun, and not how it ended
)

// sharedRow is the row of dues of a range that came into memory together. It is a range itself.
// A row for each due, which goes with the record of the due, takes more processor time than the
// rest of a task in a batch: 33 µs a task instead of 18, see bench/PROFILE.md.
//
//	AddUnfolded ──► the records of all but one ──► … of the last: the row goes with it
//	     └── part: one needs a row of its own ──► a row for each that is not over, in place of this one
//
// Its key is that of the ms before its first due, and no task has it. So the rows of the tasks are
// stored before the shared row is removed, also where a large settle is stored in pieces.
type sharedRow struct {
	key    engine.Key
	open   int  // its tasks, without those of whom a settle stores the record
	parted bool // each of its tasks is to have a row of its own
}

// MayShare reports whether one row may stand for several dues of a timer: what becomes of one of
// them is told by its record alone, and none waits for another.
func MayShare(t *engine.Timer) bool {
	return t.Overlap == engine.OverlapAllow && t.Delivery == engine.AtLeastOnce
}

// AddUnfolded takes the first dues of a range into memory, which were just stored as a range of
// their own. Its timer is claimed.
func (m *Memory) AddUnfolded(t *engine.Timer, row engine.Key, os []engine.Owed) error {
	sh, now := m.lock(t.ID), m.now()
	if sh.stay == away || sh.stay == closed {
		sh.mu.Unlock()
		return nil
	}
	x := &sharedRow{key: row, open: len(os)}
	ready := make([]*Task, 0, len(os))
	for _, o := range os {
		tk, err := m.addRow(sh, t, o, nil, now)
		if err != nil {
			sh.mu.Unlock()
			return err // before the first of them: the plan cannot be read
		}
		if tk != nil {
			ready = append(ready, tk)
		} else {
			tk = sh.tasks.find(o.Key) // it waits for its due: the clock was set back
		}
		tk.row, tk.shared, tk.ranged = rowShared, x, true
	}
	sh.shared[row] = x
	sh.mu.Unlock()
	m.Enqueue(ready)
	return nil
}

// part has each task of a shared row have one of its own. mu is held.
func (sh *shard) part(x *sharedRow) {
	if x != nil && !x.parted {
		x.parted = true
		sh.paid = append(sh.paid, x.key)
		sh.toSettle.Store(true)
	}
}

// IsShared reports whether a key is that of a shared row whose tasks are in memory. Each of them
// tells what becomes of its due, and the row goes with the last of them.
func (m *Memory) IsShared(k engine.Key) bool {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	return sh.shared[k] != nil
}

// AwaitParted waits until no row stands for several tasks of a claimed timer.
func (m *Memory) AwaitParted(ctx context.Context, id engine.TimerID) error {
	return m.await(ctx, id, func(sh *shard) bool {
		none := true
		for k, x := range sh.shared {
			if k.Timer == id {
				sh.part(x)
				none = false
			}
		}
		return none
	})
}

// leaveShared notes that a task left memory without a record of its own: a change has stored that
// it is cancelled. mu is held.
func (sh *shard) leaveShared(t *Task) {
	if t.shared.open--; t.shared.open == 0 {
		sh.part(t.shared)
	}
}

// endShared has the shared row of a task removed with the record of its last one. mu is held.
func (c *Captured) endShared(s *engine.Settlement, t *Task) {
	x := t.shared
	if x.open--; x.open == 0 && !x.parted {
		s.Pay = append(s.Pay, x.key)
		c.shared = append(c.shared, x)
	}
}
