package main

import (
	"context"
	"log/slog"
	"time"
)

// clockGate has a start wait until the kernel's clock is synchronised, when a wrong clock
// may do harm: what fires by it cannot be taken back.
//
//	synchronised, or nobody can tell        start
//	the machine has run since the last due  start: its clock is what it was then
//	else                                    wait, most at most, then start with a warning
//
// So a restart never waits, and a machine without NTP waits once after it booted.
type clockGate struct {
	most         time.Duration // by the clock since the boot, which nobody sets; 0: never wait
	synchronised func() (bool, error)
	sinceBoot    func() (time.Duration, error)
	now          func() time.Time
	sleep        func(context.Context)
	log          *slog.Logger
}

func newClockGate(most time.Duration, log *slog.Logger) *clockGate {
	sleep := func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return &clockGate{most, clockSynchronised, sinceBoot, time.Now, sleep, log}
}

// await returns when the start may go on. last is the last due that was finished here.
func (g *clockGate) await(ctx context.Context, last time.Time) {
	up, err := g.sinceBoot()
	if g.most <= 0 || err != nil || g.settled() {
		return
	}
	now := g.now()
	booted, behind := now.Add(-up), last.Sub(now)
	if booted.Before(last) && behind < time.Minute {
		return
	}
	g.log.Warn("the clock is not synchronised yet: waiting, because calls that follow a wrong clock cannot be taken back",
		"at_most", g.most, "clock", now.UTC(), "last_due", last.UTC())
	most := g.most
	g.most = 0 // once a start, however often its tiers fail
	for begun := up; up-begun < most && ctx.Err() == nil; {
		g.sleep(ctx)
		if g.settled() {
			g.log.Info("the clock is synchronised", "clock", g.now().UTC())
			return
		}
		if up, err = g.sinceBoot(); err != nil {
			return
		}
	}
	if ctx.Err() == nil {
		g.log.Warn("starting although the clock is not synchronised: dues follow this clock; --clock-wait 0 turns the wait off", "clock", g.now().UTC())
	}
}

// settled reports whether the clock is synchronised, or nobody can tell.
func (g *clockGate) settled() bool {
	ok, err := g.synchronised()
	return ok || err != nil
}
