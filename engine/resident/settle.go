package resident

import (
	"maps"
	"math"
	"slices"

	"xtimer/engine"
)

const (
	// settleLag is how long (ms) the watermark waits for a task before it passes
	// it and leaves a row in owed: long enough that a call that takes its time
	// costs no row, short enough that the journal stays small. For a burst that
	// waits for its turn it waits longer, up to settleWait: a row for each of
	// 400,000 waiting tasks took a third of the machine. But not where a lane is
	// full: what it has no room for can leave only when the watermark passes it, and
	// 15 s of 10,000 one-shots a second filled 512 MiB. There it waits for leavingLag.
	settleLag  = 2000
	leavingLag = 1000
	settleWait = 15_000
	// rowCost is how many settled results a row in owed has to be worth.
	rowCost = 16
)

// Captured is what one settle took of a shard.
type Captured struct {
	sh     *shard
	w      int64
	settle uint64 // see Memory
	done   []*Task
	owe    []*Task // tasks whose rows it writes
	paid   []engine.Key
	shared []*sharedRow // those whose last task it names
	ahead  []*Task      // see recordAhead
	Seen   int          // tasks that it looked at
	Lines  int
	// unwritten are successes whose records were left out.
	unwritten int
	// needed is the first record of the journal that tells what nothing stored does,
	// once the settle is stored; ahead is that of a task whose due is yet to come.
	Needed, Ahead engine.Position
}

// NoteAgain appends the records of tasks once more whose dues are later than now, so that
// those before can go. first is the first record that is needed then.
func (m *Memory) NoteAgain(shard int, now int64) (noted int, first engine.Position) {
	first = math.MaxUint64
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	for _, t := range sh.order {
		if t.journaled == 0 || t.state == Gone {
			continue
		}
		if t.Key.Due > now {
			noted++
			m.renote(t)
		}
		first = min(first, t.journaled-1)
	}
	return noted, first
}

// renote appends what the journal has of a task once more. mu is held.
func (m *Memory) renote(t *Task) {
	t.journaled = 0
	switch {
	case t.state == Done:
		t.inJournal(m.cfg.Journal.Finish(t.encoded))
		return
	case len(t.Attempts) > 0:
		t.inJournal(m.cfg.Journal.Finish(engine.EncodeTask(&t.Task)))
	}
	if t.state == Preparing || t.inCall() || t.journaled == 0 {
		m.noteBegun(t)
	}
}

// BeginSettle begins a settle, EndSettle ends it: until then no change of a timer goes on
// that has a task which the settle names.
func (m *Memory) BeginSettle() { m.settle.Add(1) }

// EndSettle ends what BeginSettle began.
func (m *Memory) EndSettle() {
	m.settled.Store(m.settle.Load())
	m.Settled.Broadcast()
	m.Intents.poke()
}

// ToSettle are the shards where a settle has something to look at: none in an idle process.
func (m *Memory) ToSettle() (of engine.Set) {
	for i := range m.shards {
		if m.shards[i].toSettle.Load() {
			of[i/64] |= 1 << (i % 64)
		}
	}
	return of
}

// Capture takes from a shard what can be settled now. Where that is nothing, the watermark
// stays unwritten, unless marks is set.
func (m *Memory) Capture(shard int, cut, now int64, marks, last bool, s *engine.Settlement) Captured {
	critical := m.cfg.DiskCritical()
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	m.tidy(sh)
	if sh.stay == closed { // CaptureLast takes what is left
		return Captured{sh: sh, Needed: sh.needed(), Ahead: math.MaxUint64}
	}
	w := sh.goesTo(m.Pins.since(cut), last)
	c := Captured{sh: sh, settle: m.settle.Load(), w: w, Needed: math.MaxUint64, Ahead: math.MaxUint64}
	var lasting []*sharedRow
	for _, t := range sh.order {
		k := t.Key
		passed := k.Due <= c.w
		c.recordAhead(s, t, now)
		switch {
		case t.state == Done && !t.timer.frozen && (passed || t.row != noRow && t.Origin != engine.FromSchedule):
			c.end(s, t, critical)
		case t.state != Done && t.needsRow(passed):
			c.keep(m, s, t)
		case t.journaled != 0 && t.row == rowShared && now-t.QueuedAt/1000 > settleWait:
			lasting = append(lasting, t.shared)
			fallthrough
		case t.journaled != 0: // of a timer that is held, what becomes of its rows is its change's to say
			if c.Needed = min(c.Needed, t.journaled-1); k.Due > now {
				c.Ahead = min(c.Ahead, t.journaled-1)
			}
		}
	}
	c.pay(s)
	for _, x := range lasting { // their own rows come with the next settle
		sh.part(x)
	}
	c.Seen = len(sh.order)
	c.Lines = len(c.owe) + len(c.done) + len(c.paid) + len(c.ahead)
	if c.w > sh.watermark && (c.Lines > 0 || marks) {
		s.Marks = append(s.Marks, engine.Mark{Shard: shard, Fence: sh.fence, W: c.w})
		sh.settling = max(sh.settling, c.w)
		c.Lines++
	}
	return c
}

// needsRow reports whether a settle has to write the row of an unfinished task, which the
// watermark has passed or not. mu is held.
func (t *Task) needsRow(passed bool) bool {
	switch t.row {
	case noRow:
		return passed && !t.intends
	case rowStale:
		return !t.intends && !t.timer.frozen
	case rowShared:
		return t.shared.parted && !t.timer.frozen
	}
	return false
}

// needed is the first record of the journal that tells what nothing stored does. mu is held.
func (sh *shard) needed() engine.Position {
	first := engine.Position(math.MaxUint64)
	for _, t := range sh.order {
		if t.journaled != 0 && t.state != Gone {
			first = min(first, t.journaled-1)
		}
	}
	return first
}

// Settled is how many of the tasks have a record or a row of it.
func (c *Captured) Settled() int { return len(c.done) + len(c.owe) }

// end has the record of a task stored, unless the disk is nearly full and the task succeeded, and its row removed.
// Only records tell which dues of a range are over, and, where the clock was set back, which dues a later generation may
// not call. No task may keep a record that says it is unfinished. mu is held.
func (c *Captured) end(s *engine.Settlement, t *Task, critical bool) {
	c.done = append(c.done, t)
	if t.Status == engine.Succeeded && critical && !t.ranged && !t.mayHaveRecord() && t.timer.ended(t.Generation) == "" {
		c.unwritten++
		if m := t.Key.Due - t.Key.Due%minute; !slices.Contains(s.LeftOut, m) {
			s.LeftOut = append(s.LeftOut, m)
		}
	} else {
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: t.encoded, Alone: t.alone(), Kept: t.row != noRow})
	}
	switch {
	case t.row == rowShared:
		c.endShared(s, t)
	case t.row != noRow:
		s.Pay = append(s.Pay, t.Key)
	}
}

// recordAhead has the record of an ended task stored whose due is ahead of the clock, for the clock was set back: the stored record
// may say that the task runs. The row of the task, and what the journal has of the task, stay until the watermark has
// passed the due: without them a later generation might call the due again. mu is held.
func (c *Captured) recordAhead(s *engine.Settlement, t *Task, now int64) {
	if t.state != Done || t.Key.Due <= max(now, c.w) || t.recorded || t.row == noRow || t.Origin != engine.FromSchedule || t.timer.frozen {
		return
	}
	t.recorded = true
	c.ahead = append(c.ahead, t)
	s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: t.encoded, Alone: t.alone(), Kept: true})
}

// keep has a row of an unfinished task stored, and its attempts. mu is held.
func (c *Captured) keep(m *Memory, s *engine.Settlement, t *Task) {
	c.owe = append(c.owe, t)
	m.write(s, t)
	t.settle = c.settle
}

// pay has the ranges removed that are over. mu is held.
func (c *Captured) pay(s *engine.Settlement) {
	var later []engine.Key
	for _, k := range c.sh.paid {
		if lv := c.sh.timers[k.Timer]; lv != nil && (lv.frozen || lv.intends()) {
			later = append(later, k) // with the rows of its dues, which were left out
		} else {
			c.paid = append(c.paid, k)
		}
	}
	s.Pay = append(s.Pay, c.paid...)
	c.sh.paid = later
}

// tidy drops what has left memory, and notes that concern no read. mu is held.
func (m *Memory) tidy(sh *shard) {
	if len(sh.removed)+len(sh.changed) > 0 {
		oldest := m.Reads.oldest()
		maps.DeleteFunc(sh.removed, func(_ engine.Key, n uint64) bool { return n <= oldest })
		maps.DeleteFunc(sh.changed, func(_ engine.TimerID, n uint64) bool { return n <= oldest })
	}
	kept := sh.order[:0]
	for _, t := range sh.order {
		if t.state != Gone {
			kept = append(kept, t)
		}
	}
	clear(sh.order[len(kept):])
	if sh.order = kept; len(kept) == 0 && cap(kept) > 64 {
		sh.order = nil
	}
	sh.toSettle.Store(len(sh.order)+len(sh.paid)+len(sh.removed)+len(sh.changed) > 0)
}

// isStored reports whether a settle stores what a task with a row has become, wherever the watermark is. mu is held.
func (t *Task) isStored(watermark int64) bool {
	if t.state == Done {
		return t.Key.Due <= watermark || t.Origin != engine.FromSchedule
	}
	return t.needsRow(false)
}

// goesTo is the next watermark of a shard. mu is held.
func (sh *shard) goesTo(cut int64, last bool) int64 {
	return max(sh.leaps.before(sh.reach(cut, last || sh.leaps.endBy(cut))), sh.watermark)
}

// reach is how far the watermark of a shard may go: to the cut; but it waits for tasks that are not finished as long as
// rows for them would cost more than what is settled by passing them, settleWait at most; where a task is to leave, for
// leavingLag; where a request waits for a record, not at all. Where something is stored in any case, and the watermark
// would stay, it does not wait: a cold tier that has lost that, as it has gone back, is known by the watermark. It never
// passes a task whose timer is being changed, or that intends. mu is held.
func (sh *shard) reach(cut int64, last bool) int64 {
	oldest, held, lagging, leaving, stored := cut, cut, cut-settleLag, false, len(sh.paid) > 0
	var old, behind int // tasks due before lagging: unfinished; finished
	for _, t := range sh.order {
		due := t.Key.Due
		if t.timer.frozen && (t.state == Done || t.row != rowCurrent) || t.intends && due > sh.watermark {
			held = min(held, due-1) // no row of it may be there: its change, or its intent, decides what becomes of it
		}
		last = last || t.awaited && due <= cut
		switch {
		case t.row != noRow:
			stored = stored || t.isStored(sh.watermark)
		case t.state == Done:
			if due <= lagging {
				behind++
			}
		case t.state == Leaving:
			leaving = true // it waits for nothing but its row
		default:
			oldest = min(oldest, due-1)
			if due <= lagging {
				old++
			}
		}
	}
	floor := cut - settleWait
	switch {
	case last:
		floor = cut
	case leaving:
		floor = cut - leavingLag
	case rowCost*old <= behind:
		floor = lagging
	}
	if stored && max(oldest, floor) <= sh.watermark {
		floor = cut
	}
	return min(max(oldest, floor), held)
}

// Release lets go of what a settle stored; the journal had next records before it.
// unwritten are successes whose records were left out.
func (m *Memory) Release(c *Captured, next engine.Position) (unwritten int) {
	sh := c.sh
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.watermark = max(sh.watermark, c.w)
	for _, k := range c.paid {
		m.noteRemoved(sh, k)
		delete(sh.shared, k)
	}
	for _, x := range c.shared {
		m.noteRemoved(sh, x.key)
		delete(sh.shared, x.key)
	}
	for _, t := range c.done {
		sh.tasks.remove(t)
		t.move(Gone)
		sh.done--
		sh.doneBytes -= int64(len(t.encoded))
		if t.row != noRow {
			m.noteRemoved(sh, t.Key)
		}
	}
	for id, at := range sh.decided {
		if at <= sh.watermark {
			delete(sh.decided, id)
		}
	}
	sh.leaps = slices.DeleteFunc(sh.leaps, func(x [2]int64) bool { return x[1] <= sh.watermark })
	horizon := m.Horizon.Load()
	for _, t := range c.owe {
		if t.journaled = 0; t.row == rowStale {
			t.journaled = next + 1 // by what was appended since
		}
		if t.mayLeave(horizon) {
			if t.busy {
				t.busy = false
				t.timer.busy--
			}
			if t.state == Leaving || t.NotBefore < horizon {
				t.Lane.Waits(t.place())
			}
			m.forget(sh, t)
			m.noteRemoved(sh, t.Key)
		}
	}
	return c.unwritten
}

// mayLeave reports whether a task whose row was just stored may leave memory: one that
// its lane has no room for, and a retry that is far or whose lane is crowded. A far
// retry comes back through the migrator, the others through refill. mu is held.
func (t *Task) mayLeave(horizon int64) bool {
	if t.row == rowStale || t.timer.frozen {
		return false
	}
	mayLeave := t.state == Leaving && !t.Lane.stays() ||
		t.state == Retrying && t.timer.def.Overlap == engine.OverlapAllow && (t.NotBefore >= horizon || t.Lane.crowded())
	return mayLeave && !t.turn.Keeps() // last: the item of another task may be on its way into the queue
}

// GiveBack undoes a capture that was not stored: the tasks are owed in memory
// and their rows are written by the next settle.
func (m *Memory) GiveBack(c *Captured) {
	sh := c.sh
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.paid = append(sh.paid, c.paid...)
	sh.toSettle.Store(true)
	for _, t := range c.owe {
		t.touch()
	}
	for _, t := range c.ahead {
		t.recorded = false
	}
	for _, t := range c.done {
		if t.shared != nil {
			t.shared.open++
		}
	}
}
