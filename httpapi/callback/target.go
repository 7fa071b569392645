package callback

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"xtimer/engine"
)

// target is one scheme://host:port with its connections.
type target struct {
	c         *Caller
	key       string // scheme://host:port, as written
	authority string // the Host header
	host      string // name or address, for DNS and the certificate
	addr      string // host:port, to dial
	secure    bool

	mu      sync.Mutex
	idle    []*link // kept, the longest unused first
	busy    int     // connections in use or being made
	waiting []chan struct{}
	used    time.Time // when the last call ended
	gone    bool      // forgotten: connections are not kept any more
}

// target finds or makes the target of an origin.
func (c *Caller) target(origin string) (*target, error) {
	c.mu.RLock()
	t := c.targets[origin]
	c.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	t, err := newTarget(c, strings.Clone(origin)) // which is a part of a long URL
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.targets[t.key]; other != nil {
		return other, nil
	}
	if c.closed || len(c.targets) >= maxTargets {
		t.gone = true
		return t, nil
	}
	if len(c.targets) == 0 {
		if c.sweeper == nil {
			c.sweeper = time.AfterFunc(sweepEvery, c.sweep)
		} else {
			c.sweeper.Reset(sweepEvery)
		}
	}
	c.targets[t.key] = t
	return t, nil
}

func newTarget(c *Caller, origin string) (*target, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	t := &target{c: c, key: origin, authority: u.Host, host: u.Hostname(), secure: u.Scheme == "https", used: time.Now()}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[t.secure]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || t.host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not scheme://host:port of HTTP", origin)
	}
	if strings.ContainsFunc(t.authority, func(r rune) bool { return r >= utf8.RuneSelf || !inHost(byte(r)) }) {
		return nil, fmt.Errorf("%q is not a host", t.authority)
	}
	t.addr = t.host + ":" + port
	if strings.Contains(t.host, ":") {
		t.addr = "[" + t.host + "]:" + port
	}
	return t, nil
}

// inHost reports whether a byte may stand in a host with its port.
func inHost(ch byte) bool {
	return strings.IndexByte(".-_:[]", ch) >= 0 || '0' <= ch && ch <= '9' || 'a' <= ch|0x20 && ch|0x20 <= 'z'
}

// acquire is a connection that lives, as far as can be seen: one that was kept for
// less than idle, else a new one; ph gets what the making of it took. The call
// began at start.
func (t *target) acquire(start, deadline time.Time, idle time.Duration, ph *engine.Phases) (*link, error) {
	t.mu.Lock()
	for t.busy >= t.c.cfg.MaxConnsPerHost {
		if err := t.wait(deadline); err != nil {
			t.mu.Unlock()
			return nil, err
		}
	}
	t.busy++
	// The last one kept comes first: what is older than that is for others, or nobody.
	for n := len(t.idle); n > 0 && start.Sub(t.idle[n-1].since) < idle; n = len(t.idle) {
		cn := t.idle[n-1]
		t.idle[n-1] = nil
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		t.c.idle.Add(-1)
		if start.Sub(cn.since) < cn.maxIdle && (cn.direct || cn.quiet()) {
			cn.reused = true
			return cn, nil
		}
		cn.Close()
		t.mu.Lock()
	}
	t.mu.Unlock()

	cn, err := t.dial(deadline, ph)
	if err != nil {
		t.release(nil, false, time.Now())
		return nil, err
	}
	return cn, nil
}

// release gives back what acquire gave. A connection is kept if keep says so
// and there is room.
func (t *target) release(cn *link, keep bool, now time.Time) {
	t.mu.Lock()
	t.busy--
	t.used = now
	if keep = keep && !t.gone && cn.maxIdle > 0; keep {
		if keep = t.c.idle.Add(1) <= int64(t.c.cfg.MaxIdleConns); keep {
			cn.since = now
			t.idle = append(t.idle, cn)
		} else {
			t.c.idle.Add(-1)
		}
	}
	t.wake()
	t.mu.Unlock()
	if cn != nil && !keep {
		cn.Close()
	}
}

// wait sleeps until a connection may be free. It is called with t.mu, and has
// it when it returns.
func (t *target) wait(deadline time.Time) error {
	turn := make(chan struct{}, 1)
	t.waiting = append(t.waiting, turn)
	t.mu.Unlock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-turn:
		t.mu.Lock()
		return nil
	case <-timer.C:
		t.mu.Lock()
		if i := slices.Index(t.waiting, turn); i >= 0 {
			t.waiting = slices.Delete(t.waiting, i, i+1)
		} else {
			t.wake() // it was this one's turn: the next one's now
		}
		return fmt.Errorf("all %d connections are busy: %w", t.c.cfg.MaxConnsPerHost, context.DeadlineExceeded)
	}
}

// wake lets the first that waits try; t.mu is held.
func (t *target) wake() {
	if len(t.waiting) > 0 {
		t.waiting[0] <- struct{}{}
		t.waiting = slices.Delete(t.waiting, 0, 1)
	}
}

// sweep closes what was kept too long and forgets targets that are not used.
func (c *Caller) sweep() {
	c.mu.RLock()
	targets := make([]*target, 0, len(c.targets))
	for _, t := range c.targets {
		targets = append(targets, t)
	}
	c.mu.RUnlock()

	now := time.Now()
	var unused []*target
	for _, t := range targets {
		if t.sweep(now) {
			unused = append(unused, t)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range unused {
		if t.forgetUnused(now) {
			delete(c.targets, t.key)
		}
	}
	if len(c.targets) > 0 && !c.closed {
		c.sweeper.Reset(sweepEvery)
	}
}

// sweep closes connections that were kept too long, and reports whether the
// target is not used any more.
func (t *target) sweep(now time.Time) bool {
	t.mu.Lock()
	var old []*link
	t.idle = slices.DeleteFunc(t.idle, func(cn *link) bool {
		over := now.Sub(cn.since) >= cn.maxIdle
		if over {
			old = append(old, cn)
		}
		return over
	})
	unused := t.unused(now)
	t.mu.Unlock()
	t.closeIdle(old)
	return unused
}

func (t *target) unused(now time.Time) bool {
	return t.busy == 0 && len(t.idle) == 0 && now.Sub(t.used) >= forgetAfter
}

func (t *target) forgetUnused(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = t.gone || t.unused(now)
	return t.gone
}

// forget keeps no connection from now on.
func (t *target) forget() {
	t.mu.Lock()
	idle := t.idle
	t.idle, t.gone = nil, true
	t.mu.Unlock()
	t.closeIdle(idle)
}

func (t *target) closeIdle(conns []*link) {
	t.c.idle.Add(-int64(len(conns)))
	for _, cn := range conns {
		cn.Close()
	}
}
