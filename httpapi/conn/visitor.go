package conn

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// WriteTimeout bounds the writing of an answer, or of each piece of one.
const WriteTimeout = 10 * time.Second

// Visitor is a connection that gives its place back when it is closed.
type Visitor struct {
	net.Conn
	l    *Listener
	ip   netip.Addr
	once sync.Once
	// endless: the answer is large or has no end, so that each write has a deadline of
	// its own. Set by the handler, read by the writes after it.
	endless atomic.Bool
	// Token was good in the last request, by its place in the keyring, and one more; 0:
	// none was. Of the one goroutine that serves the connection.
	Token int
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

// Of is the connection of a request; nil: that came by none of a Listener.
func Of(ctx *fasthttp.RequestCtx) *Visitor {
	c, _ := ctx.Conn().(*Visitor)
	return c
}

// Context is the context of a head that fasthttp has just read. HeaderReceived gets the head
// alone, which always lies in a RequestCtx; no field of the head leads to the connection.
func Context(h *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	const place = unsafe.Offsetof(fasthttp.RequestCtx{}.Request) + unsafe.Offsetof(fasthttp.Request{}.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(h), -int(place)))
}

// InPieces gives each write of the answer a time of its own.
func InPieces(ctx *fasthttp.RequestCtx) {
	if c := Of(ctx); c != nil {
		c.endless.Store(true)
	}
}

// StillSending notes that the client of a request is answered before it has sent all.
func StillSending(ctx *fasthttp.RequestCtx) {
	if c := Of(ctx); c != nil {
		c.sending.Store(true)
	}
}

// Write is net.Conn's.
func (c *Visitor) Write(b []byte) (int, error) {
	if c.endless.Load() {
		c.SetWriteDeadline(time.Now().Add(WriteTimeout))
	}
	return c.Conn.Write(b)
}

// Close is net.Conn's.
func (c *Visitor) Close() error {
	c.once.Do(func() {
		if t, ok := c.Conn.(*net.TCPConn); ok && c.sending.Load() { // it keeps its place meanwhile
			t.CloseWrite()
			t.SetReadDeadline(time.Now().Add(lingerFor))
			io.CopyN(io.Discard, t, lingerBytes)
		}
		c.l.leave(c)
	})
	return c.Conn.Close()
}
