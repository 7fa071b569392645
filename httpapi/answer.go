package httpapi

import (
	"io"
	"net"
	"sync"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/conn"
	"xtimer/httpapi/problem"
)

// What answers may take of the memory.
//
// A page of a list ends at pageBytes. An answer of at most smallAnswer is copied into
// the connection's own buffer. A larger one is counted until it is written: all
// together have a budget, and those of one app half of it. Beyond that a read gets 503.
// A client has pieceTime for each pieceBytes: one that reads more slowly is cut off, so
// that 64 connections that ask for the largest pages and do not read them take 32 MiB
// of a process that may use 512 MiB, and for 80 s at most.
const (
	pageBytes   = 2 << 20
	pageWork    = 2 * pageBytes // what counts for a page until it is rendered
	smallAnswer = 8 << 10
	pieceBytes  = 256 << 10
)

var errAnswersFull = &problem.Problem{
	Status: fasthttp.StatusServiceUnavailable, Code: "answers_full", Retry: 1,
	Detail: "responses in progress use all the memory set aside for them: request a smaller page, or retry later",
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// answer sends the bytes of b, a buffer of the pool, as the body. One that must be sent
// is, whatever it takes: a change has been made by then.
func (s *Server) answer(ctx *fasthttp.RequestCtx, app string, must bool, b *[]byte) {
	if len(*b) > smallAnswer {
		b = compressed(ctx, b)
	}
	if len(*b) <= smallAnswer {
		ctx.SetBody(*b)
		buffers.Put(b)
		return
	}
	n := int64(cap(*b))
	if !s.answers.Hold(app, n, must) {
		ctx.Response.Reset()
		errAnswersFull.Send(ctx)
		return
	}
	conn.InPieces(ctx)
	ctx.SetBodyStream(&heldAnswer{rest: *b, release: sync.OnceFunc(func() {
		s.answers.Release(app, n)
		if n <= 2*pageBytes {
			buffers.Put(b)
		}
	})}, len(*b))
}

// unchunked has an answer without an end, for a client of HTTP/1.0, end where the
// connection does: such a client knows no chunks, and fasthttp makes them for everybody.
func unchunked(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	if ctx.Request.Header.IsHTTP11() || ctx.IsHead() || !ctx.Response.IsBodyStream() || h.ContentLength() >= 0 {
		return
	}
	h.Del(fasthttp.HeaderTransferEncoding)
	h.SetConnectionClose()
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		defer func() { _ = ctx.Response.CloseBodyStream() }() // its writer ends
		if _, err := c.Write(h.Header()); err == nil {
			_, _ = io.Copy(c, ctx.Response.BodyStream()) // the reader may go at any time
		}
	})
}

// compressed replaces a long answer when the client takes gzip.
func compressed(ctx *fasthttp.RequestCtx, b *[]byte) *[]byte {
	if len(ctx.Response.Header.ContentEncoding()) > 0 { // a page's asset
		return b
	}
	ctx.Response.Header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if !ctx.Request.Header.HasAcceptEncoding("gzip") {
		return b
	}
	z := buffers.Get().(*[]byte)
	*z = fasthttp.AppendGzipBytesLevel((*z)[:0], *b, fasthttp.CompressBestSpeed)
	buffers.Put(b)
	ctx.Response.Header.SetContentEncoding("gzip")
	return z
}

// streamBytes is what an event stream counts for: what a reader may be behind.
const streamBytes = 1 << 20

// heldAnswer is a body that is counted until it is closed.
type heldAnswer struct {
	rest    []byte
	release func()
}

func (h *heldAnswer) Read(b []byte) (n int, err error) {
	if len(h.rest) == 0 {
		return 0, io.EOF
	}
	n = copy(b, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// WriteTo is io.WriterTo's.
func (h *heldAnswer) WriteTo(w io.Writer) (n int64, err error) {
	for err == nil && len(h.rest) > 0 {
		var k int
		k, err = w.Write(h.rest[:min(len(h.rest), pieceBytes)])
		h.rest = h.rest[k:]
		n += int64(k)
	}
	return n, err
}

// Close is called when the body is written, or will not be.
func (h *heldAnswer) Close() error {
	h.rest = nil
	h.release()
	return nil
}
