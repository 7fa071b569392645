package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
)

// unsettled is what waits for the cold tier: outcomes, in memory and in the
// journal, from the end of their task to the settle that stores them. While the
// tier is away they gather, and there are bounds:
//
//	outcomes   1,000,000, each about 600 B of memory
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
type unsettled struct {
	outcomes int
	bytes    int64
	age      time.Duration
	since    atomic.Pointer[time.Time] // when the first of the settles that fail did; nil: they go through
	isFull   atomic.Bool
}

const (
	maxUnsettled      = 1_000_000
	maxUnsettledBytes = 256 << 20
)

// ErrBacklog is what is refused at a bound.
var ErrBacklog = &engine.Fault{
	Kind: engine.FaultUnavailable, Code: "backlog_full",
	Detail: "too many outcomes wait for the cold tier, or for too long: nothing new is taken and nothing is called until they are stored",
}

// heard notes how a settle went.
func (u *unsettled) heard(ok bool) {
	if ok {
		u.since.Store(nil)
		return
	}
	now := time.Now()
	u.since.CompareAndSwap(nil, &now)
}

// fails tells whether the last settle failed.
func (u *unsettled) fails() bool { return u.since.Load() != nil }

// waits is for how long settles have failed.
func (u *unsettled) waits() time.Duration {
	if since := u.since.Load(); since != nil {
		return time.Since(*since)
	}
	return 0
}

// waiting is memory.Unsettled where it may come near a bound: each outcome has a
// record in the journal, and what is larger than 64 KiB is rare.
func (e *Scheduler) waiting() (n int, bytes int64) {
	if u := &e.unsettled; e.journal.Len() <= min(int64(u.outcomes), u.bytes>>16) {
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
		calm := e.calm.Wait()
		if !e.stalled.Load() || !e.process.IsServing() {
			return
		}
		<-calm
	}
}

// watchJournal pauses the calls while the journal is too far behind, or what
// waits in it is at a bound.
func (e *Scheduler) watchJournal(ctx context.Context) error {
	for ctx.Err() == nil {
		unsynced, age := e.journal.Unsynced()
		n, bytes := e.waiting()
		waits := e.unsettled.waits()
		full := n > e.unsettled.outcomes || bytes > e.unsettled.bytes || waits > e.unsettled.age
		if e.unsettled.isFull.Swap(full) != full {
			e.log.Warn("what waits for the cold tier is at its bound", "wait", full, "unsettled", n, "bytes", bytes, "for", waits)
			e.migrator.wake()
		}
		stalled := full || unsynced > maxUnsynced || age > maxUnsyncedAge
		if e.stalled.Swap(stalled) != stalled && !full {
			e.log.Warn("calls wait for the journal's disk", "wait", stalled, "unsynced", unsynced, "age", age)
		}
		if !stalled {
			e.calm.Broadcast()
		}
		process.Sleep(ctx, 100*time.Millisecond)
	}
	e.calm.Broadcast()
	return nil
}
