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

// janitor archives what is finished and drops what retention lets go, in small
// pieces, and keeps the count of timers fresh.
func (e *Scheduler) janitor(ctx context.Context) error {
	for ctx.Err() == nil {
		now, started := e.now(), time.Now()
		more, err := e.cfg.Cold.Sweep(ctx, now,
			now-e.cfg.FinishedRetention.Milliseconds(), now-e.cfg.HistoryRetention.Milliseconds())
		if err != nil && ctx.Err() == nil {
			e.log.Error("cannot sweep the cold tier; trying again", "error", err)
		}
		c, lost := e.cfg.Cold.Counts(ctx)
		e.probe(ctx, err, lost)
		if e.heard(lost); lost == nil {
			e.counts.Store(&c)
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

// probe reads as requests do, from one table more each time; the count of timers is a
// table of its own. What a sweep or a count says of a broken tier counts as well. It
// stays with a table that is broken until it is mended.
func (e *Scheduler) probe(ctx context.Context, found ...error) {
	_, timer := e.cfg.Cold.Timer(ctx, 1)
	var next error
	switch e.probed % 4 {
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
			return // coldUp knows
		default:
			e.coldFault.Store(new(err.Error()))
			return
		}
	}
	e.probed++
	e.coldFault.Store(nil)
}

// heard notes how a read of the cold tier went.
func (e *Scheduler) heard(err error) {
	if !errors.Is(err, context.Canceled) {
		e.readsFail.Store(err != nil)
	}
}

// coldUp tells whether the cold tier is there: one that can be read only is not.
func (e *Scheduler) coldUp() bool {
	return !e.readsFail.Load() && !e.unsettled.fails() && e.coldFault.Load() == nil
}

func (e *Scheduler) countOf(s engine.Status) int64 {
	c := e.counts.Load()
	switch s {
	case engine.Enabled:
		return c.Enabled
	case engine.Disabled:
		return c.Disabled
	default:
		return c.Finished
	}
}
