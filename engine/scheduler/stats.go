package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// Stats is the state of the service for GET /v1/stats.
type Stats struct {
	Timers        engine.Counts
	Wheel         int   // timers and retries in the wheel
	Warm          int   // entries in the warm tier
	Open          int64 // tasks not finished, in memory
	InFlight      int64
	Overdue       int64         // due, and not started yet; those not in memory as counted of late
	OldestOverdue time.Duration // 0: none
	FiresPerSec   float64       // over the last minute
	Lateness      [3]float64    // p50, p99, p99.9 of the last minute, in ms
	Ended         [10]int64     // since the start, by final TaskStatus
	DueByMinute   [60]int64     // the coming hour; a timer faster than a minute counts once a minute
	SettleBacklog int64         // results not yet settled
	Journal       int64         // records not yet forgotten
	Uptime        time.Duration
	Watermark     int64           // the lowest of all shards, Unix ms
	Tiers         map[string]bool // up or not, by name
	Warnings      []Warning
}

// Memory returns how many unfinished tasks are in memory, and how many bytes of headers
// and bodies the timers in memory have and the calls under way need.
func (e *Scheduler) Memory() (tasks, payload int64) {
	return e.memory.Lanes.Resident.Load(), e.memory.Bodies.Bytes()
}

// Stats takes a look at everything.
func (e *Scheduler) Stats(ctx context.Context) (Stats, error) {
	now := e.now()
	s := Stats{Wheel: e.memory.Wheel.Len(), Warm: e.cfg.Warm.Len(), Journal: e.journal.Len()}
	s.Uptime = time.Duration(now-e.memory.StartedAt) * time.Millisecond
	s.FiresPerSec, s.Lateness = e.recent.Look(now)
	s.DueByMinute = e.minutes.Look(now)
	for i := range s.Ended {
		s.Ended[i] = int64(e.metrics.results[i].Get())
	}
	unsettled, _ := e.memory.Unsettled()
	lowest, _ := e.memory.Watermarks()
	s.SettleBacklog, s.Watermark = int64(unsettled), min(now, lowest)
	e.memory.EachTask(func(t *resident.Task) { s.add(t, now) })
	s.addStored(e.overdue.stored(nil), now)
	s.Tiers, s.Warnings = e.Tiers(), e.Warnings()
	var err error
	s.Timers, err = e.cfg.Cold.Counts(ctx)
	return s, err
}

// add counts a task in memory. mu of its shard is held.
func (s *Stats) add(t *resident.Task, now int64) {
	if t.IsOver() {
		return
	}
	s.Open++
	switch {
	case t.InFlight():
		s.InFlight++
	case t.IsOverdue():
		s.Overdue++
		s.OldestOverdue = max(s.OldestOverdue, time.Duration(now-t.Key.Due)*time.Millisecond)
	}
}

// addStored adds rows of tasks that are not in memory.
func (s *Stats) addStored(w waiting, now int64) {
	if w.tasks > 0 {
		s.Overdue += w.tasks
		s.OldestOverdue = max(s.OldestOverdue, time.Duration(now-w.oldest)*time.Millisecond)
	}
}

// countOverdue counts what is due and not begun; what is not in memory as it was counted
// of late. The queue cannot tell: it also has what was cancelled while it waited.
func (e *Scheduler) countOverdue() int64 {
	var s Stats
	e.memory.EachTask(func(t *resident.Task) { s.add(t, t.Key.Due) })
	return s.Overdue + e.overdue.stored(nil).tasks
}

// Tiers reports which of the tiers are up, by name. A warm tier that failed is up again when
// it has been filled.
func (e *Scheduler) Tiers() map[string]bool {
	return map[string]bool{"cold": e.coldUp(), "warm": e.warmUp()}
}

// Ready is nil when this node serves and fires; else it says what is amiss.
func (e *Scheduler) Ready() error {
	if err := e.process.Refusal(); err != nil {
		return err
	}
	switch {
	case e.unsettled.isFull.Load():
		return ErrBacklog
	case e.coldFault.Load() != nil:
		return fmt.Errorf("the cold tier is there, but cannot be used: %s", *e.coldFault.Load())
	case !e.coldUp():
		return errors.New("the cold tier is away: outcomes wait in the journal")
	case e.cfg.DiskFull():
		return errors.New("the disk is nearly full: nothing new is taken")
	}
	return nil
}

// warmUp reports whether the warm tier has not failed since it was last filled; before the
// start has come to it, nothing is up.
func (e *Scheduler) warmUp() bool {
	return e.migrator.warm.Load() != warmAway && (e.migrator.answers.Load() || e.coldUp())
}

// warmWarning says that the warm tier is away, if it is. The cause is in the log only:
// whoever asks may have no token, and a cause names hosts.
func (e *Scheduler) warmWarning() (w Warning, ok bool) {
	if e.warmUp() {
		return w, false
	}
	return Warning{"warm_tier_away", "the warm tier is away, or not filled again yet: what is due next is read from the cold tier; the log has the cause"}, true
}

const (
	// overdueEvery is how often rows that wait in the cold tier are counted, and
	// overdueShare how much of the time that may take: a 50th.
	overdueEvery = 5 * time.Second
	overdueShare = 50
	// lateAfter is how late (ms) the oldest task of a lane must be for a warning.
	lateAfter = minute
)

// overdue is what is due and not begun, by lane: the tasks in memory, and the dues whose
// rows wait in the cold tier. It is counted in the background, for a count goes through
// all of them.
type overdue struct {
	mu    sync.Mutex
	lanes map[engine.Lane]waiting
}

// waiting is what of a lane waits.
type waiting struct {
	tasks  int64
	rows   int64 // how many of them are not in memory
	oldest int64 // the first instant at which one might have been tried (Unix ms)
}

// watchOverdue counts until ctx ends.
func (e *Scheduler) watchOverdue(ctx context.Context) error {
	var t trouble
	for ctx.Err() == nil {
		started := time.Now()
		err := e.countWaiting(ctx)
		if ctx.Err() == nil {
			t.tell(e.log, "cannot count what waits in the cold tier", err)
		}
		process.Sleep(ctx, max(overdueEvery, time.Since(started)*(overdueShare-1)))
	}
	return nil
}

// countWaiting counts once.
func (e *Scheduler) countWaiting(ctx context.Context) error {
	now := e.now()
	lanes := map[engine.Lane]waiting{}
	var stored map[engine.Lane]waiting
	var err error
	if e.memory.Lanes.AnySpilled() { // else all that waits is in memory
		stored, err = e.countRows(ctx, now)
	}
	inMemory := map[engine.Lane]int64{} // rows of tasks in memory
	e.memory.EachTask(func(t *resident.Task) {
		if t.HasOpenRow() && max(t.NotBefore, t.Key.Due) <= now {
			inMemory[t.Lane.ID]++
		}
		if t.Waits() { // parked tasks wait for their timer
			l := lanes[t.Lane.ID]
			l.add(1, max(t.NotBefore, t.Key.Due))
			lanes[t.Lane.ID] = l
		}
	})
	for id, r := range stored {
		if n := r.tasks - inMemory[id]; n > 0 {
			l := lanes[id]
			l.add(n, r.oldest)
			l.rows = n
			lanes[id] = l
		}
	}
	e.overdue.mu.Lock()
	e.overdue.lanes = lanes
	e.overdue.mu.Unlock()
	return err
}

// countRows counts the dues of the rows that may be tried by now, by lane.
func (e *Scheduler) countRows(ctx context.Context, now int64) (map[engine.Lane]waiting, error) {
	lanes := map[engine.Lane]waiting{}
	add := func(id engine.Lane, n, oldest int64) {
		l := lanes[id]
		l.add(n, oldest)
		lanes[id] = l
	}
	err := e.cfg.Cold.Owed(ctx, -1, now, func(os []engine.Owed) error {
		var ranges []engine.Owed
		var ids []engine.TimerID
		for i := range os {
			if o := &os[i]; o.To == 0 {
				add(o.Lane, 1, o.NotBefore)
			} else {
				ranges, ids = append(ranges, *o), append(ids, o.Key.Timer)
			}
		}
		defs, err := e.cfg.Cold.Load(ctx, ids)
		if err != nil {
			return err
		}
		for i, o := range ranges {
			if n := e.waitingIn(&o, defs[i], now); n > 0 {
				add(o.Lane, n, o.Key.Due)
			}
		}
		return ctx.Err()
	})
	e.heard(err)
	return lanes, err
}

// waitingIn is how many dues of a range have come that refill has still to go through.
func (e *Scheduler) waitingIn(o *engine.Owed, definition []byte, now int64) int64 {
	if definition == nil {
		return 0
	}
	t, err := engine.DecodeTimer(definition)
	if err != nil || t.Generation != o.Generation {
		return 0
	}
	p, err := plan.Of(t)
	if err != nil {
		return 0
	}
	if e.memory.IsTurning(o.Key) {
		return 0
	}
	return p.Count(o.Key.Due-1, min(o.To, now))
}

func (w *waiting) add(tasks, oldest int64) {
	if w.tasks == 0 || oldest < w.oldest {
		w.oldest = oldest
	}
	w.tasks += tasks
}

// stored are the rows that wait and are not in memory, and the oldest of them: of all
// lanes, or of those that are selected.
func (o *overdue) stored(selected func(engine.Lane) bool) (sum waiting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, l := range o.lanes {
		if l.rows > 0 && (selected == nil || selected(id)) {
			sum.add(l.rows, l.oldest)
		}
	}
	return sum
}

// storedIn is how many tasks of a lane are due and not in memory.
func (o *overdue) storedIn(id engine.Lane) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lanes[id].rows
}

// late are the lanes whose oldest task is late by more than lateAfter.
func (o *overdue) late(now int64) (lanes int, sum waiting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		if now-l.oldest > lateAfter {
			lanes++
			sum.add(l.tasks, l.oldest)
		}
	}
	return lanes, sum
}

// lateWarning says that lanes are late, if any is.
func (e *Scheduler) lateWarning() (w Warning, ok bool) {
	now := e.now()
	lanes, sum := e.overdue.late(now)
	if lanes == 0 {
		return w, false
	}
	return Warning{"targets_late", fmt.Sprintf(
		"%d tasks of %d targets are overdue, the oldest for %v: they wait for calls to these targets",
		sum.tasks, lanes, (time.Duration(now-sum.oldest) * time.Millisecond).Round(time.Second),
	)}, true
}
