package scheduler

import (
	"context"
	"time"

	"xtimer/engine/fair"
)

const (
	placesEvery = time.Second
	// placesStep is the part of MaxCalls by which the bound of calls in flight rises
	// again, and which is always allowed.
	placesStep = 16
)

// followMemory lowers the bound of calls in flight while memory is full: each second
// to three quarters of those that there are. A call takes some 30 KB, and calls that
// wait for slow targets are what can be had back soonest.
func (e *Scheduler) followMemory(ctx context.Context) error {
	least := max(e.cfg.MaxCalls/placesStep, 1)
	for places := e.cfg.MaxCalls; ctx.Err() == nil; sleep(ctx, placesEvery) {
		was := places
		if _, inFlight := e.queue.Load(); e.cfg.MemoryFull(0) {
			places = max(least, min(places, inFlight)*3/4)
		} else {
			places = min(places+least, e.cfg.MaxCalls)
		}
		if places != was {
			e.queue.SetPlaces(places)
		}
	}
	return nil
}

// Calls describes the calls in flight, and at most n of the targets whose limit makes
// tasks wait.
func (e *Scheduler) Calls(n int) fair.Stats { return e.queue.Stats(n) }
