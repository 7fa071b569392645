package access

import (
	"context"
	"sync"
	"time"

	"xtimer/httpapi/problem"
)

// Turns bounds how many requests of a kind are at work at once, of one app and of all.
// A place that is not free within wait is refused.
type Turns struct {
	each, all int
	wait      time.Duration
	refusal   *problem.Problem

	total chan struct{}
	mu    sync.Mutex
	of    map[string]*appTurns // guarded by mu; the apps that have or want a turn
}

// appTurns are the turns of an app.
type appTurns struct {
	places chan struct{}
	users  int // who has a turn or waits for one; Turns.mu guards it
}

// NewTurns are of each app and of all; refusal answers whom none became free for.
func NewTurns(each, all int, wait time.Duration, refusal *problem.Problem) *Turns {
	return &Turns{each: each, all: all, wait: wait, refusal: refusal, total: make(chan struct{}, all), of: make(map[string]*appTurns)}
}

// Take waits for a turn of an app; leave ends it.
func (t *Turns) Take(ctx context.Context, app string) (leave func(), err error) {
	own := t.use(app)
	var late <-chan time.Time
	if t.wait > 0 {
		timer := time.NewTimer(t.wait)
		defer timer.Stop()
		late = timer.C
	}
	// The app's own first: those of one app that wait keep no other from its turn.
	if !enter(ctx, own.places, late) {
		t.unuse(app, own)
		return nil, t.refused(ctx)
	}
	if !enter(ctx, t.total, late) {
		<-own.places
		t.unuse(app, own)
		return nil, t.refused(ctx)
	}
	return func() {
		<-t.total
		<-own.places
		t.unuse(app, own)
	}, nil
}

// use finds or makes the turns of an app, which unuse deletes after the last user: the caller of a request gives
// the name of the app, and need not have told the truth.
func (t *Turns) use(app string) *appTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of[app]
	if own == nil {
		own = &appTurns{places: make(chan struct{}, t.each)}
		t.of[app] = own
	}
	own.users++
	return own
}

func (t *Turns) unuse(app string, own *appTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.of, app)
	}
}

func (t *Turns) refused(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.refusal
}

// enter takes a place, or waits for one until late; without late it does not wait.
func enter(ctx context.Context, places chan struct{}, late <-chan time.Time) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	if late == nil {
		return false
	}
	select {
	case places <- struct{}{}:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}
