package scheduler

import (
	"context"
	"errors"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
)

const (
	janitorEvery = 10 * time.Second
	// janitorShare is how much of the time it may work: archiving can wait.
	janitorShare = 10 // 10 %
)

// Leads reports whether the process does what one of several nodes does for all: it owns
// shard 0.
func (e *Scheduler) Leads() bool { return e.memory.Owned().Has(0) }

// janitor archives what is finished and drops what retention lets go, in small
// pieces, and keeps the count of timers fresh. Of several nodes the owner of shard 0
// does that for all.
func (e *Scheduler) janitor(ctx context.Context) error {
	for probed := 0; ctx.Err() == nil; {
		now, started := e.now(), time.Now()
		var more bool
		var err error
		if e.Leads() {
			more, err = e.cfg.Cold.Sweep(ctx, now,
				now-e.cfg.FinishedRetention.Milliseconds(), now-e.cfg.HistoryRetention.Milliseconds())
		}
		if err != nil && ctx.Err() == nil {
			e.log.Error("cannot sweep the cold tier; trying again", "error", err)
		}
		c, lost := e.cfg.Cold.Counts(ctx)
		if e.probe(ctx, probed, err, lost) {
			probed++
		}
		if e.tiers.Read(lost); lost == nil {
			e.tiers.Counts.Store(&c)
		}
		if more && err == nil {
			rest := time.Since(started) * (janitorShare - 1)
			if waiting, _ := e.memory.Queue.Load(); waiting > 0 {
				rest = max(rest, time.Second) // calls are late already
			}
			process.Sleep(ctx, max(rest, 10*time.Millisecond))
		} else {
			process.Sleep(ctx, janitorEvery)
		}
	}
	return nil
}

// probe reads as requests do, from the n-th of several tables; the count of timers is a
// table of its own. What a sweep or a count says of a broken tier counts as well. It
// reports whether none is broken: else the next probe is of the same table.
func (e *Scheduler) probe(ctx context.Context, n int, found ...error) (sound bool) {
	_, timer := e.cfg.Cold.Timer(ctx, 1)
	var next error
	switch n % 4 {
	case 0:
		_, next = e.cfg.Cold.Versions(ctx, 1, 0, 1)
	case 1:
		_, next = e.cfg.Cold.LastTask(ctx, 1)
	case 2:
		_, next = e.cfg.Cold.OwedPage(ctx, 1, 0, 1)
	case 3:
		_, next = e.cfg.Cold.Shards(ctx)
	}
	for _, err := range append(found, timer, next) {
		switch {
		case err == nil, errors.Is(err, engine.ErrNotFound):
		case errors.Is(err, context.Canceled), errors.Is(err, engine.ErrUnavailable) && !errors.Is(err, engine.ErrBroken):
			return false // Tiers knows
		default:
			e.tiers.Fault.Store(new(err.Error()))
			return false
		}
	}
	e.tiers.Fault.Store(nil)
	return true
}

const (
	// overdueEvery is how often rows that wait in the cold tier are counted, and
	// overdueShare how much of the time that may take: a 50th.
	overdueEvery = 5 * time.Second
	overdueShare = 50
)

// watchOverdue counts what is overdue until ctx ends.
func (e *Scheduler) watchOverdue(ctx context.Context) error {
	var t trouble
	for ctx.Err() == nil {
		started := time.Now()
		err := e.CountOverdue(ctx)
		if ctx.Err() == nil {
			t.tell(e.log, "cannot count what waits in the cold tier", err)
		}
		process.Sleep(ctx, max(overdueEvery, time.Since(started)*(overdueShare-1)))
	}
	return nil
}
