package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal is a context that ends with the first SIGINT, SIGTERM or SIGHUP. A second
// one ends the process at once, with the status that a shell gives to a process
// that died of that signal: 130, 143 or 129. A SIGHUP that nohup ignores stays ignored.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}

	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		status := 128 + int((<-signals).(syscall.Signal))
		lastWords("xtimer: second signal: exiting at once; calls in flight are repeated after the next start")
		os.Exit(status)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}
