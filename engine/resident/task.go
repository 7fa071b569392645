package resident

import (
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/wheel"
)

// Task is an occurrence in memory.
type Task struct {
	engine.Task
	timer        *Timer
	older, newer *Task // the list of its timer
	chained      *Task // the index's
	Lane         *Lane // where it is counted, while it is in memory and not finished
	state        State
	row          rowState
	shared       *sharedRow // of rowShared
	past         past
	cancelled    bool             // a change under way has its record
	forced       bool             // its row is forced: turn.Lane is that of the queue for such tasks
	backlog      bool             // see Lanes.backlogQueueOf
	ranged       bool             // its due lies in a range, whose row does not tell which are over
	busy         bool             // counts in Timer.busy
	awaited      bool             // it is Done, and a request waits for its record: see AwaitSettled
	recorded     bool             // it is Done, and its record is stored before the watermark has passed its due: see recordAhead
	intends      bool             // its row is the Intents' to write
	early        bool             // the clock was set back, and has not reached what the task waits for: counts in Lane.early
	version      uint32           // of the timer, which its attempt is made with
	settle       uint64           // the last settle that names it, see Memory.settle
	QueuedAt     int64            // when it came to the queue for its next attempt (Unix µs), 0: not yet; see enqueue
	journaled    engine.Position  // 1 + the first of its records in the journal that nothing stored makes needless; 0: none
	turn         fair.Item[*Task] // in the queue
	handle       wheel.Handle     // of its retry
	encoded      []byte           // AppendTask of it, once done
	// held: for how long it was held since its last attempt, so far as it has been counted.
	held time.Duration
	// decided: up to the end of which backlog it was decided that it is called.
	decided int64
}

// used reports whether a task's key may have been sent, or was given away.
func (t *Task) used() bool {
	return t.inCall() || t.state == Done || len(t.Attempts) > 0 || t.past == wasUnended || t.Origin != engine.FromSchedule
}

// mayNotRepeat reports whether a task may be called at most once, its call has begun, and nobody has told how the call
// ended. The node that made the call may still tell, see Learn.
func (t *Task) mayNotRepeat() bool {
	return t.past == wasUnended && t.timer.def.Delivery == engine.AtMostOnce
}

// noteBegun notes in the journal that the next attempt of a task begins. mu is held.
func (m *Memory) noteBegun(t *Task) engine.Position {
	p := m.cfg.Journal.Begin(engine.Begun{
		Key: t.Key, Generation: t.Generation, Attempt: uint32(t.LastAttempt()) + 1, Origin: t.Origin,
		AtMostOnce: t.timer.def.Delivery == engine.AtMostOnce,
	})
	t.inJournal(p)
	return p
}

// conclude gives a task its final status and notes it in the journal; see ends. mu is held.
func (m *Memory) conclude(sh *shard, t *Task, status engine.TaskStatus, reason string, now int64) (freed *Task) {
	freed = m.ends(sh, t, status, reason, now)
	t.inJournal(m.cfg.Journal.Finish(t.encoded))
	return freed
}

// leave ends a task's turn at its timer, and gives the turn to the one that is due first
// of those that wait for it; that is returned if it is to be queued. It counts as busy at
// once, so that none that comes due now goes before it. mu is held.
func (t *Task) leave(now int64) (freed *Task) {
	lv := t.timer
	if t.busy {
		t.busy = false
		lv.busy--
	}
	return lv.nextTurn(now)
}

// nextTurn gives the turn of a timer to the task that is due first of those that wait for it;
// see leave. mu is held.
func (lv *Timer) nextTurn(now int64) (freed *Task) {
	if lv.busy > 0 || lv.parked == 0 {
		return nil
	}
	next := lv.first()
	next.busy = true
	lv.busy++
	if next.state == Queued {
		return nil // it is on its way
	}
	next.await(now)
	return next
}

// yields reports whether a task that waits for its due again gives up its turn: its
// timer is busy for one that failed. One that may have been sent has no attempt under
// way either, but with overlap skip it would be skipped for the next.
func (t *Task) yields() bool {
	return len(t.Attempts) == t.Base && (t.past == noPast || t.timer.def.Overlap == engine.OverlapQueue)
}

// later puts a task into the wheel until the instant. mu is held.
func (m *Memory) later(sh *shard, t *Task, at int64) {
	t.move(Retrying)
	sh.part(t.shared)
	t.QueuedAt = 0
	t.handle = m.Wheel.Add(at, Item{t.Key.Timer, t.Key.Due})
	t.touch()
}

// mayHaveRecord reports whether history may have a record of an ended task from before the task ended. mu is held.
func (t *Task) mayHaveRecord() bool { return len(t.Attempts) > 1 || t.Origin != engine.FromSchedule }

// snapshot is a copy for a reader. mu is held.
func (t *Task) snapshot() *engine.Task {
	c := t.Task
	c.Attempts = slices.Clone(t.Attempts)
	return &c
}

// enlist makes a task of a due. mu is held.
func (sh *shard) enlist(lv *Timer, k engine.Key, origin engine.Origin, row rowState, now int64) *Task {
	t := &Task{timer: lv, row: row}
	t.Key, t.Origin, t.Since = k, origin, k.Due
	t.App, t.Name, t.Generation = lv.def.App, lv.def.Name, lv.def.Generation
	if k.Due <= sh.repeats && (lv.def.Version > 1 || k.Due <= lv.rangeTo()) {
		t.past = mayRepeat // by a former definition, or before the clock was set back
	}
	t.backlog = lv.newest != nil && lv.newest.backlog && lv.newest.state == Queued
	t.await(now)
	sh.attach(t)
	return t
}

// await makes a task ready for the queue. mu is held.
func (t *Task) await(now int64) {
	t.move(Queued)
	t.renew(now)
}

// lane is the lane of the queue that the task waits in. mu is held.
func (t *Task) lane() *fair.Lane[*Task] {
	if t.forced {
		return t.timer.laneMemory.all.queue.Living(t.turn.Lane)
	}
	return t.timer.queueLane()
}

// renew makes its item of the queue. mu is held.
func (t *Task) renew(now int64) {
	def, lane := t.timer.def, t.lane()
	if t.backlog {
		lane = t.timer.laneMemory.all.backlogQueueOf(def)
	}
	t.turn.Again(t, lane, now, uint8(def.Priority))
	t.turn.Due = t.place().NotBefore
	if def.Callback.Batch != nil {
		t.turn.Bytes = uint32(engine.MemberBytes(def))
	}
}

// attach puts an unfinished task into memory, where none has its key. mu is held.
func (sh *shard) attach(t *Task) {
	sh.tasks.put(t)
	sh.order = append(sh.order, t)
	sh.toSettle.Store(true)
	lv := t.timer
	lv.latest = max(lv.latest, t.Key.Due)
	sh.latest = max(sh.latest, lv.latest)
	if !t.forced {
		t.Lane = lv.inMemory()
	}
	for !t.Lane.enter() {
		t.Lane = t.Lane.current(t.lane())
	}
	lv.insert(t)
	sh.backlogs.comes(t)
}

// forget takes an unfinished task out of memory. mu is held.
func (m *Memory) forget(sh *shard, t *Task) {
	sh.tasks.remove(t)
	m.detach(sh, t)
	t.move(Gone)
	if t.shared != nil {
		sh.leaveShared(t)
	}
}

// detach takes an unfinished task out of its timer's list, the queue and the wheel, and gives back the
// places that it keeps. mu is held.
func (m *Memory) detach(sh *shard, t *Task) {
	m.takeOut(sh, t)
	m.Queue.Leave(&t.turn)
}

// isQueued reports whether a task that was handed out still waits for its call. A task that
// was cancelled before its push left before the queue gave it any place to keep: such
// places are given back here. mu is held.
func (m *Memory) isQueued(t *Task) bool {
	if t.state == Done || t.state == Gone {
		m.Queue.Leave(&t.turn)
	}
	return t.state == Queued
}

// takeOut is detach for a task that keeps its places. mu is held.
func (m *Memory) takeOut(sh *shard, t *Task) {
	t.timer.remove(t)
	switch t.state {
	case Queued:
		m.Queue.Remove(&t.turn)
	case Retrying:
		m.Wheel.Remove(t.handle)
	case Leaving:
		t.Lane.left(t)
	}
	t.Lane.leave()
	sh.dismiss(t.timer)
}

// ends gives a task its final status; it stays in memory until it is settled. freed:
// see leave. mu is held.
func (m *Memory) ends(sh *shard, t *Task, status engine.TaskStatus, reason string, now int64) (freed *Task) {
	m.takeOut(sh, t)
	t.move(Done)
	freed = t.leave(now)
	if freed != nil && t.lane().IsOrdered() { // it stands there before the place goes to another
		m.Enqueue([]*Task{freed})
		freed = nil
	}
	m.Queue.Leave(&t.turn)
	t.Status, t.Reason, t.Ended, t.NotBefore = status, reason, now, 0
	t.encoded = engine.EncodeTask(&t.Task)
	sh.done++
	sh.doneBytes += int64(len(t.encoded))
	m.cfg.Ended(&t.Task)
	return freed
}

// inJournal notes a record that the journal has of a task. mu is held since before it
// was appended, so that a settle sees both or neither.
func (t *Task) inJournal(p engine.Position) {
	if t.journaled == 0 {
		t.journaled = p + 1
	}
}

// IsOverdue reports whether a task is due and not begun. Mu of its shard is held.
func (t *Task) IsOverdue() bool {
	switch t.state {
	case Queued, Frozen, Parked, Leaving:
		return true
	}
	return false
}

// Index finds the tasks of a shard by key: a hash table whose chains go through the
// tasks. To put a task in, or to take it out, costs one line of memory that no cache
// holds, where Go's map costs three, and each fire does both: with a backlog of
// 200,000 that was a twentieth of it.
type Index struct {
	heads []*Task // a power of two of them; none before the first task
	Len   int
}

const fewestHeads = 8

// head is where the chain of a key begins.
func (x *Index) head(k engine.Key) **Task {
	h := uint64(k.Timer)*0x9e3779b97f4a7c15 + uint64(k.Due)*0xc2b2ae3d27d4eb4f
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return &x.heads[(h^h>>32)&uint64(len(x.heads)-1)]
}

// find is nil when there is none.
func (x *Index) find(k engine.Key) *Task {
	if x.Len == 0 {
		return nil
	}
	t := *x.head(k)
	for t != nil && t.Key != k {
		t = t.chained
	}
	return t
}

// put adds a task whose key no other has.
func (x *Index) put(t *Task) {
	if x.Len == len(x.heads) {
		x.grow()
	}
	head := x.head(t.Key)
	t.chained, *head = *head, t
	x.Len++
}

// remove takes a task out, if it is there.
func (x *Index) remove(t *Task) {
	if x.Len == 0 {
		return
	}
	for at := x.head(t.Key); *at != nil; at = &(*at).chained {
		if *at == t {
			*at, t.chained = t.chained, nil
			x.Len--
			return
		}
	}
}

// grow doubles the heads. They are not taken back: 8 bytes for each task of the
// largest backlog so far.
func (x *Index) grow() {
	former := x.heads
	x.heads = make([]*Task, max(2*len(former), fewestHeads))
	for _, t := range former {
		for t != nil {
			next, head := t.chained, x.head(t.Key)
			t.chained, *head = *head, t
			t = next
		}
	}
}

// all goes through them, in no order; they must not change meanwhile.
func (x *Index) all(yield func(*Task) bool) {
	for _, t := range x.heads {
		for ; t != nil; t = t.chained {
			if !yield(t) {
				return
			}
		}
	}
}

// What readers ask of a task, with the lock of its shard:

// IsOver reports whether it has ended.
func (t *Task) IsOver() bool { return t.state >= Done }

// InFlight reports whether an attempt of it runs.
func (t *Task) InFlight() bool { return t.state == Preparing || t.inCall() }

// Waits reports whether it is due, and waits for its turn in its lane.
func (t *Task) Waits() bool { return t.state == Queued || t.state == Leaving }

// Bytes is how many bytes it takes in the body of a batch, at most. It is for who has it from the queue.
func (t *Task) Bytes() int { return int(t.turn.Bytes) }

// lacksRow reports whether the row of the range that a task's due lies in may be all that tells of the task: the next settle
// stores the task's own row, or its end.
func (t *Task) lacksRow() bool {
	return t.ranged && t.state != Gone && (t.row == rowStale || t.state == Done)
}

// HasOpenRow reports whether the cold tier has a row of the task alone, or is to have one.
func (t *Task) HasOpenRow() bool { return t.row == rowStale || t.row == rowCurrent }
