package clusterdemo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// calls is the receiver, and what it has received.
type calls struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	list []call
	keys map[string]bool
}

// call is one call of a node.
type call struct {
	timer    string
	shard    int
	at       time.Time
	late     time.Duration
	repeated bool // its key has come before
}

// receive starts the receiver.
func receive() (*calls, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the calls: %w", err)
	}
	c := &calls{url: "http://" + ln.Addr().String(), keys: map[string]bool{}}
	c.server = &http.Server{Handler: c}
	go func() { _ = c.server.Serve(ln) }()
	return c, nil
}

func (c *calls) close() { _ = c.server.Close() }

// ServeHTTP takes a call. Its header X-Xtimer-Fence begins with the shard of the timer.
func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	due, err := time.Parse(time.RFC3339, r.Header.Get("X-Xtimer-Due"))
	shard, _, _ := strings.Cut(r.Header.Get("X-Xtimer-Fence"), ".")
	n, lost := strconv.Atoi(shard)
	if err != nil || lost != nil {
		http.Error(w, "the request is not a call of a node", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call{r.Header.Get("X-Xtimer-Name"), n, at, at.Sub(due), c.keys[key]})
	c.keys[key] = true
}

// count is how calls went.
type count struct {
	made, repeated, early int
	latest                time.Duration
}

// since counts the calls since an instant.
func (c *calls) since(from time.Time) (n count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.list) - 1; i >= 0 && c.list[i].at.After(from); i-- {
		x := &c.list[i]
		n.made++
		n.latest = max(n.latest, x.late)
		if x.repeated {
			n.repeated++
		}
		if x.late < 0 {
			n.early++
		}
	}
	return n
}

// lastBy are the timers that were called, by the node that owns their shard.
func (c *calls) lastBy(owners map[int]string) map[string]map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[string]map[string]bool{}
	for i := range c.list {
		x := &c.list[i]
		owner := owners[x.shard]
		if by[owner] == nil {
			by[owner] = map[string]bool{}
		}
		by[owner][x.timer] = true
	}
	return by
}

// awaitAgain waits until each of the timers was called since an instant. It returns how long
// after the instant that was.
func (c *calls) awaitAgain(ctx context.Context, timers map[string]bool, from time.Time) (time.Duration, error) {
	for {
		first := map[string]time.Time{}
		last := from
		c.mu.Lock()
		for i := len(c.list) - 1; i >= 0 && c.list[i].at.After(from); i-- {
			if x := &c.list[i]; timers[x.timer] {
				first[x.timer] = x.at
			}
		}
		c.mu.Unlock()
		for _, at := range first {
			if at.After(last) {
				last = at
			}
		}
		if len(first) == len(timers) {
			return last.Sub(from), nil
		}
		if !rest(ctx, 20*time.Millisecond) {
			return 0, ctx.Err()
		}
	}
}
