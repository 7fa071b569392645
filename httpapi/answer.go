package httpapi

import (
	"io"
	"runtime/debug"
	"sync"

	"github.com/valyala/fasthttp"
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
	// The budget is an eighth of the memory limit of the process, within these bounds.
	leastBudget, mostBudget = 16 << 20, 256 << 20
	// sendBuffer bounds what the kernel keeps of an answer for a client that does not
	// read: by itself it takes 4 MiB for each connection.
	sendBuffer = 64 << 10
)

// budget counts the bytes of the answers that are being written, by the app of the token.
type budget struct {
	total int64
	mu    sync.Mutex
	all   int64            // guarded by mu
	of    map[string]int64 // guarded by mu
}

func newBudget() *budget {
	return &budget{
		total: max(leastBudget, min(debug.SetMemoryLimit(-1)/8, mostBudget)),
		of:    make(map[string]int64),
	}
}

// hold counts n bytes, unless that is too much; what must be answered is counted always.
func (a *budget) hold(app string, n int64, must bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !must && (a.all+n > a.total || a.of[app]+n > a.total/2) {
		return false
	}
	a.all += n
	a.of[app] += n
	return true
}

func (a *budget) release(app string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all -= n
	if a.of[app] -= n; a.of[app] == 0 {
		delete(a.of, app)
	}
}

var errAnswersFull = &problem{
	status: fasthttp.StatusServiceUnavailable, code: "answers_full", retry: 1,
	detail: "responses in progress use all the memory set aside for them: request a smaller page, or retry later",
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
	if !s.answers.hold(app, n, must) {
		ctx.Response.Reset()
		errAnswersFull.send(ctx)
		return
	}
	inPieces(ctx)
	ctx.SetBodyStream(&heldAnswer{rest: *b, release: sync.OnceFunc(func() {
		s.answers.release(app, n)
		if n <= 2*pageBytes {
			buffers.Put(b)
		}
	})}, len(*b))
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

// inPieces gives each write of the answer a time of its own.
func inPieces(ctx *fasthttp.RequestCtx) {
	if c, ok := ctx.Conn().(*visitor); ok {
		c.endless.Store(true)
	}
}

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
