package main

import (
	"io"
	"log/slog"

	"xtimer/cmd/xtimer/terminal"
)

// newLog writes text for people on a terminal and JSON for programs elsewhere.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if terminal.Is(w) {
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
