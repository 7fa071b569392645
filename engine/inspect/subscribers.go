package inspect

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// History is what subscribers read again: tasks in memory and in the cold tier.
type History interface {
	// Task returns one task, open or finished, or engine.ErrNotFound.
	Task(ctx context.Context, k engine.Key) (*engine.Task, error)
	// EndedInMemory gives the tasks in memory that have ended. give is called under a
	// lock: it must be short and keep nothing.
	EndedInMemory(give func(*engine.Task))
	// Stored lists records of history, newest first, as engine.Cold.Tasks does.
	Stored(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error)
	// LeftOut lists the minutes of [from, to) whose history is incomplete.
	LeftOut(ctx context.Context, from, to int64) ([]int64, error)
	// Now is the instant (Unix ms), and KeptSince that from which on history is kept.
	Now() int64
	KeptSince() int64
}

// linger is how long the log is kept when the last subscriber has gone.
const linger = 10 * time.Minute

// Subscribers are those who watch tasks end. Telling them never waits for one.
//
// While there are any, and for some minutes after, the log has what ended, so that a
// subscriber that comes back goes on where it was. With nobody there, a task that ends
// costs one load.
type Subscribers struct {
	history History
	seed    maphash.Seed
	keeps   atomic.Bool // the log is kept

	mu     sync.Mutex // guards all below
	log    log
	list   map[*Subscription]struct{}
	expiry *time.Timer // of the log; nil while there are subscribers

	replays chan struct{} // one at a time reads history
}

// NewSubscribers makes subscribers that read from a history.
func NewSubscribers(h History) *Subscribers {
	return &Subscribers{history: h, seed: maphash.MakeSeed(), list: map[*Subscription]struct{}{}, replays: make(chan struct{}, 1)}
}

// Tell tells that a task has ended. Calls for one task must not overlap, and History
// must have the task as it is from before the call on.
func (s *Subscribers) Tell(t *engine.Task) {
	if !s.keeps.Load() {
		return
	}
	x := ending{EventID: EventID{t.Ended, t.Key}, app: s.hash(t.App), status: t.Status, origin: t.Origin}
	x.task = Listed(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.keeps.Load() {
		return
	}
	s.log.add(x)
	for w := range s.list {
		w.poke()
	}
}

func (s *Subscribers) hash(app string) uint64 { return maphash.String(s.seed, app) }

// Subscribe gives the tasks that f selects, as they end, until ctx ends: those that end
// from now on, or, with the ID of the last event that a reader has, all since that one.
func (s *Subscribers) Subscribe(ctx context.Context, f engine.TaskFilter, last *EventID) *Subscription {
	w := &Subscription{s: s, filter: f, app: s.hash(f.App), wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.list[w] = struct{}{}
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	if !s.keeps.Load() {
		s.keeps.Store(true)
		s.log = log{began: s.history.Now() + 1}
	}
	w.next, w.passed = s.log.next, EventID{Ended: s.history.Now()}
	if s.log.next > s.log.first {
		w.passed = w.position(s.log.at(s.log.next - 1))
	}
	s.mu.Unlock()
	if last != nil {
		w.resume(*last)
	}
	context.AfterFunc(ctx, func() { s.leave(w) })
	return w
}

func (s *Subscribers) leave(w *Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.list, w); len(s.list) > 0 {
		return
	}
	s.expiry = time.AfterFunc(linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.list) == 0 {
			s.keeps.Store(false)
			s.log = log{}
		}
	})
}
