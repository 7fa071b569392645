package simulator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

// link is the way from a node to something that nodes share. All instants are since the run
// began; machine.mu guards it.
type link struct {
	cut    time.Duration // until then nothing comes through
	silent bool          // … and nobody says so; else requests are refused at once
	slow   time.Duration // until then each way takes up to delay more
	delay  time.Duration
}

const (
	// unanswered is for how long a tier waits for an answer.
	unanswered = 2 * time.Second
	// usual is the most that one way takes when nothing ails the link.
	usualWay = 2 * time.Millisecond
)

// way is how long one way over links takes, and whether what goes there is lost.
func (f *fleet) way(links ...*link) (takes time.Duration, lost, silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.since()
	takes = time.Duration(f.rng.Int64N(int64(usualWay)))
	for _, k := range links {
		if now < k.slow {
			takes += time.Duration(f.rng.Int64N(int64(k.delay)))
		}
		if now < k.cut {
			lost, silent = true, silent || k.silent
		}
	}
	return takes, lost, silent
}

// wait waits, unless the context or the life ends before.
func (l *life) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-l.gone:
		return false
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

var errLost = fmt.Errorf("there is no answer: %w", engine.ErrUnavailable)

// cross has a life do something at the other end of links. An error of the way says nothing
// of whether it was done.
func (l *life) cross(ctx context.Context, do func() error, links ...*link) error {
	f := l.node.fleet
	l.node.gate(l)
	defer l.node.gate(l)
	if l.isOver() { // its loops must not spin at one instant
		time.Sleep(10 * time.Millisecond)
		return errDead
	}
	takes, lost, silent := f.way(links...)
	if !l.wait(ctx, takes) {
		return errLost
	}
	if lost {
		if silent {
			l.wait(ctx, unanswered)
		}
		return errLost
	}
	err := do()
	takes, lost, silent = f.way(links...)
	if !l.wait(ctx, takes) {
		return errLost
	}
	if lost {
		if silent {
			l.wait(ctx, unanswered)
		}
		return errLost
	}
	return err
}

// lostTells is one of how many results that lives tell each other get lost, or their answers.
const lostTells = 8

// tell has a life tell another node what became of a call.
func (l *life) tell(ctx context.Context, address string, task []byte) (answer []byte, err error) {
	f := l.node.fleet
	l.node.gate(l)
	defer l.node.gate(l)
	f.mu.Lock()
	i := slices.IndexFunc(f.nodes, func(n *node) bool { return n.name == address })
	to, draw := f.nodes[i].life, f.rng.IntN(2*lostTells)
	f.mu.Unlock()
	takes, _, _ := f.way()
	if !l.wait(ctx, takes) || to == nil || draw == 0 {
		return nil, errLost
	}
	to.node.gate(to)
	if to.isOver() || l.isOver() {
		return nil, errLost
	}
	if answer, err = to.e.Learn(ctx, task); draw == 1 {
		return nil, errLost
	}
	return answer, err
}
