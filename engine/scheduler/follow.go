package scheduler

import (
	"context"
	"sync"
	"sync/atomic"

	"xtimer/engine"
)

// followers are those who watch tasks end. Telling them never waits.
type followers struct {
	count atomic.Int32 // so that nobody watching costs one load
	mu    sync.Mutex
	list  map[*follower]struct{}
	apps  watchedApps
}

type follower struct {
	filter  engine.TaskFilter
	tasks   chan *engine.Task
	dropped atomic.Int64
}

// followBuffer is how many tasks a follower may be behind: with answers of 1 KiB in
// them they take 2 MiB.
const followBuffer = 1024

// Follow streams tasks as they end, with their last attempts, until ctx ends; a reader that is too slow
// misses some, and dropped counts them.
func (e *Scheduler) Follow(ctx context.Context, f engine.TaskFilter) (tasks <-chan *engine.Task, dropped func() int64) {
	w := &follower{filter: f, tasks: make(chan *engine.Task, followBuffer)}
	fs := &e.followers
	fs.mu.Lock()
	fs.list[w] = struct{}{}
	fs.count.Add(1)
	fs.mu.Unlock()
	context.AfterFunc(ctx, func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(fs.list, w)
		fs.count.Add(-1)
		close(w.tasks)
	})
	return w.tasks, w.dropped.Load
}

func (fs *followers) tell(t *engine.Task) {
	fs.apps.ended(t)
	if fs.count.Load() == 0 {
		return
	}
	c := listed(t)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for w := range fs.list {
		if !w.filter.Matches(c) {
			continue
		}
		select {
		case w.tasks <- c:
		default:
			w.dropped.Add(1)
		}
	}
}
