package process

import (
	"context"
	"fmt"
	"time"
)

// Stage is a goroutine of the process with a context of its own.
type Stage struct {
	cancel context.CancelFunc
	err    error
	ended  chan struct{}
}

// Stage begins run. If run fails, Failed gets the name.
func (s *State) Stage(name string, run func(context.Context) error) *Stage {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Stage{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(g.ended)
		if err := run(ctx); err != nil {
			g.err = fmt.Errorf("%s: %w", name, err)
			select {
			case s.failed <- name:
			default:
			}
		}
	}()
	return g
}

// Failed gets the name of the first stage that failed.
func (s *State) Failed() <-chan string { return s.failed }

// Stop ends the context of a stage, waits for its end, and returns its error.
func (g *Stage) Stop() error {
	g.cancel()
	<-g.ended
	return g.err
}

// Sleep waits, or less when ctx ends.
//
// Here, as everywhere that tests run in a bubble of testing/synctest, a channel of
// a timer is waited for from before its time on, never looked at when it has come
// (no ticker beside other waits, no wait of 0): Go 1.26 then runs the timer in the
// goroutine that looks, with the one race context of its bubble, and when another
// does the same the race detector dies.
func Sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
