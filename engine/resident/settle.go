package resident

import (
	"cmp"
	"math"
	"slices"

	"xtimer/engine"
)

const (
	// settleLag is how long (ms) the watermark waits for a task before it passes
	// it and leaves a row in owed: long enough that a call that takes its time
	// costs no row, short enough that the journal stays small. For a burst that
	// waits for its turn it waits longer, up to settleWait: a row for each of
	// 400,000 waiting tasks took a third of the machine.
	settleLag  = 2000
	settleWait = 15_000
	// rowCost is how many settled results a row in owed has to be worth.
	rowCost = 16
	// markEvery is the longest that a moving watermark goes unwritten (ms).
	markEvery = 10_000
)

// Captured is what one settle took of a shard.
type Captured struct {
	sh    *Shard
	w     int64
	done  []*Task
	owe   []*Task // tasks whose rows it writes
	paid  []engine.Key
	Lines int
	// unwritten are successes whose records were left out.
	unwritten int
	// needed is the first record of the journal that tells what nothing stored does,
	// once the settle is stored; ahead is that of a task whose due is yet to come.
	Needed, Ahead engine.Position
}

// Renote appends what the journal has of a task once more. Mu is held.
func (m *Memory) Renote(t *Task) {
	t.Journaled = 0
	switch {
	case t.State == Done:
		t.InJournal(m.cfg.Journal.Finish(t.Encoded))
		return
	case len(t.Attempts) > 0:
		t.InJournal(m.cfg.Journal.Finish(engine.EncodeTask(&t.Task)))
	}
	if t.State == Preparing || t.State == Sending || t.Journaled == 0 {
		m.noteBegun(t)
	}
}

// Capture takes from a shard what can be settled now.
func (m *Memory) Capture(sh *Shard, place int, cut, now int64, last bool, s *engine.Settlement) Captured {
	critical := m.cfg.DiskCritical()
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	sh.tidy(m.Ticks())
	cut = m.Pins.since(cut)
	c := Captured{sh: sh, w: max(sh.reach(cut, last), sh.Watermark), Needed: math.MaxUint64, Ahead: math.MaxUint64}
	for _, t := range sh.Order {
		k := t.Key
		passed := k.Due <= c.w
		switch {
		case t.SettledAt != 0:
		case t.State == Done && !t.Timer.Frozen && (passed || t.HasRow && t.Origin != engine.FromSchedule):
			c.end(s, t, critical)
		case t.State != Done && (t.HasRow && t.RowStale && !t.Timer.Frozen || !t.HasRow && passed):
			c.keep(s, t)
		case t.Journaled != 0: // of a timer that is held, what becomes of its rows is its change's to say
			if c.Needed = min(c.Needed, t.Journaled-1); k.Due > now {
				c.Ahead = min(c.Ahead, t.Journaled-1)
			}
		}
	}
	c.pay(s)
	c.Lines = len(c.owe) + len(c.done) + len(c.paid)
	if c.w > sh.Watermark && (c.Lines > 0 || now-sh.Marked >= markEvery || last) {
		s.Marks = append(s.Marks, engine.Mark{Shard: place, Fence: sh.Fence, W: c.w})
		sh.Settling = max(sh.Settling, c.w)
		c.Lines++
	}
	return c
}

// end has the record of a task stored, unless the disk is nearly full and the task
// succeeded, and its row removed. Mu is held.
func (c *Captured) end(s *engine.Settlement, t *Task, critical bool) {
	c.done = append(c.done, t)
	if t.Status == engine.Succeeded && critical {
		c.unwritten++
		if m := t.Key.Due - t.Key.Due%minute; !slices.Contains(s.LeftOut, m) {
			s.LeftOut = append(s.LeftOut, m)
		}
	} else {
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: t.Encoded, Alone: t.alone()})
	}
	if t.HasRow {
		s.Pay = append(s.Pay, t.Key)
	}
}

// keep has a row of an unfinished task stored, and its attempts. Mu is held.
func (c *Captured) keep(s *engine.Settlement, t *Task) {
	c.owe = append(c.owe, t)
	s.Owe = append(s.Owe, t.Row())
	if len(t.Attempts) > 0 {
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, &t.Task)})
	}
	t.HasRow, t.RowStale, t.Settling = true, false, true
}

// pay has the ranges removed that are over. Mu is held.
func (c *Captured) pay(s *engine.Settlement) {
	var later []engine.Key
	for _, k := range c.sh.paid {
		if lv := c.sh.Timers[k.Timer]; lv != nil && lv.Frozen {
			later = append(later, k) // with the rows of its dues, which were left out
		} else {
			c.paid = append(c.paid, k)
		}
	}
	s.Pay = append(s.Pay, c.paid...)
	c.sh.paid = later
}

// OwedKept is how long (ms) a task stays in memory after its row in owed went:
// who read the row before that must find the task, or else would call it again. A
// change may take its time with it.
const OwedKept = 5000

// tidy lets go of what a former settle stored, at an instant of e.ticks. Mu is held.
func (sh *Shard) tidy(ticks int64) {
	for k, at := range sh.EvictedAt {
		if ticks-at > OwedKept {
			delete(sh.EvictedAt, k)
		}
	}
	kept := sh.Order[:0]
	for _, t := range sh.Order {
		switch {
		case t.Evicted:
		case t.SettledAt != 0 && (!t.HasRow || ticks-t.SettledAt > OwedKept && sh.Changing[t.Key.Timer] == nil):
			t.Evicted = true
			sh.Done--
			sh.DoneBytes -= int64(len(t.Encoded))
			sh.Tasks.Remove(t)
		default:
			kept = append(kept, t)
		}
	}
	clear(sh.Order[len(kept):])
	if sh.Order = kept; len(kept) == 0 && cap(kept) > 64 {
		sh.Order = nil
	}
}

// reach is how far the watermark of a shard may go: to the cut; but it waits for
// tasks that are not finished as long as rows for them would cost more than
// what is settled by passing them, settleWait at most. It never passes a task
// whose timer is being changed. Mu is held.
func (sh *Shard) reach(cut int64, last bool) int64 {
	oldest, held, lagging := cut, cut, cut-settleLag
	var old, behind int // tasks due before lagging: unfinished; finished
	for _, t := range sh.Order {
		due := t.Key.Due
		if t.Timer.Frozen && t.SettledAt == 0 && (t.State == Done || t.RowStale || !t.HasRow) {
			held = min(held, due-1) // no row of it may be there: its change decides what becomes of it
		}
		switch {
		case t.HasRow, t.SettledAt != 0:
		case t.State == Done:
			if due <= lagging {
				behind++
			}
		case t.State == Leaving: // it waits for nothing but its row
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
	case rowCost*old <= behind:
		floor = lagging
	}
	return min(max(oldest, floor), held)
}

// Row is how a task stands, for owed. Mu is held.
func (t *Task) Row() engine.Owed {
	o := engine.Owed{
		Key: t.Key, Generation: t.Generation, Origin: t.Origin, Begun: t.State == Preparing || t.State == Sending,
		NotBefore: max(t.NotBefore, t.Key.Due), Lane: t.Lane.Id,
	}
	if len(t.Attempts) > 0 || t.Base > 0 || t.Since != t.Key.Due {
		c := t.Task
		c.Attempts = append([]engine.Attempt(nil), t.Attempts...)
		o.Task = &c
	}
	return o
}

// place is where its row stands in its lane. Mu is held.
func (t *Task) place() engine.Place {
	return engine.Place{NotBefore: max(t.NotBefore, t.Key.Due), Key: t.Key}
}

// alone: see Record. The timer may have been changed since. Mu is held.
func (t *Task) alone() bool {
	def := t.Timer.Def
	return t.Origin == engine.FromSchedule && def.Schedule.OneShot() && t.Key.Due == cmp.Or(def.LastDue, def.At)
}

// Release lets go of what a settle stored; the journal had next records before it.
// unwritten are successes whose records were left out.
func (m *Memory) Release(c *Captured, next engine.Position) (unwritten int) {
	sh := c.sh
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	sh.Watermark = max(sh.Watermark, c.w)
	sh.Marked = m.now()
	ticks := m.Ticks()
	for _, t := range c.done {
		// It stays for one more look: a change that read its row before this
		// settle took it away must still find it.
		t.SettledAt = ticks
	}
	for id, at := range sh.Decided {
		if at <= sh.Watermark {
			delete(sh.Decided, id)
		}
	}
	horizon := m.Horizon.Load()
	for _, t := range c.owe {
		if t.Settling, t.Journaled = false, 0; t.RowStale {
			t.Journaled = next + 1 // by what was appended since
		}
		if t.mayLeave(horizon) {
			if t.Begun {
				t.Begun = false
				t.Timer.Busy--
			}
			if t.State == Leaving || t.NotBefore < horizon {
				t.Lane.Waits(t.place())
			}
			m.Forget(sh, t)
			sh.EvictedAt[t.Key] = ticks
		}
	}
	return c.unwritten
}

// mayLeave reports whether a task whose row was just stored may leave memory: one that
// its lane has no room for, and a retry that is far or whose lane is crowded. A far
// retry comes back through the migrator, the others through refill. Mu is held.
func (t *Task) mayLeave(horizon int64) bool {
	if t.RowStale || t.Timer.Frozen {
		return false
	}
	return t.State == Leaving && !t.Lane.stays() ||
		t.State == Retrying && t.Timer.Def.Overlap == engine.OverlapAllow && (t.NotBefore >= horizon || t.Lane.crowded())
}

// GiveBack undoes a capture that was not stored: the tasks are owed in memory
// and their rows are written by the next settle.
func (m *Memory) GiveBack(c *Captured) {
	sh := c.sh
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	sh.paid = append(sh.paid, c.paid...)
	for _, t := range c.owe {
		t.Settling, t.RowStale = false, true
	}
}
