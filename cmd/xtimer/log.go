package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"xtimer/cmd/xtimer/terminal"
)

// newLog writes text for people on a terminal and JSON for programs elsewhere. It never
// waits long for its reader.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	handler := func(to io.Writer) slog.Handler {
		o := &slog.HandlerOptions{Level: level}
		if terminal.Is(w) {
			return slog.NewTextHandler(to, o)
		}
		o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				a.Value = slog.StringValue(a.Value.Duration().String()) // not a number of ns
			}
			return a
		}
		return slog.NewJSONHandler(to, o)
	}
	lines := &lineWriter{w: w, busy: make(chan struct{}, 1)}
	lines.missing = func(n int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn("lines of this log are missing, because nobody read it", "lines", n)
		return line.Bytes()
	}
	return slog.New(handler(lines))
}

// lineWait is how long a line waits for the reader of the log.
const lineWait = time.Second

// lineWriter writes lines to w, whose reader may stop: a pipe that nobody reads, a
// terminal that is held. A line that w does not take within lineWait is written when w
// takes it; lines that come until then are dropped, and their number follows. Without
// this, whatever has a line for the log would stop with the reader, up to the whole server.
type lineWriter struct {
	w       io.Writer
	missing func(n int) []byte // the line that says that n lines were dropped
	busy    chan struct{}      // full while a line is written

	mu      sync.Mutex // guards dropped
	dropped int
}

// Write writes a line.
func (l *lineWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.busy <- struct{}{}:
	default:
		l.dropped++
		return len(line), nil
	}
	var text []byte // of its own: the caller uses line again
	if l.dropped > 0 {
		text = l.missing(l.dropped)
		l.dropped = 0
	}
	text = append(text, line...)
	written := make(chan error, 1)
	go func() {
		_, err := l.w.Write(text)
		<-l.busy
		written <- err
	}()
	late := time.NewTimer(lineWait)
	defer late.Stop()
	select {
	case err := <-written:
		return len(line), err
	case <-late.C:
		return len(line), nil
	}
}

// lastWords writes a line to stderr before the process ends, without waiting long for
// a reader.
func lastWords(line string) {
	l := &lineWriter{w: os.Stderr, busy: make(chan struct{}, 1)}
	_, _ = l.Write([]byte(line + "\n"))
}
