package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

const (
	// settleEvery is the pace of settling while there is something to settle. A
	// settle keeps a core busy for as long as it takes, so with many results it
	// comes earlier, when there are about settleBatch, but not before settleSoon:
	// at 10,000 fires a second one of 500 ms took 8 to 11 ms at a stretch.
	settleEvery = 500 * time.Millisecond
	settleSoon  = 100 * time.Millisecond
	settleBatch = 1000
	// settleLag is how long (ms) the watermark waits for a task before it passes
	// it and leaves a row in owed: long enough that a call that takes its time
	// costs no row, short enough that the journal stays small. For a burst that
	// waits for its turn it waits longer, up to settleWait: a row for each of
	// 400,000 waiting tasks took a third of the machine.
	settleLag  = 2000
	settleWait = 15_000
	// rowCost is how many settled results a row in owed has to be worth.
	rowCost = 16
	// settleShare is how much of the time settling may look at what is in
	// memory: a 25th. With many waiting it looks less often.
	settleShare = 25
	// markEvery is the longest that a moving watermark goes unwritten (ms).
	markEvery = 10_000
)

// history settles: what has ended becomes history, what has not but is overtaken
// by the watermark becomes owed, the watermarks move, all in one transaction of
// the cold tier; then, and only then, the journal forgets.
//
//	cut = min(loaded, holds, wheel.Low, now)            nothing below it is unknown to the roster
//	W'  = min(cut, the shard's oldest open due − 1)      but not for ever: see reach
//	      done tasks ≤ W' or owed  → tasks;  open tasks ≤ W' → owed
//
// A result whose due is later than W' waits: settled alone it would not be
// finished, for it is neither ≤ W nor owed.
type history struct {
	e      *Scheduler
	looked time.Time // when the last settle had its look at memory
	lines  int       // rows of the last settle, but watermarks
	noted  int       // tasks that noteAgain found last
	// Lists of the last settle, for the next.
	caps    []captured
	records []engine.Record
}

// keptRecords is the most room for records that is kept from settle to settle.
const keptRecords = 1 << 16

// run settles until ctx ends.
func (h *history) run(ctx context.Context) error {
	var t trouble
	last := time.Now()
	for wait := settleEvery; ; {
		if sleep(ctx, wait); ctx.Err() != nil {
			return nil
		}
		started := time.Now()
		err := h.settle(ctx, false)
		every := settleEvery
		if h.lines > 0 {
			every = min(max(started.Sub(last)*settleBatch/time.Duration(h.lines), settleSoon), settleEvery)
		}
		last = started
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, engine.ErrFenced) {
			return fmt.Errorf("another process has taken the shards over; this one must not fire any more: %w", err)
		}
		t.tell(h.e.log, "cannot settle; outcomes wait in the journal", err)
		if wait = max(every, h.looked.Sub(started)*(settleShare-1)) - time.Since(started); err != nil {
			wait = time.Second
		}
	}
}

// captured is what one settle took of a shard.
type captured struct {
	sh    *shard
	w     int64
	done  []*task
	owe   []*task // tasks whose rows it writes
	paid  []engine.Key
	lines int
	// unwritten are successes whose records were left out.
	unwritten int
	// needed is the first record of the journal that tells what nothing stored does,
	// once the settle is stored; ahead is that of a task whose due is yet to come.
	needed, ahead engine.Position
}

// settle does it once; last is the one at the end of a drain, which leaves no
// watermark unwritten.
func (h *history) settle(ctx context.Context, last bool) error {
	e := h.e
	now := e.now()
	next := e.journal.Next() // first: what is appended after it stays
	// The order matters: what gives up its hold, or is loaded, after this
	// reading lies in the wheel before the reading of Low.
	cut := e.holds.lowest(min(now, e.loaded.Load()-1))
	cut = min(cut, e.wheel.Low())

	s := &engine.Settlement{Owner: e.cfg.Node, Tasks: h.records[:0]}
	caps := h.caps[:0]
	needed, ahead := next, next
	for i := range e.shards {
		c := e.capture(&e.shards[i], i, cut, now, last, s)
		needed, ahead = min(needed, c.needed), min(ahead, c.ahead)
		if c.lines > 0 {
			caps = append(caps, c)
		}
		runtime.Gosched() // what is due goes first
	}
	h.looked, h.lines = time.Now(), len(s.Tasks)+len(s.Owe)+len(s.Pay)
	if h.records = nil; cap(s.Tasks) <= keptRecords {
		h.records = s.Tasks
	}
	h.caps = caps
	defer func() { clear(h.records); clear(h.caps) }()
	if len(s.Marks) > 0 || len(s.Tasks) > 0 || len(s.Owe) > 0 || len(s.Pay) > 0 {
		started := time.Now()
		failpoint.Hit("before-w")
		err := e.settlePieces(ctx, s)
		failpoint.Hit("after-w")
		if e.unsettled.heard(err == nil || ctx.Err() != nil); err != nil {
			for i := range caps {
				e.giveBack(&caps[i])
			}
			e.settled.broadcast()
			return err
		}
		e.metrics.settleSeconds.Update(time.Since(started).Seconds())
		for i := range caps {
			e.release(&caps[i], next)
		}
		e.settled.broadcast()
	}
	if next-ahead > engine.Position(fewNoted+16*h.noted) {
		var err error
		if needed, err = h.noteAgain(ctx, next, now); err != nil {
			return err
		}
	}
	if err := e.journal.Forget(needed); err != nil {
		return fmt.Errorf("cannot forget in the journal: %w", err)
	}
	return nil
}

// fewNoted is how many records the journal may keep for tasks that were begun before the
// clock was set back: the watermark does not pass them before it is where it was.
const fewNoted = 1000

// noteAgain appends the records of those tasks to the journal once more, so that those
// before can go. It answers the first record that is needed then.
func (h *history) noteAgain(ctx context.Context, next engine.Position, now int64) (engine.Position, error) {
	needed, e := next, h.e
	h.noted = 0
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		for _, t := range sh.order {
			if t.journaled == 0 || t.stored != 0 || t.out {
				continue
			}
			if t.Key.Due > now {
				h.noted++
				e.renote(t)
			}
			needed = min(needed, t.journaled-1)
		}
		sh.mu.Unlock()
	}
	if err := e.journal.Sync(ctx, e.journal.Next()-1); err != nil {
		return 0, fmt.Errorf("cannot note in the journal again: %w", err)
	}
	return needed, nil
}

// renote appends what the journal has of a task once more. mu is held.
func (e *Scheduler) renote(t *task) {
	t.journaled = 0
	switch {
	case t.state == isDone:
		t.inJournal(e.journal.Finish(t.encoded))
		return
	case len(t.Attempts) > 0:
		t.inJournal(e.journal.Finish(engine.EncodeTask(&t.Task)))
	}
	if t.state == isPreparing || t.state == isSending || t.journaled == 0 {
		e.noteBegun(t)
	}
}

// capture takes from a shard what can be settled now.
func (e *Scheduler) capture(sh *shard, place int, cut, now int64, last bool, s *engine.Settlement) captured {
	critical := e.cfg.DiskCritical()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.tidy(e.ticks())
	cut = e.holds.since(cut)
	c := captured{sh: sh, w: max(sh.reach(cut, last), sh.watermark), needed: math.MaxUint64, ahead: math.MaxUint64}
	for _, t := range sh.order {
		k := t.Key
		passed := k.Due <= c.w
		switch {
		case t.stored != 0:
		case t.state == isDone && !t.live.held && (passed || t.owed && t.Origin != engine.FromSchedule):
			c.end(s, t, critical)
		case t.state != isDone && (t.owed && t.dirty && !t.live.held || !t.owed && passed):
			c.keep(s, t)
		case t.journaled != 0: // of a timer that is held, what becomes of its rows is its change's to say
			if c.needed = min(c.needed, t.journaled-1); k.Due > now {
				c.ahead = min(c.ahead, t.journaled-1)
			}
		}
	}
	c.pay(s)
	c.lines = len(c.owe) + len(c.done) + len(c.paid)
	if c.w > sh.watermark && (c.lines > 0 || now-sh.marked >= markEvery || last) {
		s.Marks = append(s.Marks, engine.Mark{Shard: place, Fence: sh.fence, W: c.w})
		sh.settling = max(sh.settling, c.w)
		c.lines++
	}
	return c
}

// end has the record of a task stored, unless the disk is nearly full and the task
// succeeded, and its row removed. mu is held.
func (c *captured) end(s *engine.Settlement, t *task, critical bool) {
	c.done = append(c.done, t)
	if t.Status == engine.Succeeded && critical {
		c.unwritten++
		if m := t.Key.Due - t.Key.Due%minute; !slices.Contains(s.LeftOut, m) {
			s.LeftOut = append(s.LeftOut, m)
		}
	} else {
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: t.encoded, Alone: t.alone()})
	}
	if t.owed {
		s.Pay = append(s.Pay, t.Key)
	}
}

// keep has a row of an unfinished task stored, and its attempts. mu is held.
func (c *captured) keep(s *engine.Settlement, t *task) {
	c.owe = append(c.owe, t)
	s.Owe = append(s.Owe, t.row())
	if len(t.Attempts) > 0 {
		s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, &t.Task)})
	}
	t.owed, t.dirty, t.settling = true, false, true
}

// pay has the ranges removed that are over. mu is held.
func (c *captured) pay(s *engine.Settlement) {
	var later []engine.Key
	for _, k := range c.sh.paid {
		if lv := c.sh.timers[k.Timer]; lv != nil && lv.held {
			later = append(later, k) // with the rows of its dues, which were left out
		} else {
			c.paid = append(c.paid, k)
		}
	}
	s.Pay = append(s.Pay, c.paid...)
	c.sh.paid = later
}

// owedKept is how long (ms) a task stays in memory after its row in owed went:
// who read the row before that must find the task, or else would call it again. A
// change may take its time with it.
const owedKept = 5000

// tidy lets go of what a former settle stored, at an instant of e.ticks. mu is held.
func (sh *shard) tidy(ticks int64) {
	for k, at := range sh.left {
		if ticks-at > owedKept {
			delete(sh.left, k)
		}
	}
	kept := sh.order[:0]
	for _, t := range sh.order {
		switch {
		case t.out:
		case t.stored != 0 && (!t.owed || ticks-t.stored > owedKept && sh.changing[t.Key.Timer] == nil):
			t.out = true
			sh.done--
			sh.doneBytes -= int64(len(t.encoded))
			sh.tasks.remove(t)
		default:
			kept = append(kept, t)
		}
	}
	clear(sh.order[len(kept):])
	if sh.order = kept; len(kept) == 0 && cap(kept) > 64 {
		sh.order = nil
	}
}

// reach is how far the watermark of a shard may go: to the cut; but it waits for
// tasks that are not finished as long as rows for them would cost more than
// what is settled by passing them, settleWait at most. It never passes a task
// whose timer is being changed. mu is held.
func (sh *shard) reach(cut int64, last bool) int64 {
	oldest, held, lagging := cut, cut, cut-settleLag
	var old, behind int // tasks due before lagging: unfinished; finished
	for _, t := range sh.order {
		due := t.Key.Due
		if t.live.held && t.stored == 0 && (t.state == isDone || t.dirty || !t.owed) {
			held = min(held, due-1) // no row of it may be there: its change decides what becomes of it
		}
		switch {
		case t.owed, t.stored != 0:
		case t.state == isDone:
			if due <= lagging {
				behind++
			}
		case t.state == isLeaving: // it waits for nothing but its row
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

// row is how a task stands, for owed. mu is held.
func (t *task) row() engine.Owed {
	o := engine.Owed{
		Key: t.Key, Generation: t.Generation, Origin: t.Origin, Begun: t.state == isPreparing || t.state == isSending,
		NotBefore: max(t.NotBefore, t.Key.Due), Lane: t.memory.id,
	}
	if len(t.Attempts) > 0 || t.Base > 0 || t.Since != t.Key.Due {
		c := t.Task
		c.Attempts = append([]engine.Attempt(nil), t.Attempts...)
		o.Task = &c
	}
	return o
}

// place is where its row stands in its lane. mu is held.
func (t *task) place() engine.Place {
	return engine.Place{NotBefore: max(t.NotBefore, t.Key.Due), Key: t.Key}
}

// alone: see Record. The timer may have been changed since. mu is held.
func (t *task) alone() bool {
	def := t.live.def
	return t.Origin == engine.FromSchedule && def.Schedule.OneShot() && t.Key.Due == cmp.Or(def.LastDue, def.At)
}

// release lets go of what a settle stored; the journal had next records before it.
func (e *Scheduler) release(c *captured, next engine.Position) {
	sh := c.sh
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.watermark = max(sh.watermark, c.w)
	sh.marked = e.now()
	e.metrics.unwritten.Add(c.unwritten)
	ticks := e.ticks()
	for _, t := range c.done {
		// It stays for one more look: a change that read its row before this
		// settle took it away must still find it.
		t.stored = ticks
	}
	for id, at := range sh.decided {
		if at <= sh.watermark {
			delete(sh.decided, id)
		}
	}
	horizon := e.horizon.Load()
	for _, t := range c.owe {
		if t.settling, t.journaled = false, 0; t.dirty {
			t.journaled = next + 1 // by what was appended since
		}
		if t.mayLeave(horizon) {
			if t.begun {
				t.begun = false
				t.live.busy--
			}
			if t.state == isLeaving || t.NotBefore < horizon {
				t.memory.waits(t.place())
			}
			e.forget(sh, t)
			sh.left[t.Key] = ticks
		}
	}
}

// mayLeave reports whether a task whose row was just stored may leave memory: one that
// its lane has no room for, and a retry that is far or whose lane is crowded. A far
// retry comes back through the migrator, the others through refill. mu is held.
func (t *task) mayLeave(horizon int64) bool {
	if t.dirty || t.live.held {
		return false
	}
	return t.state == isLeaving && !t.memory.stays() ||
		t.state == isRetrying && t.live.def.Overlap == engine.OverlapAllow && (t.NotBefore >= horizon || t.memory.crowded())
}

// giveBack undoes a capture that was not stored: the tasks are owed in memory
// and their rows are written by the next settle.
func (e *Scheduler) giveBack(c *captured) {
	sh := c.sh
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.paid = append(sh.paid, c.paid...)
	for _, t := range c.owe {
		t.settling, t.dirty = false, true
	}
}
