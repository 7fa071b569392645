package main

import (
	"io"
	"log/slog"
	"os"
)

// newLog writes text for people on a terminal and JSON for programs elsewhere.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if onTerminal(w) {
		return slog.New(slog.NewTextHandler(w, o))
	}
	o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String()) // not a number of ns
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// onTerminal tells whether a file is a terminal, with people at it. /dev/null is a
// device as well.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	i, err := f.Stat()
	if err != nil || i.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(i, null)
}
