// Package process is what the process does as a whole: whether it starts, serves or ends,
// its stages, and what runs in its background.
package process

import (
	"context"
	"sync"
	"sync/atomic"

	"xtimer/engine"
)

// State is whether the process starts, serves or ends, in this order.
type State struct {
	serves     atomic.Bool
	startsWith atomic.Pointer[string]
	failed     chan string // the first stage that failed

	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	over  bool // nothing begins in the background any more
	works sync.WaitGroup
}

// NewState is that of a process that starts.
func NewState() *State {
	s := &State{failed: make(chan string, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// StartsWith notes what the start is busy with, as the end of "the server is starting: ".
func (s *State) StartsWith(what string) { s.startsWith.Store(&what) }

// Serve notes that the start is over.
func (s *State) Serve() { s.serves.Store(true) }

// End ends Context. The process serves no more.
func (s *State) End() {
	s.cancel() // first: a caller that finds it not serving asks whether it ends
	s.serves.Store(false)
}

// IsServing reports whether the process serves.
func (s *State) IsServing() bool { return s.serves.Load() }

// Context ends with End.
func (s *State) Context() context.Context { return s.ctx }

// Refusal is nil while the process serves; else it says why requests are refused.
func (s *State) Refusal() error {
	switch {
	case s.IsServing():
		return nil
	case s.ctx.Err() != nil:
		return &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: "the server is stopping: it accepts no new work, and exits when the calls in flight have ended"}
	}
	detail := "the server is starting"
	if with := s.startsWith.Load(); with != nil {
		detail += ": " + *with
	}
	return &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: detail}
}

// Go begins f in the background, unless Wait was called: what a request or a load leaves
// to be ended later, as a commit in doubt. f gets Context.
func (s *State) Go(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.works.Go(func() { f(s.ctx) })
	}
}

// Wait lets nothing more begin in the background, and waits for what has. What is not
// begun stays as it is for the next start.
func (s *State) Wait() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.works.Wait()
}
