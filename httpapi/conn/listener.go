package conn

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"xtimer/httpapi/problem"
)

// Listener keeps the server alive and fair at the front door.
//
// fasthttp takes every error of Accept for the end of serving, so that one
// moment without a free descriptor would close the API until a restart. Here
// such errors are waited out, 5 ms at first and 500 ms at most. And one
// descriptor is kept in reserve: given up, it lets one waiting client be
// accepted and sent away with an answer rather than hang in the backlog.
//
// It also bounds connections, altogether and of one address, and tells those it
// turns away why.
type Listener struct {
	net.Listener
	limits  Limits
	closed  chan struct{}
	once    sync.Once
	reserve *os.File // touched by Accept only, and by Free

	open     atomic.Int64
	mu       sync.Mutex
	from     map[netip.Addr]int    // guarded by mu
	visitors map[*Visitor]struct{} // that are open; guarded by mu
}

// Limits of connections, and how a listener tells what it meets.
type Limits struct {
	PerIP, Total int
	// Failures counts the errors of Accept, and Refused those that were turned away.
	Failures, Refused *metrics.Counter
	Warn              func(err error)
}

// Listen takes the connections of ln within limits.
func Listen(ln net.Listener, limits Limits) *Listener {
	l := &Listener{Listener: ln, limits: limits, closed: make(chan struct{}), from: make(map[netip.Addr]int), visitors: make(map[*Visitor]struct{})}
	l.reserve, _ = os.Open(os.DevNull)
	return l
}

// Open is how many connections are open.
func (l *Listener) Open() int64 { return l.open.Load() }

// Free gives the descriptor in reserve back, when Accept is not called any more.
func (l *Listener) Free() {
	if l.reserve != nil {
		l.reserve.Close()
	}
}

// Accept is net.Listener's.
func (l *Listener) Accept() (net.Conn, error) {
	for wait := time.Duration(0); ; {
		c, err := l.Listener.Accept()
		if err == nil {
			if g := l.admit(c); g != nil {
				return g, nil
			}
			wait = 0
			continue
		}
		if !transient(err) {
			return nil, err
		}
		l.limits.Failures.Inc()
		if wait == 0 {
			l.limits.Warn(err)
			l.turnAway()
		}
		wait = min(max(2*wait, 5*time.Millisecond), 500*time.Millisecond)
		select {
		case <-time.After(wait):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// transient reports whether an error of accept passes.
func transient(err error) bool {
	for _, e := range [...]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return IsTimeout(err)
}

// turnAway answers one waiting client with the reserved descriptor.
func (l *Listener) turnAway() {
	if l.reserve == nil {
		return
	}
	l.reserve.Close()
	if t, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		t.SetDeadline(time.Now().Add(5 * time.Millisecond))
		if c, err := l.Listener.Accept(); err == nil {
			l.refuse(c, &problem.Problem{
				Status: fasthttp.StatusServiceUnavailable, Code: "too_many_connections", Retry: 1,
				Detail: "the server has no file descriptor left",
			})
		}
		t.SetDeadline(time.Time{})
	}
	l.reserve, _ = os.Open(os.DevNull)
}

// sendBuffer bounds what the kernel keeps of an answer for a client that does not
// read: by itself it takes 4 MiB for each connection.
const sendBuffer = 64 << 10

// admit counts a connection, or turns it away.
func (l *Listener) admit(c net.Conn) net.Conn {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetWriteBuffer(sendBuffer)
	}
	g := &Visitor{Conn: c, l: l}
	if l.open.Add(1) > int64(l.limits.Total) {
		l.open.Add(-1)
		l.refuse(c, &problem.Problem{
			Status: fasthttp.StatusServiceUnavailable, Code: "too_many_connections", Retry: 1,
			Detail: "the server has reached its limit of connections",
		})
		return nil
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		g.ip = a.AddrPort().Addr().Unmap()
	}
	if !l.enter(g) {
		l.open.Add(-1)
		l.refuse(c, &problem.Problem{
			Status: fasthttp.StatusTooManyRequests, Code: "too_many_connections", Retry: 1,
			Detail: "this address has reached its limit of connections; keep connections open and reuse them",
		})
		return nil
	}
	return g
}

// enter counts a visitor as one of its address, if that may have another.
func (l *Listener) enter(g *Visitor) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.ip.IsValid() {
		if l.from[g.ip] >= l.limits.PerIP {
			return false
		}
		l.from[g.ip]++
	}
	l.visitors[g] = struct{}{}
	return true
}

// leave counts a visitor no more.
func (l *Listener) leave(g *Visitor) {
	l.open.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.visitors, g)
	if g.ip.IsValid() {
		if l.from[g.ip]--; l.from[g.ip] <= 0 {
			delete(l.from, g.ip)
		}
	}
}

// CloseVisitors closes the connections that are still open, whatever they wait for.
func (l *Listener) CloseVisitors() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for g := range l.visitors {
		g.Conn.Close() // whoever serves the visitor sees that, and closes the visitor
	}
}

// refuse answers before anything was read, and does not wait for a slow reader.
func (l *Listener) refuse(c net.Conn, p *problem.Problem) {
	l.limits.Refused.Inc()
	var ctx fasthttp.RequestCtx
	p.Send(&ctx)
	ctx.SetConnectionClose()
	c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	ctx.Response.WriteTo(c)
	c.Close()
}

// Close is net.Listener's.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// IsTimeout goes by the method, as the errors of a deadline have many types.
func IsTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
