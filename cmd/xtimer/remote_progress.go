package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// counter shows how far something has come, on a terminal, from its first
// second on.
type counter struct {
	out   io.Writer // nil: nobody looks
	all   int64
	start time.Time

	mu    sync.Mutex
	done  int64     // guarded by mu
	shown time.Time // guarded by mu; zero: not yet
}

func newProgress(out io.Writer, all int64) *counter {
	c := &counter{all: all, start: time.Now()}
	if onTerminal(out) {
		c.out = out
	}
	return c
}

func (c *counter) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.done + 1)
}

func (c *counter) at(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(n)
}

func (c *counter) set(n int64) {
	c.done = n
	now := time.Now()
	if c.out == nil || now.Sub(c.start) < time.Second || now.Sub(c.shown) < 100*time.Millisecond {
		return
	}
	c.shown = now
	fmt.Fprintf(c.out, "\r\x1b[K%d of %d", c.done, c.all)
}

// end wipes it away.
func (c *counter) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shown.IsZero() {
		fmt.Fprint(c.out, "\r\x1b[K")
	}
}
