package scheduler

import (
	"context"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/resident"
)

// Subscribers are those who watch tasks end.
func (e *Scheduler) Subscribers() *inspect.Subscribers { return e.subscribers }

// tell tells everybody that a task has ended.
func (e *Scheduler) tell(t *engine.Task) {
	e.apps.Figures.Ended(t)
	e.subscribers.Tell(t)
}

// shelf is what subscribers read again.
type shelf struct{ e *Scheduler }

func (s shelf) Task(ctx context.Context, k engine.Key) (*engine.Task, error) { return s.e.Task(ctx, k) }

func (s shelf) EndedInMemory(give func(*engine.Task)) {
	s.e.memory.EachTask(func(t *resident.Task) {
		if t.IsOver() {
			give(&t.Task)
		}
	})
}

func (s shelf) Stored(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
	return s.e.cfg.Cold.Tasks(ctx, f, before, limit)
}

func (s shelf) LeftOut(ctx context.Context, from, to int64) ([]int64, error) {
	return s.e.cfg.Cold.LeftOut(ctx, from, to)
}

func (s shelf) Now() int64       { return s.e.now() }
func (s shelf) KeptSince() int64 { return s.e.now() - s.e.cfg.HistoryRetention.Milliseconds() }
