package alert

import (
	"context"
	"time"

	"xtimer/engine"
)

// recent is what was judged lately, by task: the last mostRecent at least.
type recent[T any] struct{ now, before map[engine.Key]T }

const mostRecent = 200_000

func (r *recent[T]) of(k engine.Key) T {
	if v, is := r.now[k]; is {
		return v
	}
	return r.before[k]
}

func (r *recent[T]) put(k engine.Key, v T) {
	if len(r.now) >= mostRecent {
		r.before, r.now = r.now, nil
	}
	if r.now == nil {
		r.now = map[engine.Key]T{}
	}
	r.now[k] = v
}

// lookBack judges the failures that ended from an instant to another, but not those that were
// judged already. History is in the order of dues, and a task may end long after its due.
func (a *Alerter) lookBack(ctx context.Context, from, to int64) {
	a.lookBackFrom(ctx, from, to, furthestDue)
}

// lookBackFrom looks only at the failures whose due is at most so long before from. It
// reports whether all could be read.
func (a *Alerter) lookBackFrom(ctx context.Context, from, to int64, furthest time.Duration) bool {
	f := engine.TaskFilter{From: from - furthest.Milliseconds(), To: to + 1, Statuses: []engine.TaskStatus{engine.Failed, engine.Dead, engine.Unknown, engine.Missed}}
	for before := (engine.Key{}); ; {
		page, next, err := a.cfg.Cold.Tasks(ctx, f, before, 1000)
		if err != nil {
			if ctx.Err() == nil {
				a.cfg.Log.Error("cannot read the failures that alerts are to see", "error", err)
			}
			return false
		}
		var events []event
		for _, t := range page {
			if t.Ended >= from && t.Ended <= to {
				events = append(events, eventOf(t))
			}
		}
		a.judgeAll(ctx, events)
		if before = next; next == (engine.Key{}) {
			return true
		}
	}
}
