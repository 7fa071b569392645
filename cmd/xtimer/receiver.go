package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
)

// flaky is the timer whose calls are refused at first.
const (
	flaky      = "flaky"
	flakyFails = 2
)

// receiver takes the calls of the demonstration and prints each as it arrives.
type receiver struct {
	out   io.Writer
	paint terminal.Painter

	mu       sync.Mutex // guards all below, and the order of lines
	calls    int
	early    int
	late     []time.Duration // of first attempts
	flakyKey string
	timers   map[string]bool
}

func newReceiver(out io.Writer) *receiver {
	return &receiver{out: out, paint: terminal.NewPainter(out), timers: map[string]bool{}}
}

const row = "  %-12s  %-10s  %-12s  %s  %7s  %s\n"

func (r *receiver) head() {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, r.paint.Paint(terminal.Dim, fmt.Sprintf(row, "due", "timer", "arrived", "      late", "attempt", "response")))
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	arrived := time.Now()
	due, err := time.Parse(time.RFC3339, req.Header.Get("X-Xtimer-Due"))
	if err != nil {
		http.Error(w, "the request is not a call from xtimer", http.StatusBadRequest)
		return
	}
	name := req.Header.Get("X-Xtimer-Name")
	attempt, _ := strconv.Atoi(req.Header.Get("X-Xtimer-Attempt"))
	code := http.StatusOK
	if name == flaky && attempt <= flakyFails {
		code = http.StatusServiceUnavailable
	}
	w.WriteHeader(code)
	r.note(name, req.Header.Get("X-Xtimer-Task"), attempt, code, due, arrived)
}

// note counts a call and prints its line.
func (r *receiver) note(name, key string, attempt, code int, due, arrived time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := arrived.Sub(due)
	r.calls++
	r.timers[name] = true
	if late < 0 {
		r.early++
	}
	if name == flaky {
		r.flakyKey = key
	}

	// How late a repeat is says how long its retry waited, not how good the clock is.
	shown, colour := fmt.Sprintf("%10s", span.Millis(late)), lateColour(late)
	if attempt == 1 {
		r.late = append(r.late, late)
	} else {
		colour = terminal.Dim
	}
	answer := r.paint.Paint(terminal.Green, strconv.Itoa(code))
	if code != http.StatusOK {
		answer = r.paint.Paint(terminal.Red, strconv.Itoa(code)) + " will be retried"
	}
	const clock = "15:04:05.000"
	fmt.Fprintf(r.out, row, due.Local().Format(clock), name, arrived.Format(clock),
		r.paint.Paint(colour, shown), strconv.Itoa(attempt), answer)
}

func lateColour(d time.Duration) string {
	switch {
	case d < 0:
		return terminal.Red
	case d < 5*time.Millisecond:
		return terminal.Green
	}
	return terminal.Yellow
}

// outcome asks the server what became of the failing timer's task.
func (r *receiver) outcome(ctx context.Context, c *remote.Plain) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r.mu.Lock()
	key := r.flakyKey
	r.mu.Unlock()
	if key == "" {
		return "was not due yet"
	}
	var t struct {
		Status   string
		Attempts []struct{ Code int }
	}
	if err := c.Do(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(key), nil, &t); err != nil {
		return err.Error()
	}
	s := ""
	for _, a := range t.Attempts {
		s += strconv.Itoa(a.Code) + ", "
	}
	return fmt.Sprintf("answered %s%s with attempt %d", s, t.Status, len(t.Attempts))
}

// summary says how it went.
func (r *receiver) summary(took time.Duration, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := spreadOf(r.late)
	fmt.Fprintf(r.out, "\n%s\n\n", r.paint.Paint(terminal.Bold, "In sum"))
	fmt.Fprintf(r.out, "  calls    %d, of %d timers, in %.1f s\n", r.calls, len(r.timers), took.Seconds())
	fmt.Fprintf(r.out, "  late     p50 %s   p99 %s   max %s   (first attempts, seen by the receiver)\n", span.Millis(s.p50), span.Millis(s.p99), span.Millis(s.max))
	fmt.Fprintf(r.out, "  early    %d\n", r.early)
	fmt.Fprintf(r.out, "  %s    %s\n", flaky, outcome)
}
