package httpapi

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// turns bounds how many requests of a kind are at work at once, of one app and of all.
// A place that is not free within wait is refused.
type turns struct {
	each, all int
	wait      time.Duration
	refusal   *problem

	total chan struct{}
	mu    sync.Mutex
	of    map[string]chan struct{} // guarded by mu; the apps of the tokens, so a few
}

func newTurns(each, all int, wait time.Duration, refusal *problem) *turns {
	return &turns{each: each, all: all, wait: wait, refusal: refusal, total: make(chan struct{}, all), of: make(map[string]chan struct{})}
}

// listTurns are those of lists. Reading and writing a page takes milliseconds of
// a core and megabytes: one app may have half the cores at it.
func listTurns() *turns {
	cores := runtime.GOMAXPROCS(0)
	return newTurns(max(1, cores/2), cores, time.Second, &problem{
		status: fasthttp.StatusServiceUnavailable, code: "too_many_lists", retry: 1,
		detail: "other requests are reading lists, and no turn became free within a second: retry later, or use fewer connections",
	})
}

// reading waits for a turn to make a page, and holds the memory that takes: one for which
// there is none is refused before it is read.
func (s *Server) reading(r *request) (leave func(), err error) {
	app := r.grant.app
	end, err := s.listing.take(r.ctx, app)
	if err != nil {
		return nil, err
	}
	if !s.answers.hold(app, pageWork, false) {
		end()
		return nil, errAnswersFull
	}
	return func() {
		s.answers.release(app, pageWork)
		end()
	}, nil
}

// verifyTurns are those of verifications, which read the whole history.
func verifyTurns() *turns {
	return newTurns(1, 2, 0, &problem{
		status: fasthttp.StatusTooManyRequests, code: "verifying", retry: 10,
		detail: "at most one verification of an app and two in all may run at a time: retry when one has ended",
	})
}

// take waits for a turn of an app; leave ends it.
func (t *turns) take(ctx context.Context, app string) (leave func(), err error) {
	t.mu.Lock()
	own := t.of[app]
	if own == nil {
		own = make(chan struct{}, t.each)
		t.of[app] = own
	}
	t.mu.Unlock()
	var late <-chan time.Time
	if t.wait > 0 {
		timer := time.NewTimer(t.wait)
		defer timer.Stop()
		late = timer.C
	}
	// The app's own first: those of one app that wait keep no other from its turn.
	if !enter(ctx, own, late) {
		return nil, t.refused(ctx)
	}
	if !enter(ctx, t.total, late) {
		<-own
		return nil, t.refused(ctx)
	}
	return func() {
		<-t.total
		<-own
	}, nil
}

func (t *turns) refused(ctx context.Context) error {
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
