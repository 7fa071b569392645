package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// The times of Ownership. Who takes the timers over waits for longer than a proof holds
// (tier/mysql/shard.go).
const (
	// askEvery is the pace of the questions.
	askEvery = 400 * time.Millisecond
	// askPatience bounds a question: with the pace it is no more than proofHolds, so that
	// calls do not wait while the tier is away.
	askPatience = 800 * time.Millisecond
	// proofHolds is how long an answer holds.
	proofHolds = 1200 * time.Millisecond
)

// Ownership is whether the timers are this process's, where another process may take
// them over. Run asks the cold tier again and again, and a call begins only while an
// answer holds: so a process that was stopped, or whose machine was, asks before it
// calls again, and calls no more if it was taken over meanwhile.
//
//	the timers are this process's    holds for proofHolds from the start of the question
//	they are another's               holds for ever: no call begins any more
//	the tier could not be asked      calls go on for proofHolds from the end of the question
//
// A question that took longer than proofHolds and failed says nothing: the process may
// have been stopped in the middle of it.
//
// The life of a node among several has a lease instead: its beats are the questions, and
// without an answer no call begins. See OfLife.
//
// A nil Ownership is that of a tier that no other process can open: it always holds.
type Ownership struct {
	fresh func() bool // reports whether what was answered still holds

	ask   func(ctx context.Context) error
	wall  func() time.Time
	began time.Time

	from   atomic.Pointer[reading] // calls may begin for proofHolds from then on
	proved atomic.Pointer[reading] // start of the last question that was answered with yes
	over   atomic.Bool
	hurry  chan struct{} // cap 1: somebody waits

	mu       sync.Mutex
	answered chan struct{} // closed with the next answer; for ever once it is over
}

// reading is an instant of two clocks. The monotonic one stands still while a machine is
// suspended, the wall clock may be set; of a time that has passed the greater counts.
type reading struct{ monotonic, wall time.Duration }

// NewOwnership is of a tier that answers ask with nil, with engine.ErrFenced when the
// timers are another's, or with another error when it cannot tell.
func NewOwnership(ask func(ctx context.Context) error, wall func() time.Time) *Ownership {
	o := &Ownership{ask: ask, wall: wall, began: time.Now(), hurry: make(chan struct{}, 1), answered: make(chan struct{})}
	first := o.read()
	o.proved.Store(&first)
	o.fresh = o.isFresh
	return o
}

// OfLife returns the Ownership of one life of a node. fresh reports whether the lease of the
// life still holds. The caller calls Answered whenever the table acknowledges the lease, and
// End when the life is over. Run is not called.
func OfLife(fresh func() bool) *Ownership {
	return &Ownership{fresh: fresh, hurry: make(chan struct{}, 1), answered: make(chan struct{})}
}

func (o *Ownership) read() reading {
	return reading{time.Since(o.began), time.Duration(o.wall().UnixNano())}
}

// since is how much time has passed since a reading.
func (o *Ownership) since(r *reading) time.Duration {
	now := o.read()
	return max(now.monotonic-r.monotonic, now.wall-r.wall)
}

// Holds reports whether a call may begin now.
func (o *Ownership) Holds() bool { return o == nil || o.fresh() && !o.over.Load() }

func (o *Ownership) isFresh() bool {
	from := o.from.Load()
	return from != nil && o.since(from) <= proofHolds
}

// Await waits until Holds, and reports whether it does: false when no call may begin any
// more.
func (o *Ownership) Await() bool {
	for !o.Holds() {
		o.mu.Lock()
		answered := o.answered
		o.mu.Unlock()
		switch {
		case o.over.Load():
			return false
		case o.Holds(): // answered before the channel was read
			return true
		}
		select {
		case o.hurry <- struct{}{}:
		default:
		}
		<-answered
	}
	return true
}

// Age is how long ago the start of the last question was that was answered with yes, in
// seconds.
func (o *Ownership) Age() float64 { return o.since(o.proved.Load()).Seconds() }

// End lets no call begin any more.
func (o *Ownership) End() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over.Swap(true) {
		close(o.answered)
	}
}

// IsOver reports whether no call may begin any more.
func (o *Ownership) IsOver() bool { return o != nil && o.over.Load() }

// Run asks until ctx ends, or the timers are another's. Then no call begins any more.
func (o *Ownership) Run(ctx context.Context) error {
	if o == nil {
		return nil
	}
	defer o.End()
	for {
		asked := o.read()
		limited, cancel := context.WithTimeout(ctx, askPatience)
		err := o.ask(limited)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, engine.ErrFenced) {
			return TakenOver(err)
		}
		o.answer(asked, err)
		if !o.rest(ctx, askEvery-o.since(&asked)) {
			return nil
		}
	}
}

// answer notes what came of a question.
func (o *Ownership) answer(asked reading, err error) {
	switch {
	case err == nil:
		o.proved.Store(&asked)
		o.from.Store(&asked)
	case o.since(&asked) <= proofHolds:
		now := o.read()
		o.from.Store(&now)
	}
	o.Answered()
}

// Answered wakes those who wait for an answer.
func (o *Ownership) Answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over.Load() {
		close(o.answered)
		o.answered = make(chan struct{})
	}
}

// rest waits before the next question, less when somebody waits for its answer. It
// reports false when ctx has ended.
func (o *Ownership) rest(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-o.hurry:
		case <-time.After(d):
		}
	}
	return ctx.Err() == nil
}

// TakenOver is the error of a process that ends because the timers are not its own any more.
func TakenOver(err error) error {
	return fmt.Errorf("this server stops, since nothing that it writes is stored any more: %w", err)
}
