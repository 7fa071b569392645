package httpapi

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// listener keeps the server alive and fair at the front door.
//
// fasthttp takes every error of Accept for the end of serving, so that one
// moment without a free descriptor would close the API until a restart. Here
// such errors are waited out, 5 ms at first and 500 ms at most. And one
// descriptor is kept in reserve: given up, it lets one waiting client be
// accepted and sent away with an answer rather than hang in the backlog.
//
// It also bounds connections, altogether and of one address, and tells those it
// turns away why.
type listener struct {
	net.Listener
	closed  chan struct{}
	once    sync.Once
	reserve *os.File // touched by Accept only

	perIP, total int
	open         atomic.Int64
	mu           sync.Mutex
	from         map[netip.Addr]int // guarded by mu

	failures, refused *metrics.Counter
	warn              func(err error)
}

func (l *listener) Accept() (net.Conn, error) {
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
		l.failures.Inc()
		if wait == 0 {
			l.warn(err)
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

// transient tells the errors of accept that pass.
func transient(err error) bool {
	for _, e := range [...]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return isTimeout(err)
}

// turnAway answers one waiting client with the reserved descriptor.
func (l *listener) turnAway() {
	if l.reserve == nil {
		return
	}
	l.reserve.Close()
	if t, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		t.SetDeadline(time.Now().Add(5 * time.Millisecond))
		if c, err := l.Listener.Accept(); err == nil {
			l.refuse(c, &problem{
				status: fasthttp.StatusServiceUnavailable, code: "too_many_connections", retry: 1,
				detail: "the server has no file descriptor left",
			})
		}
		t.SetDeadline(time.Time{})
	}
	l.reserve, _ = os.Open(os.DevNull)
}

// admit counts a connection, or turns it away.
func (l *listener) admit(c net.Conn) net.Conn {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetWriteBuffer(sendBuffer)
	}
	g := &visitor{Conn: c, l: l}
	if l.open.Add(1) > int64(l.total) {
		l.open.Add(-1)
		l.refuse(c, &problem{
			status: fasthttp.StatusServiceUnavailable, code: "too_many_connections", retry: 1,
			detail: "the server has reached its limit of connections",
		})
		return nil
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		g.ip = a.AddrPort().Addr().Unmap()
		l.mu.Lock()
		n := l.from[g.ip] + 1
		if n <= l.perIP {
			l.from[g.ip] = n
		}
		l.mu.Unlock()
		if n > l.perIP {
			l.open.Add(-1)
			l.refuse(c, &problem{
				status: fasthttp.StatusTooManyRequests, code: "too_many_connections", retry: 1,
				detail: "this address has reached its limit of connections; keep connections open and reuse them",
			})
			return nil
		}
	}
	return g
}

// refuse answers before anything was read, and does not wait for a slow reader.
func (l *listener) refuse(c net.Conn, p *problem) {
	l.refused.Inc()
	var ctx fasthttp.RequestCtx
	p.send(&ctx)
	ctx.SetConnectionClose()
	c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	ctx.Response.WriteTo(c)
	c.Close()
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// visitor is a connection that gives its place back when it is closed.
type visitor struct {
	net.Conn
	l    *listener
	ip   netip.Addr
	once sync.Once
	// endless: the answer is large or has no end, so that each write has a deadline of
	// its own. Set by the handler, read by the writes after it.
	endless atomic.Bool
	// token was good in the last request, by its place in the keyring, and one more; 0:
	// none was. Of the one goroutine that serves the connection.
	token int
	// sending: the client was answered before it had sent all.
	sending atomic.Bool
}

// What is read of a client that is answered already, so that it sees the answer: a
// close with bytes unread resets the connection, and who sends before it reads finds
// that.
const (
	lingerFor   = 2 * time.Second
	lingerBytes = 64 << 20
)

func (c *visitor) Write(b []byte) (int, error) {
	if c.endless.Load() {
		c.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	return c.Conn.Write(b)
}

func (c *visitor) Close() error {
	c.once.Do(func() {
		if t, ok := c.Conn.(*net.TCPConn); ok && c.sending.Load() { // it keeps its place meanwhile
			t.CloseWrite()
			t.SetReadDeadline(time.Now().Add(lingerFor))
			io.CopyN(io.Discard, t, lingerBytes)
		}
		c.l.open.Add(-1)
		if c.ip.IsValid() {
			c.l.mu.Lock()
			defer c.l.mu.Unlock()
			if c.l.from[c.ip]--; c.l.from[c.ip] <= 0 {
				delete(c.l.from, c.ip)
			}
		}
	})
	return c.Conn.Close()
}
