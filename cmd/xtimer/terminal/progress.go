package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Counter shows how far something has come, on a terminal, from its first
// second on.
type Counter struct {
	out   io.Writer // nil: nobody looks
	all   int64
	start time.Time

	mu    sync.Mutex
	done  int64     // guarded by mu
	shown time.Time // guarded by mu; zero: not yet
}

// NewProgress shows how much of all is done, where out is a terminal.
func NewProgress(out io.Writer, all int64) *Counter {
	c := &Counter{all: all, start: time.Now()}
	if Is(out) {
		c.out = out
	}
	return c
}

// Step counts one more.
func (c *Counter) Step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.done + 1)
}

// At says how many are done.
func (c *Counter) At(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(n)
}

func (c *Counter) set(n int64) {
	c.done = n
	now := time.Now()
	if c.out == nil || now.Sub(c.start) < time.Second || now.Sub(c.shown) < 100*time.Millisecond {
		return
	}
	c.shown = now
	fmt.Fprintf(c.out, "\r\x1b[K%d of %d", c.done, c.all)
}

// End wipes it away.
func (c *Counter) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shown.IsZero() {
		fmt.Fprint(c.out, "\r\x1b[K")
	}
}
