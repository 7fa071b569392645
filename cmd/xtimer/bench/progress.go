package bench

import (
	"fmt"
	"io"
	"time"

	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
)

// progress is the line that tells on a terminal how far a run is. The terminal cuts
// it at its width instead of wrapping it: only one row can be wiped again.
type progress struct{ end, ended chan struct{} }

// showProgress shows it four times a second, where people read it.
func showProgress(out io.Writer, l *benchLoad, r *benchReceiver) *progress {
	p := &progress{make(chan struct{}), make(chan struct{})}
	if !terminal.Is(out) {
		close(p.ended)
		return p
	}
	go p.run(out, l, r)
	return p
}

func (p *progress) run(out io.Writer, l *benchLoad, r *benchReceiver) {
	defer close(p.ended)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	before, at := int64(0), time.Now()
	for {
		select {
		case <-p.end:
			fmt.Fprint(out, "\r\x1b[K")
			return
		case now := <-tick.C:
			n := r.firsts.Load()
			rate := float64(n-before) / now.Sub(at).Seconds()
			before, at = n, now
			when := fmt.Sprintf("%5.1f s", now.Sub(r.start).Seconds())
			fmt.Fprintf(out, "\r\x1b[K\x1b[?7l  %s  made %d of %d   arrived %d  (%.0f/s, at most %s late)   early %d   repeats %d\x1b[?7h",
				when, l.made.Load(), l.n, n, rate, span.Millis(time.Duration(r.worst.Swap(0))), r.early.Load(), r.repeats.Load())
		}
	}
}

func (p *progress) stop() {
	close(p.end)
	<-p.ended
}
