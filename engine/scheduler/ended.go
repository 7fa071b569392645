package scheduler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/process"
)

// A change that ends a generation commits at once, however many rows of it wait: what
// it cannot take along in one commit is left to this stage, which cancels it in pieces.
//
//	commit   the definition, calls in flight, tasks without a row, the first rows
//	memory   tasks with a row have ended: the next settles store that
//	ended    the other rows, a page of each timer in turns: record and removal in one
//
// After the commit nothing of the former generation is called: a row tells its
// generation, so whoever finds one that has ended leaves it to this stage (resumePage,
// unfold, a start). To a reader its task is cancelled by then.
//
// A row that has ended is not later than its generation, and a later generation only
// makes rows with such a key by a change, a run or a retry by hand: each of them claims
// the timer, as this stage does for each page.
type ended struct {
	mu     sync.Mutex
	timers map[engine.TimerID]*endedTimer
	list   []*endedTimer
	more   chan struct{}
}

// endedTimer is a timer that has rows of generations before one.
type endedTimer struct {
	id     engine.TimerID
	before uint32
	reason string
	at     int64 // when they ended (Unix ms)
	after  int64 // the due of the last row that was looked at
}

// endedRows is how many rows this stage takes at a time, at most; a variable for tests.
var endedRows = 5000

// add has the rows of a timer cancelled that are not of its definition, nil for none.
func (n *ended) add(id engine.TimerID, former, def *engine.Timer, now int64) {
	x := &endedTimer{id: id, before: ^uint32(0), reason: policy.ReasonOf(former, def), at: now, after: -1}
	if def != nil {
		x.before, x.at = def.Generation, def.UpdatedAt
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if was := n.timers[id]; was != nil && was.before == x.before && former == nil {
		return // found, and known
	}
	n.timers[id] = x
	n.list = append(n.list, x)
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// take gives all timers whose turn it is.
func (n *ended) take() []*endedTimer {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return slices.DeleteFunc(list, func(x *endedTimer) bool { return n.timers[x.id] != x })
}

// seen gives a timer another turn, or forgets it.
func (n *ended) seen(x *endedTimer, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.timers[x.id] != x: // it has ended again
	case more:
		n.list = append(n.list, x)
	default:
		delete(n.timers, x.id)
	}
}

// endedTimers are the timers that have such rows, for a reader of history. It asks for
// them before it reads: a record that it reads then may be stored as cancelled, and its
// timer be forgotten here, before it looks at the record.
type endedTimers map[engine.TimerID]*endedTimer

func (n *ended) now() endedTimers {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.timers)
}

// show is a stored task for a reader: cancelled, if its row is still to be.
func (ts endedTimers) show(t *engine.Task) {
	if x := ts[t.Key.Timer]; x != nil && !t.Status.Final() && t.Generation < x.before {
		t.Status, t.Reason, t.Ended, t.NotBefore = engine.Cancelled, x.reason, x.at, 0
	}
}

// run cancels what was added until ctx ends.
func (n *ended) run(ctx context.Context, e *Scheduler) error {
	for ctx.Err() == nil {
		list := n.take()
		if len(list) == 0 {
			select {
			case <-ctx.Done():
			case <-n.more:
			}
			continue
		}
		did := false
		for _, x := range list {
			looked, more, err := e.endPage(ctx, x)
			if did = did || looked; err != nil && ctx.Err() == nil {
				e.log.Error("cannot cancel what waited for a timer that was changed; trying again", "timer", x.id, "error", err)
				process.Sleep(ctx, time.Second)
			}
			n.seen(x, more || err != nil)
		}
		if !did {
			process.Sleep(ctx, 10*time.Millisecond) // they are being changed
		}
	}
	return nil
}

// endPage cancels a page of a timer's rows that have ended; those of tasks in memory
// are history's. looked is false while the timer is being changed.
func (e *Scheduler) endPage(ctx context.Context, x *endedTimer) (looked, more bool, err error) {
	release, change := e.memory.TryClaim(x.id)
	if change != nil {
		return false, true, nil
	}
	defer release()
	l, err := e.lifeOf(ctx, x.id)
	if err != nil {
		return true, true, err
	}
	limit := e.pieces.of(endedRows)
	read := e.memory.Reads.Begin()
	defer read.End()
	rows, err := e.cfg.Cold.OwedPage(ctx, x.id, x.after, limit)
	if err != nil {
		return true, true, err
	}
	var pay []engine.Key
	var recs []*engine.Task
	for i := range rows {
		end, over := policy.EndingOf(l, rows[i].Generation)
		if !over || rows[i].To == 0 && e.memory.Had(rows[i].Key, read) {
			continue
		}
		rs, err := e.endOf(ctx, &end, &rows[i])
		if err != nil {
			return true, true, err
		}
		pay, recs = append(pay, rows[i].Key), append(recs, rs...)
	}
	if len(pay) > 0 {
		failpoint.Hit("ended-before-settle")
		err := e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node, Tasks: records(recs), Pay: pay})
		if e.pieces.heard(limit, err); err != nil {
			return true, true, err
		}
		e.announce(recs)
	}
	if len(rows) > 0 {
		x.after = rows[len(rows)-1].Key.Due
	}
	return true, len(rows) == limit, nil
}

// lifeOf reads what is kept of a timer; of one of which nothing is, that it is gone.
func (e *Scheduler) lifeOf(ctx context.Context, id engine.TimerID) (*engine.Life, error) {
	ls, err := e.cfg.Cold.Lives(ctx, id-1, 1)
	if err != nil {
		return nil, err
	}
	if len(ls) == 1 && ls[0].ID == id {
		return &ls[0], nil
	}
	return &engine.Life{ID: id, Deleted: e.now()}, nil
}

// endOf are the records of a row whose generation has ended. A due that was yet to
// come, by a clock that was set back, has none.
func (e *Scheduler) endOf(ctx context.Context, end *policy.Ending, o *engine.Owed) ([]*engine.Task, error) {
	switch {
	case o.To == 0 && (o.Key.Due <= end.UpTo || o.Used()):
		return []*engine.Task{end.Cancelled(o)}, nil
	case o.To == 0, end.Former == nil:
		return nil, nil
	}
	p, err := plan.Of(end.Former)
	if err != nil { // see leaveOut
		return nil, nil
	}
	to := min(o.To, end.UpTo)
	own := e.memory.TaskDues(o.Key.Timer, o.Key.Due-1, to) // first: what leaves memory was stored before
	stored, err := e.ownWithin(ctx, *o, to)
	if err != nil {
		return nil, err
	}
	own = append(own, stored...)
	return e.memory.CancelledDues(end.Former, &p, o.Key.Due-1, to, own, end.Reason, end.At), nil
}
