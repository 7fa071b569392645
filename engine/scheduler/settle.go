package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

const (
	// settleEvery is the pace of settling while there is something to settle. A
	// settle keeps a core busy for as long as it takes, so with many results it
	// comes earlier, when there are about settleBatch, but not before settleSoon:
	// at 10,000 fires a second one of 500 ms took 8 to 11 ms at a stretch. Each writes
	// up to 256 watermarks: at 15,000 a second a fire cost 46.4 µs with one each 100 ms,
	// 41.4 with one each 200.
	settleEvery = 500 * time.Millisecond
	settleSoon  = 200 * time.Millisecond
	settleBatch = 1000
	// settleShare is how much of the time settling may look at tasks that it does not
	// settle: a 25th. With many waiting it looks less often, but at least each settleEvery
	// while tasks are to leave memory: they wait for their row, and more of them would make
	// the next look longer. With 10,000 one-shots a second for a mute target one look of
	// 350 ms, on a busy machine, was followed by 8 s without a settle, and 85,000 tasks
	// took 110 MB more. What is settled does not count: 200,000 waited for their row.
	// Half as many results as hold up calls while memory is full end the rest as well.
	settleShare = 25
	// fenceEvery is the longest that a node writes nothing, and so does not hear that its life is over or that
	// MySQL has gone back. A decision that cannot be stored keeps all watermarks where they are, and then a settle
	// may have nothing to write.
	fenceEvery = 2 * time.Second
	// markEvery is the longest that a moving watermark goes unwritten.
	markEvery = 10 * time.Second
)

// settler settles: what has ended becomes history, what has not but is overtaken
// by the watermark becomes owed, the watermarks move, all in one transaction of
// the cold tier; then, and only then, the journal forgets.
//
//	cut = min(loaded, pins, wheel.Low, now)             nothing below it is unknown to memory
//	W'  = min(cut, the shard's oldest open due − 1)      but not for ever: see reach
//	      done tasks ≤ W' or owed  → tasks;  open tasks ≤ W' → owed
//
// A result whose due is later than W' waits: settled alone it would not be
// finished, for it is neither ≤ W nor owed.
type settler struct {
	e      *Scheduler
	turn   chan struct{} // full while there is a settle; it guards all below
	looked time.Duration // how long the last settle looked at tasks that it did not settle
	lines  int           // rows of the last settle, but watermarks
	noted  int           // tasks that noteAgain found last
	marked time.Time     // when all watermarks that had moved were last written
	wrote  time.Time     // when the last settle began that had something to store
	// Lists of the last settle, for the next.
	caps    []resident.Captured
	records []engine.Record
}

// keptRecords is the most room for records that is kept from settle to settle.
const keptRecords = 1 << 16

// run settles until ctx ends.
func (h *settler) run(ctx context.Context) error {
	var t trouble
	last := time.Now()
	h.marked, h.wrote = last, last // by the start
	for next, rested := last.Add(settleEvery), last; ; {
		if process.Sleep(ctx, time.Until(next)); ctx.Err() != nil {
			return nil
		}
		if time.Until(rested) > 0 && h.mayRest() {
			next = next.Add(settleEvery)
			continue
		}
		started := time.Now()
		err := h.settle(ctx, false)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, engine.ErrFenced) {
			return h.e.endFenced(err)
		}
		t.tell(h.e.log, "cannot settle; outcomes wait in the journal", err)
		every := settleEvery
		if h.lines > 0 {
			every = min(max(started.Sub(last)*settleBatch/time.Duration(h.lines), settleSoon), settleEvery)
		}
		last = started
		rest := h.looked * (settleShare - 1)
		next, rested = started.Add(max(every, min(rest, settleEvery))), started.Add(rest)
		if err != nil {
			next, rested = time.Now().Add(time.Second), last
		}
	}
}

// mayRest reports whether the next settle may come later than after settleEvery: no task waits
// for its row to leave memory, and few results wait.
func (h *settler) mayRest() bool {
	results, _ := h.e.waiting()
	return results <= h.e.backpressure.crowd/2 && h.e.memory.Lanes.Leaving.Load() == 0
}

// endFenced ends the process, whose shards are another's by what a settle has found.
func (e *Scheduler) endFenced(err error) error {
	e.ownership.End()
	if e.life != nil { // MySQL may have gone back: what the journal keeps is of these shards
		e.life.Abandon()
	}
	return process.TakenOver(err)
}

// storeIntents stores what at_most_once calls of a node wait for, beside the settles, until
// ctx ends.
func (e *Scheduler) storeIntents(ctx context.Context) error {
	x := e.memory.Intents
	if x == nil {
		return nil
	}
	defer x.Close()
	var t trouble
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.Wait():
		}
		s := &engine.Settlement{Owner: e.cfg.Node, Beside: true}
		taken := x.Take(s)
		if len(taken) == 0 {
			continue
		}
		err := e.cfg.Cold.Settle(ctx, s)
		x.Stored(taken, err == nil)
		if errors.Is(err, engine.ErrFenced) {
			return e.endFenced(err)
		}
		if t.tell(e.log, "cannot store that at_most_once calls begin; they wait", err); err != nil {
			process.Sleep(ctx, 100*time.Millisecond)
		}
	}
}

// settle does it once; last is the one at the end of a drain, which leaves no
// watermark unwritten.
func (h *settler) settle(ctx context.Context, last bool) error {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	e := h.e
	began, now, shards := time.Now(), e.now(), engine.AllShards
	marks := last || began.Sub(h.marked) >= markEvery
	next := e.journal.Next() // first: what is appended after it stays
	held := e.memory.Held()  // before the cut: all that the wheel is to know of them lies there
	cut := h.cut(now)

	s := &engine.Settlement{Owner: e.cfg.Node, Tasks: h.records[:0]}
	caps := h.caps[:0]
	needed, ahead := next, next
	e.memory.BeginSettle()
	seen, settled := 0, 0
	h.looked = 0
	if !marks {
		shards = e.memory.ToSettle()
	}
	for i := range shards.All() {
		upTo := cut
		if !held.Has(i) {
			upTo = 0 // its watermark stays where it is
		}
		look := time.Now()
		c := e.memory.Capture(i, upTo, now, marks, last, s)
		h.looked += time.Since(look)
		needed, ahead = min(needed, c.Needed), min(ahead, c.Ahead) // also of a closed shard, which has no lines here
		if c.Seen == 0 && c.Lines == 0 {
			continue
		}
		seen, settled = seen+c.Seen, settled+c.Settled()
		if c.Lines > 0 {
			caps = append(caps, c)
		}
		runtime.Gosched() // what is due goes first
	}
	h.looked = h.looked * time.Duration(seen-settled) / time.Duration(max(seen, 1))
	h.lines = len(s.Tasks) + len(s.Owe) + len(s.Pay)
	if h.records = nil; cap(s.Tasks) <= keptRecords {
		h.records = s.Tasks
	}
	h.caps = caps
	defer func() { clear(h.records); clear(h.caps) }()
	if h.writes(s, began) {
		h.wrote = began
		if err := h.store(ctx, s, caps, next); err != nil {
			return err
		}
	}
	if marks {
		h.marked = began
	}
	if next-ahead > engine.Position(fewNoted+16*h.noted) {
		var err error
		if needed, err = h.noteAgain(ctx, next, now); err != nil {
			return err
		}
	}
	if e.former.Load() != nil {
		return nil // the first gain is to come
	}
	var moved *engine.Watermarks
	if len(caps) > 0 {
		moved = e.memory.AllWatermarks()
	}
	if err := e.journal.Forget(needed, moved); err != nil {
		return fmt.Errorf("cannot forget in the journal: %w", err)
	}
	return nil
}

// writes reports whether a settle goes to the cold tier: it has something to store, or the node has not heard
// for fenceEvery whether its life goes on.
func (h *settler) writes(s *engine.Settlement, now time.Time) bool {
	if len(s.Marks)+len(s.Tasks)+len(s.Owe)+len(s.Pay) > 0 {
		return true
	}
	return h.e.life != nil && h.e.former.Load() == nil && now.Sub(h.wrote) >= fenceEvery
}

// store stores what was captured, and ends the settle; the journal had next records before.
func (h *settler) store(ctx context.Context, s *engine.Settlement, caps []resident.Captured, next engine.Position) error {
	e := h.e
	started := time.Now()
	failpoint.Hit("before-w")
	err := e.settlePieces(ctx, s)
	failpoint.Hit("after-w")
	defer e.memory.EndSettle()
	if e.tiers.Settled(err == nil || ctx.Err() != nil); err != nil {
		for i := range caps {
			e.memory.GiveBack(&caps[i])
		}
		return err
	}
	e.metrics.settleSeconds.Update(time.Since(started).Seconds())
	for i := range caps {
		e.metrics.unwritten.Add(e.memory.Release(&caps[i], next))
	}
	return nil
}

// cut is the instant up to which memory knows all that is due.
func (h *settler) cut(now int64) int64 {
	// The order matters: what releases its pin, or is loaded, after this
	// reading lies in the wheel before the reading of Low.
	e := h.e
	if e.memory.Wheel.IsSet() { // what a step forward makes late is pinned when the wheel notices the step
		now = min(now, e.memory.Wheel.Looked())
	}
	cut := e.memory.Pins.Lowest(min(now, e.memory.Loaded.Load()-1))
	cut = min(cut, e.memory.Wheel.LowUpTo(now))
	return cut
}

// fewNoted is how many records the journal may keep for tasks that were begun before the
// clock was set back: the watermark does not pass them before it is where it was.
const fewNoted = 1000

// noteAgain appends the records of those tasks to the journal once more, so that those
// before can go. It answers the first record that is needed then.
func (h *settler) noteAgain(ctx context.Context, next engine.Position, now int64) (engine.Position, error) {
	needed, e := next, h.e
	h.noted = 0
	for i := range engine.Shards {
		noted, first := e.memory.NoteAgain(i, now)
		h.noted, needed = h.noted+noted, min(needed, first)
	}
	if end := e.journal.Next(); end > 0 {
		if err := e.journal.Sync(ctx, end-1); err != nil {
			return 0, fmt.Errorf("cannot note in the journal again: %w", err)
		}
	}
	return needed, nil
}
