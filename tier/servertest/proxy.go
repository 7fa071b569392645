package servertest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy in front of a server, which can do what networks do.
type Proxy struct {
	t      testing.TB
	target string
	addr   string
	work   sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond   // hanging, swallowing or links
	ln      net.Listener // nil while cut
	links   map[*link]bool
	delay   time.Duration
	// hanging: nothing passes. swallowing: no answer passes.
	hanging, swallowing bool
}

// link is one connection of a client and the one to the target that goes with it.
type link struct {
	client, server net.Conn // server is nil until it is dialled
	isClosed       bool
	lost           bool // an answer was swallowed: what comes after makes no sense
}

// NewProxy starts a proxy to target, host:port, and ends it with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, target: target, links: map[*link]bool{}}
	p.changed = sync.NewCond(&p.mu)
	p.addr = FreeAddr(t)
	p.mu.Lock()
	p.listen()
	p.mu.Unlock()
	t.Cleanup(func() {
		p.Cut()
		p.work.Wait()
	})
	return p
}

// Addr is its host:port, the same at all times.
func (p *Proxy) Addr() string { return p.addr }

// Delay holds back each piece that passes, in both directions, from now on.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut closes all connections and refuses new ones until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln != nil {
		p.ln.Close()
		p.ln = nil
	}
	for l := range p.links {
		p.close(l)
	}
}

// Hang accepts connections and passes nothing, in those that stand as well.
// What was sent meanwhile passes after Heal.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging = true
}

// SwallowReplies passes what clients send and drops what is answered, so that
// they cannot know the outcome. Turned off, it closes the connections in which
// something was dropped.
func (p *Proxy) SwallowReplies(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow(on)
}

func (p *Proxy) swallow(on bool) {
	p.swallowing = on
	for l := range p.links {
		if !on && l.lost {
			p.close(l)
		}
	}
}

// Heal ends Delay, Cut, Hang and SwallowReplies.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.hanging = 0, false
	p.swallow(false)
	if p.ln == nil {
		p.listen()
	}
	p.changed.Broadcast()
}

func (p *Proxy) listen() {
	p.t.Helper()
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatalf("cannot listen for the proxy: %v", err)
	}
	p.ln = ln
	p.work.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // Cut closed it
			}
			p.mu.Lock()
			if p.ln != ln {
				c.Close()
			} else {
				l := &link{client: c}
				p.links[l] = true
				p.work.Go(func() { p.serve(l) })
			}
			p.mu.Unlock()
		}
	})
}

func (p *Proxy) close(l *link) {
	l.isClosed = true
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
	delete(p.links, l)
	p.changed.Broadcast()
}

func (p *Proxy) serve(l *link) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.close(l)
	}()
	server, err := net.DialTimeout("tcp", p.target, patience)
	if err != nil {
		return
	}
	p.mu.Lock()
	if l.isClosed {
		server.Close()
	}
	l.server = server
	p.mu.Unlock()
	p.work.Go(func() { p.pass(l, server, l.client, false) })
	p.pass(l, l.client, server, true)
}

// pass copies one direction until either side ends, and then ends both.
func (p *Proxy) pass(l *link, to, from net.Conn, isReply bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.admit(l, isReply) {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close(l)
}

// admit waits until a piece may pass and reports whether it does.
func (p *Proxy) admit(l *link, isReply bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.delay; d > 0 {
		p.mu.Unlock()
		time.Sleep(d)
		p.mu.Lock()
	}
	for p.hanging && !l.isClosed {
		p.changed.Wait()
	}
	if isReply && p.swallowing {
		l.lost = true
	}
	return !l.isClosed && !(isReply && l.lost)
}
