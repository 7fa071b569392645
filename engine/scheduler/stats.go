package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"xtimer/engine"
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

// Stats takes a look at everything.
func (e *Scheduler) Stats(ctx context.Context) (Stats, error) {
	now := e.now()
	s := Stats{Wheel: e.wheel.Len(), Warm: e.cfg.Warm.Len(), Journal: e.journal.Len(), Watermark: now}
	s.Uptime = time.Duration(now-e.startedAt) * time.Millisecond
	s.FiresPerSec, s.Lateness = e.recent.look(now)
	s.DueByMinute = e.minutes.look(now)
	for i := range s.Ended {
		s.Ended[i] = int64(e.metrics.results[i].Get())
	}
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		s.SettleBacklog += int64(sh.done)
		s.Watermark = min(s.Watermark, sh.watermark)
		for t := range sh.tasks.all {
			s.add(t, now)
		}
		sh.mu.Unlock()
	}
	s.addStored(e.overdue.stored(nil), now)
	s.Tiers, s.Warnings = e.Tiers(), e.Warnings()
	var err error
	s.Timers, err = e.cfg.Cold.Counts(ctx)
	return s, err
}

// add counts a task in memory. mu of its shard is held.
func (s *Stats) add(t *task, now int64) {
	if t.state == isDone {
		return
	}
	s.Open++
	switch {
	case t.state == isPreparing, t.state == isSending:
		s.InFlight++
	case t.isOverdue():
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
func (e *Scheduler) countOverdue() (n int64) {
	for i := range e.shards {
		var s Stats
		sh := &e.shards[i]
		sh.mu.Lock()
		for t := range sh.tasks.all {
			s.add(t, t.Key.Due)
		}
		sh.mu.Unlock()
		n += s.Overdue
		runtime.Gosched() // what is due goes first
	}
	return n + e.overdue.stored(nil).tasks
}

// Tiers tells which of the tiers are up, by name.
func (e *Scheduler) Tiers() map[string]bool {
	return map[string]bool{"cold": e.coldUp(), "warm": e.warmUp.Load()}
}

// Ready is nil when this node serves and fires; else it says what is amiss.
func (e *Scheduler) Ready() error {
	if err := e.serving(); err != nil {
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

// raise lifts an instant, never lowers it.
func raise(p interface {
	Load() int64
	CompareAndSwap(old, new int64) bool
}, to int64,
) {
	for {
		was := p.Load()
		if was >= to || p.CompareAndSwap(was, to) {
			return
		}
	}
}
