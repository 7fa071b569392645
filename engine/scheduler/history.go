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
	marks  []journalMark // of the journal's growth, oldest first
	forgot engine.Position
	looked time.Time // when the last settle had its look at memory
	lines  int       // rows of the last settle, but watermarks
	// Lists of the last settle, for the next.
	caps    []captured
	records []engine.Record
}

// keptRecords is the most room for records that is kept from settle to settle.
const keptRecords = 1 << 16

// journalMark says that all journal records before p are of tasks due at or
// before the instant: a task's records come after its due, by the clock of the
// time, which may have been set back since.
type journalMark struct {
	at int64
	p  engine.Position
}

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
	// skipped: something that the journal knows of was left out.
	skipped bool
}

// settle does it once; last is the one at the end of a drain, which leaves no
// watermark unwritten.
func (h *history) settle(ctx context.Context, last bool) error {
	e := h.e
	now := e.now()
	next := e.journal.Next() // first: an attempt that begins after it is later than the mark
	h.marks = append(h.marks, journalMark{max(now, e.upTo.Load()), next})
	// The order matters: what gives up its hold, or is loaded, after this
	// reading lies in the wheel before the reading of Low.
	cut := e.holds.lowest(min(now, e.loaded.Load()-1))
	cut = min(cut, e.wheel.Low())

	s := &engine.Settlement{Owner: e.cfg.Node, Tasks: h.records[:0]}
	caps := h.caps[:0]
	forget := int64(math.MaxInt64)
	for i := range e.shards {
		c := e.capture(&e.shards[i], i, cut, now, last, s)
		if forget = min(forget, c.w); c.skipped {
			forget = math.MinInt64
		}
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
			e.release(&caps[i])
		}
		e.settled.broadcast()
	}
	return h.forget(forget)
}

// forget lets the journal drop what was written up to the instant.
func (h *history) forget(upTo int64) error {
	n := 0
	for n < len(h.marks) && h.marks[n].at <= upTo {
		n++
	}
	if n == 0 {
		return nil
	}
	p := h.marks[n-1].p
	h.marks = h.marks[:copy(h.marks, h.marks[n:])]
	if p == h.forgot {
		return nil
	}
	if err := h.e.journal.Forget(p); err != nil {
		return fmt.Errorf("cannot forget in the journal: %w", err)
	}
	h.forgot = p
	return nil
}

// capture takes from a shard what can be settled now.
func (e *Scheduler) capture(sh *shard, place int, cut, now int64, last bool, s *engine.Settlement) captured {
	critical := e.cfg.DiskCritical()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.tidy(e.ticks())
	cut = e.holds.since(cut)
	c := captured{sh: sh, w: max(sh.reach(cut, last), sh.watermark)}
	for _, t := range sh.order {
		k := t.Key
		passed := k.Due <= c.w
		switch {
		case t.state == isDone:
			if t.stored != 0 {
				continue
			}
			if t.live.held { // what becomes of its row is its change's to say
				c.skipped = true
				continue
			}
			if !passed && (!t.owed || t.Origin == engine.FromSchedule) {
				continue
			}
			c.done = append(c.done, t)
			if t.Status == engine.Succeeded && critical {
				c.unwritten++
				if m := k.Due - k.Due%minute; !slices.Contains(s.LeftOut, m) {
					s.LeftOut = append(s.LeftOut, m)
				}
			} else {
				s.Tasks = append(s.Tasks, engine.Record{Key: k, Status: t.Status, Encoded: t.encoded, Alone: t.alone()})
			}
			if t.owed {
				s.Pay = append(s.Pay, k)
			}
		case t.owed && t.dirty && t.live.held:
			c.skipped = true
		case t.owed && t.dirty, !t.owed && passed:
			c.owe = append(c.owe, t)
			s.Owe = append(s.Owe, t.row())
			if len(t.Attempts) > 0 {
				s.Tasks = append(s.Tasks, engine.Record{Key: k, Status: t.Status, Encoded: engine.AppendTask(nil, &t.Task)})
			}
			t.owed, t.dirty, t.settling = true, false, true
		}
	}
	if len(sh.paid) > 0 {
		var later []engine.Key
		for _, k := range sh.paid {
			if lv := sh.timers[k.Timer]; lv != nil && lv.held {
				later = append(later, k) // with the rows of its dues, which were left out
			} else {
				c.paid = append(c.paid, k)
			}
		}
		s.Pay = append(s.Pay, c.paid...)
		sh.paid = later
	}
	c.lines = len(c.owe) + len(c.done) + len(c.paid)
	if c.w > sh.watermark && (c.lines > 0 || now-sh.marked >= markEvery || last) {
		s.Marks = append(s.Marks, engine.Mark{Shard: place, Fence: sh.fence, W: c.w})
		sh.settling = max(sh.settling, c.w)
		c.lines++
	}
	return c
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

// release lets go of what a settle stored.
func (e *Scheduler) release(c *captured) {
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
		t.settling = false
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
