package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// backpressure bounds what waits for the cold tier: outcomes, in memory and in the
// journal, from the end of their task to the settle that stores them. While the
// tier is away they gather, and there are bounds:
//
//	outcomes   1,000,000, each about 600 B of memory; 20,000 while memory is full
//	bytes      256 MiB of them as they are stored: those with long answers
//	age        as long as the window of the warm tier, an hour
//
// At a bound nothing more begins: calls wait, the next minutes are not loaded, and
// creates, and runs and retries by hand, are refused at once (ErrBacklog). What
// waits is kept, and when a settle has gone through all of it goes on, late.
//
// With a tier that can be neither read nor written calls end sooner, at the end of
// what is loaded: see migrator. It is a tier that can only be read that comes to
// the age.
type backpressure struct {
	outcomes int
	crowd    int // likewise, while memory is full
	bytes    int64
	age      time.Duration
	isFull   atomic.Bool
	stalled  atomic.Bool     // the journal or the cold tier is too far behind: no new calls
	calm     resident.Signal // calls are not paused
}

const (
	maxUnsettled      = 1_000_000
	maxCrowd          = 20_000
	maxUnsettledBytes = 256 << 20
)

// ErrBacklog is what is refused at a bound.
var ErrBacklog = &engine.Fault{
	Kind: engine.FaultUnavailable, Code: "backlog_full",
	Detail: "too many results wait for the cold tier, or they have waited for too long: the server accepts no new work and makes no calls until they are stored",
}

// waiting is memory.Unsettled where it may come near a bound, or half of the least: each outcome has a
// record in the journal, and what is larger than 64 KiB is rare.
func (e *Scheduler) waiting() (n int, bytes int64) {
	if b := &e.backpressure; e.journal.Len() <= min(int64(b.crowd/2), int64(b.outcomes), b.bytes>>16) {
		return 0, 0
	}
	return e.memory.Unsettled()
}

// When the disk stalls, no more than this is called without being noted: each
// call beyond would be a repeat after a crash.
const (
	maxUnsynced    = 50_000
	maxUnsyncedAge = 2 * time.Second
)

// awaitCalm waits while calls are paused.
func (e *Scheduler) awaitCalm() {
	for e.process.IsServing() {
		calm := e.backpressure.calm.Wait()
		if !e.backpressure.stalled.Load() || !e.process.IsServing() {
			return
		}
		<-calm
	}
}

// watchJournal pauses the calls while the journal is too far behind, or what
// waits in it is at a bound.
func (e *Scheduler) watchJournal(ctx context.Context) error {
	b := &e.backpressure
	for ctx.Err() == nil {
		unsynced, age := e.journal.Unsynced()
		n, bytes := e.waiting()
		waits := e.tiers.SettlesFail()
		full := n > b.outcomes || bytes > b.bytes || waits > b.age || n > b.crowd && e.cfg.MemoryFull(0)
		if b.isFull.Swap(full) != full {
			e.log.Warn("what waits for the cold tier is at its bound", "wait", full, "unsettled", n, "bytes", bytes, "for", waits)
			e.migrator.wake()
		}
		stalled := full || unsynced > maxUnsynced || age > maxUnsyncedAge
		if b.stalled.Swap(stalled) != stalled && !full {
			e.log.Warn("calls wait for the journal's disk", "wait", stalled, "unsynced", unsynced, "age", age)
		}
		if !stalled {
			b.calm.Broadcast()
		}
		process.Sleep(ctx, 100*time.Millisecond)
	}
	b.calm.Broadcast()
	return nil
}

// open is nil when something new may be taken.
func (e *Scheduler) open() error {
	if err := e.process.Refusal(); err != nil {
		return err
	}
	switch {
	case e.backpressure.isFull.Load():
		return ErrBacklog
	case e.cfg.DiskFull():
		return engine.ErrFull
	case e.memory.IsFull():
		return engine.ErrMemoryFull
	}
	return nil
}

// Ready is nil when this node serves and fires; else it says what is amiss.
func (e *Scheduler) Ready() error {
	if err := e.process.Refusal(); err != nil {
		return err
	}
	switch fault := e.tiers.Fault.Load(); {
	case e.backpressure.isFull.Load():
		return ErrBacklog
	case fault != nil:
		return fmt.Errorf("the cold tier responds, but cannot be used: %s", *fault)
	case !e.tiers.ColdUp():
		return errors.New("the cold tier is unavailable: results wait in the journal")
	case e.life != nil && e.life.ClockDiffers():
		return fmt.Errorf("the clock of this node is not that of the other nodes: it is %v ahead of the database's, and the node calls nothing", e.life.Skew())
	case e.life != nil && !e.life.Fresh():
		return errors.New("this node has not joined the cluster, or the database did not acknowledge it in time: it calls nothing until then")
	case e.cfg.DiskFull():
		return errors.New("the disk is nearly full: new work is refused")
	}
	return nil
}
