package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"xtimer/cmd/xtimer/span"
	"xtimer/wheel"
)

// naps is how many sleeps are measured, each of a few ms.
const naps = 200

// timers measures how late this machine wakes up: by the runtime's sleep, and by
// the wheel's exact one, which is what calls wait for.
func (r *report) timers(ctx context.Context) (exact spread, err error) {
	row := func(what string, s spread) {
		r.line("timers", what, "late by p50 %s  p99 %s  max %s", span.Millis(s.p50), span.Millis(s.p99), span.Millis(s.max))
	}
	row("plain sleep", plainSleep(ctx))
	if exact, err = exactSleep(ctx); err != nil {
		return exact, err
	}
	row("exact sleep", exact)
	if exact.p99 > 5*time.Millisecond {
		r.worthf("timers wake up %s late at p99: the machine is busy, or its processors are shared", span.Millis(exact.p99))
	}
	return exact, nil
}

// nap is a length of sleep that keeps no step with the runtime's milliseconds.
func nap() time.Duration { return time.Duration(1_000+rand.IntN(6_000)) * time.Microsecond }

func plainSleep(ctx context.Context) spread {
	var late []time.Duration
	for range naps {
		if ctx.Err() != nil {
			break
		}
		d := nap()
		start := time.Now()
		time.Sleep(d)
		late = append(late, time.Since(start)-d)
	}
	return spreadOf(late)
}

// exactSleep lets a wheel of its own fire one value after the other.
func exactSleep(ctx context.Context) (spread, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	fired := make(chan time.Duration)
	w := wheel.New(wheel.Config{}, func(due int64, _ []struct{}) {
		late := time.Since(time.UnixMilli(due))
		select {
		case fired <- late:
		case <-ctx.Done():
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	var late []time.Duration
	for range naps {
		w.Add(time.Now().Add(nap()).UnixMilli()+1, struct{}{})
		select {
		case d := <-fired:
			late = append(late, d)
		case <-ctx.Done():
		}
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return spread{}, fmt.Errorf("the timing wheel does not run: %w", err)
	}
	return spreadOf(late), nil
}
