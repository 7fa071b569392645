package main

import (
	"io"
	"os"
	"slices"
	"time"
)

// The colours that a terminal shows; nothing else than a terminal gets them.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// painter colours words for a terminal, and leaves them alone for all else and
// for those who set NO_COLOR.
type painter bool

func newPainter(w io.Writer) painter {
	return painter(onTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p painter) paint(colour, s string) string {
	if !p || colour == plain {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// spread of measurements.
type spread struct{ p50, p99, max time.Duration }

// spreadOf sorts the measurements and reads it off.
func spreadOf(ds []time.Duration) spread {
	if len(ds) == 0 {
		return spread{}
	}
	slices.Sort(ds)
	at := func(q float64) time.Duration { return ds[min(int(q*float64(len(ds))), len(ds)-1)] }
	return spread{at(0.50), at(0.99), ds[len(ds)-1]}
}
