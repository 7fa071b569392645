package mysql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xtimer/engine"
)

// op is a caller's changes, at most what one statement holds, and their
// outcomes.
type op struct {
	changes []prepared
	bytes   int              // of the definitions to be written
	stands  int              // of those that stand, which are read and kept as versions
	out     []engine.Applied // a committer's until done is closed, as err is
	err     error            // of the whole
	done    chan struct{}
}

func (o *op) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// standingBytes is how large the definitions are that one commit replaces, one of any size
// at least: they have to come through a slow link in the time for one statement.
const standingBytes = 8 << 20

// queue is where ops wait for a committer.
type queue struct {
	mu     sync.Mutex
	more   *sync.Cond
	ops    []*op
	closed bool
}

var errClosed = errors.New("the store is closed")

func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.more, q.ops, q.closed = sync.NewCond(&q.mu), nil, false
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.more != nil {
		q.closed = true
		q.more.Broadcast()
	}
}

func (q *queue) put(o *op) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.more == nil || q.closed {
		return errClosed
	}
	q.ops = append(q.ops, o)
	q.more.Signal()
	return nil
}

// withdraw takes an op back; false when a committer has it.
func (q *queue) withdraw(o *op) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.ops {
		if q.ops[i] == o {
			q.ops = append(q.ops[:i], q.ops[i+1:]...)
			return true
		}
	}
	return false
}

// take waits for ops and returns what one commit holds of them, in the order of
// arrival; nil when the queue is closed and empty.
func (q *queue) take() []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ops) == 0 {
		if q.closed {
			return nil
		}
		q.more.Wait()
	}
	n, rows, bytes, stands := 0, 0, 0, 0
	for n < len(q.ops) {
		o := q.ops[n]
		rows, bytes, stands = rows+len(o.changes), bytes+o.bytes, stands+o.stands
		if n > 0 && (rows > statementRows || bytes > statementBytes || stands > standingBytes) {
			break
		}
		n++
	}
	ops := append([]*op(nil), q.ops[:n]...)
	q.ops = append(q.ops[:0], q.ops[n:]...)
	clear(q.ops[len(q.ops) : len(q.ops)+n])
	return ops
}

// Apply makes one change of one timer.
func (s *Store) Apply(ctx context.Context, c *engine.Change) (engine.Applied, error) {
	a := s.ApplyAll(ctx, []*engine.Change{c})[0]
	return a, a.Err
}

// ApplyAll makes many independent changes, in order, in as few commits as
// statements of them fit into. When the database is away for one of these, the
// next are not tried: their caller would wait as long once more for each.
func (s *Store) ApplyAll(ctx context.Context, cs []*engine.Change) []engine.Applied {
	out := make([]engine.Applied, 0, len(cs))
	var err error
	for len(cs) > 0 {
		o := prepare(cs)
		cs = cs[len(o.changes):]
		if !errors.Is(err, engine.ErrUnavailable) {
			err = s.do(ctx, o)
		}
		if err == nil {
			out = append(out, o.out...)
			continue
		}
		for range o.changes {
			out = append(out, engine.Applied{Err: err})
		}
	}
	return out
}

// do queues an op and waits for its outcome. One that a committer has is waited
// for even when ctx ends, so that nobody has to guess what became of it; but not
// longer than a caller waits for an answer. Then it is in doubt, as a commit
// without an answer is: the committer goes on, for a slow database may yet make it.
func (s *Store) do(ctx context.Context, o *op) error {
	err := ctx.Err()
	if err == nil {
		err = s.queue.put(o)
	}
	if err != nil {
		return err
	}
	late := time.NewTimer(s.answer)
	defer late.Stop()
	for ended := ctx.Done(); ; ended = nil {
		select {
		case <-o.done:
			return o.err
		case <-ended:
			if s.queue.withdraw(o) {
				return context.Cause(ctx)
			}
		case <-late.C:
			if s.queue.withdraw(o) {
				return fmt.Errorf("cannot store the changes: the database has not taken those before them for %v: %w: %w", s.answer, errAway, engine.ErrUnavailable)
			}
			s.doubts.leave(o)
			return fmt.Errorf("cannot store the changes: the database has not answered for %v: %w: %w", s.answer, errAway, engine.ErrUnavailable)
		}
	}
}

// commitLoop is one committer: it makes groups of what waits.
func (s *Store) commitLoop(slot int64) {
	for ops := s.queue.take(); ops != nil; ops = s.queue.take() {
		g := newGroup(s, ops, slot)
		err := s.transact(context.Background(), "store the changes", g.commit)
		if errors.As(err, new(*engine.Damage)) && (len(ops) > 1 || len(ops[0].changes) > 1) {
			s.eachAlone(ops, slot)
			continue
		}
		for i, o := range ops {
			if o.err = err; err == nil {
				o.out = g.out[i]
			}
			close(o.done)
		}
	}
}

// eachAlone makes changes one by one, after a damaged row has failed their group: the row fails only the changes that
// need it.
func (s *Store) eachAlone(ops []*op, slot int64) {
	for _, o := range ops {
		for i := range o.changes {
			one := &op{changes: o.changes[i : i+1]}
			g := newGroup(s, []*op{one}, slot)
			if err := s.transact(context.Background(), "store the changes", g.commit); err != nil {
				o.out[i] = engine.Applied{Err: err}
			} else {
				o.out[i] = g.out[0][0]
			}
		}
		close(o.done)
	}
}
