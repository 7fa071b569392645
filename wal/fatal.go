package wal

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// exitCode tells a supervisor that the disk is to blame.
const exitCode = 70

// lastFatalName is the file with the last words of a process that gave up.
const lastFatalName = "last_fatal"

// storeLogger is Pebble's logger.
type storeLogger struct{ l *Log }

func (s storeLogger) Infof(format string, args ...any) {
	if s.l.log.Enabled(context.Background(), slog.LevelDebug) {
		s.l.log.Debug(fmt.Sprintf(format, args...))
	}
}

func (s storeLogger) Errorf(format string, args ...any) {
	s.l.log.Error(fmt.Sprintf(format, args...), "dir", s.l.cfg.Dir)
}

// Fatalf is called when a sync or a write of the log or the manifest fails.
// What is on the disk is unknown then and asking again may lie, so the process
// ends: a start finds out what is there.
func (s storeLogger) Fatalf(format string, args ...any) {
	s.l.die(format, args...)
}

// die never returns: one line on stderr, the same in the file last_fatal, exit.
func (l *Log) die(format string, args ...any) {
	l.killed.Do(func() {
		msg := fmt.Sprintf(format, args...)
		l.broke(fmt.Errorf("journal %s: %s", l.cfg.Dir, msg))
		var line lineWriter
		slog.New(slog.NewJSONHandler(&line, nil)).Error("xtimer ends itself: its disk cannot be trusted",
			"part", "wal", "dir", l.cfg.Dir, "error", msg, "exit", exitCode)
		_, _ = l.cfg.stderr.Write(line)
		// The disk may be what hangs, so the file gets a second and no more.
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			_ = writeFile(l.fs, l.fs.PathJoin(l.cfg.Dir, lastFatalName), line)
		}()
		timeout := time.NewTimer(time.Second)
		defer timeout.Stop()
		select {
		case <-wrote:
		case <-timeout.C:
		}
		l.cfg.Exit(exitCode)
	})
	select {}
}

type lineWriter []byte

func (w *lineWriter) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}
