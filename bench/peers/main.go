// Command peers measures xtimer beside other schedulers of Go programs, each
// set up as its documentation says, and writes one table and one plot.
//
// Every peer runs in a process of its own (host.go), so that its memory can be
// read and it can be killed; calls go over HTTP to the same receiver in this
// process. The way of a run:
//
//	peer.go       the rows: which peer with which handler; asynq.go, river.go … open them
//	host.go       the process around a peer
//	subject.go    that process, seen from here; xtimer.go is the real program
//	server.go     the Redis and PostgreSQL behind them
//	receiver.go   what all of them call
//	measure.go    the figures: scheduling, lateness, saturation, memory
//	kill.go       what kill -9 loses
//	machine.go    what it runs on, and what others take of it
//	table.go      the figures as Markdown; plot.go: the lateness as SVG
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sizes of a run, each an environment variable.
var (
	seconds = setting("PEERS_SECONDS", 3)          // of scheduling, and of the lateness
	rate    = setting("PEERS_RATE", 1000)          // fires a second for the lateness
	burst   = setting("PEERS_BURST", 30_000)       // due at one instant, for saturation
	waiting = settings("PEERS_WAITING", "1e5,1e6") // for the memory
	capped  = setting("PEERS_CAP", 15)             // seconds, that a step may take
	only    = envOr("PEERS_ONLY", "")              // rows whose names contain one of these, by commas
	results = envOr("PEERS_RESULTS", "../results") // where the table and the plot go
)

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

func setting(name string, def int) int {
	return settings(name, strconv.Itoa(def))[0]
}

func settings(name, def string) (ns []int) {
	for s := range strings.SplitSeq(envOr(name, def), ",") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f < 1 {
			fmt.Fprintf(os.Stderr, "peers: %s: %q is no number\n", name, s)
			os.Exit(1)
		}
		ns = append(ns, int(f))
	}
	return ns
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "host" {
		host(os.Args[2])
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "xtimer-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		<-signals
		os.RemoveAll(dir)
		os.Exit(130) // and the kernel ends what was started
	}()
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL is another user
		return err
	}
	if err := buildXtimer(dir); err != nil {
		return err
	}
	r, err := startReceiver()
	if err != nil {
		return err
	}

	// The kernel ends what was started when this process ends (Pdeathsig), for
	// which the thread that started it has to stay.
	runtime.LockOSThread()
	b := &bench{dir, r}
	started := time.Now()
	var rows []*figures
	var failed error // of a row; the others are worth having
	for _, s := range setups {
		if !chosen(s.name) {
			continue
		}
		at := time.Now()
		f, err := b.measure(s)
		if err != nil {
			f = &figures{setup: s, skipped: err.Error()}
			if !errors.Is(err, errNoServer) {
				failed = fmt.Errorf("%s: %w", s.name, err)
			}
		}
		rows = append(rows, f)
		fmt.Fprintf(os.Stderr, "%-24s %5.1f s %s\n", s.name, time.Since(at).Seconds(), f.skipped)
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	if err := plotLateness(filepath.Join(results, "peers-lateness.svg"), rows); err != nil {
		return fmt.Errorf("cannot draw the plot: %w", err)
	}
	table := tableOf(rows, started)
	fmt.Print(table)
	return errors.Join(failed, os.WriteFile(filepath.Join(results, "peers.md"), []byte(table), 0o644))
}

func chosen(name string) bool {
	for s := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}
