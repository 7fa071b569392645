package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"xtimer/engine"
)

// groupLimit bounds what one commit takes, counted in changes: enough that the
// sync costs little beside the work, and few enough that nobody waits long. A change of a
// large definition counts as one for each changeBytes of it: a commit has 8 MiB of
// definitions, and one of any size, in memory.
const (
	groupLimit  = 4096
	changeBytes = 2 << 10
)

// weight is a change's, in changes.
func weight(c *engine.Change) int {
	n := c.Size
	if c.Timer != nil {
		n += c.Timer.Payload()
	}
	return 1 + n/changeBytes
}

// op is one thing to do in a commit, all of it or nothing.
type op struct {
	// judge decides it and adds its writes to the group; it runs in the
	// committer and must add nothing when it fails.
	judge  func(*group) error
	weight int // in changes, see weight
	err    error
	done   chan struct{} // closed by the committer after the sync; err stands then
}

// queue is where ops wait for the committer.
type queue struct {
	mu     sync.Mutex
	ops    []*op
	closed bool
	since  time.Time     // when the commit in work began; zero: none is
	wake   chan struct{} // holds one: something was queued, or it was closed
	dead   <-chan struct{}
}

func (q *queue) open(dead <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ops, q.closed, q.since = nil, false, time.Time{}
	q.wake, q.dead = make(chan struct{}, 1), dead
}

// put queues an op. It refuses when the commit in work takes longer than stall:
// a disk that is full or stuck must not collect waiters.
func (q *queue) put(o *op, stall time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.wake == nil {
		return errClosed
	}
	if !q.since.IsZero() && time.Since(q.since) > stall {
		return fmt.Errorf("the disk has not taken the last commit for %v: %w", time.Since(q.since).Round(time.Millisecond), engine.ErrUnavailable)
	}
	q.ops = append(q.ops, o)
	q.poke()
	return nil
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take fills a group with what waits, and waits when nothing does; nil when
// the queue is closed and empty.
func (q *queue) take(into []*op) []*op {
	for {
		q.mu.Lock()
		n, weight := 0, 0
		for n < len(q.ops) && (n == 0 || weight+q.ops[n].weight <= groupLimit) {
			weight += q.ops[n].weight
			n++
		}
		into = append(into[:0], q.ops[:n]...)
		q.ops = append(q.ops[:0], q.ops[n:]...)
		clear(q.ops[len(q.ops) : len(q.ops)+n])
		closed := q.closed
		q.since = time.Time{}
		if n > 0 {
			q.since = time.Now()
		}
		q.mu.Unlock()
		if n > 0 {
			return into
		}
		if closed {
			return nil
		}
		select {
		case <-q.wake:
		case <-q.dead:
			return nil
		}
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.poke()
}

// do queues an op and waits for its outcome. After an error that is not the
// op's own (the context's, ErrUnavailable), whether it was made is not known.
func (s *Store) do(ctx context.Context, weight int, judge func(*group) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &op{judge: judge, weight: weight, done: make(chan struct{})}
	if err := s.queue.put(o, s.cfg.StallAfter); err != nil {
		return err
	}
	stall := time.NewTimer(s.cfg.StallAfter)
	defer stall.Stop()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("gave up waiting for the disk, the outcome is not known: %w", context.Cause(ctx))
	case <-stall.C:
		return fmt.Errorf("the disk did not respond within %v, the outcome is not known: %w", s.cfg.StallAfter, engine.ErrUnavailable)
	case <-s.dead:
		return s.why
	}
}
