package httpapi

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// bodies bound what the bodies of requests take of the memory.
//
// fasthttp makes room for a whole body when it has read the head of its request, before
// a handler looks at a token: 200 connections that announced batches of 8 MiB and sent
// 1 KB of each took 1.7 GB. So a body of more than smallBody counts from its head on
// until its request is answered. All bodies together have a budget, those of one app
// half of it. Beyond the budget a request gets 503, and one without a token that needs
// one 401, before its body is read.
type bodies struct {
	budget *budget
	n      atomic.Int64 // entries of of
	mu     sync.Mutex   // guards of
	// of are the bodies that are being read. fasthttp tells of a head, of its request and
	// of its failure by the same pointer. It does not tell of every failure: see sweep.
	of map[*fasthttp.RequestHeader]arrival
}

type arrival struct {
	app     string
	bytes   int64
	since   time.Time
	refused error // the body is not to be read
}

const smallBody = 64 << 10

var errBodiesFull = &problem{
	status: fasthttp.StatusServiceUnavailable, code: "bodies_full", retry: 1,
	detail: "the requests that are being received use all the memory set aside for them: send a smaller batch, or repeat the request later",
}

func newBodies() *bodies {
	return &bodies{budget: newBudget(), of: make(map[*fasthttp.RequestHeader]arrival)}
}

// begin counts the body that follows a head, at most limit bytes. It reports whether the
// body may be read.
func (a *bodies) begin(h *fasthttp.RequestHeader, limit int, app string, refused error, patience time.Duration) bool {
	n := h.ContentLength()
	if n == -1 { // chunked
		n = limit
	}
	if n <= smallBody || n > limit {
		return true // fasthttp refuses what is too large
	}
	a.release(a.end(h)) // fasthttp has told nothing of the former request
	x := arrival{app: app, bytes: int64(n), since: time.Now(), refused: refused}
	if refused == nil && !a.budget.hold(app, x.bytes, false) {
		if a.sweep(patience); !a.budget.hold(app, x.bytes, false) {
			x.refused = errBodiesFull
		}
	}
	if x.refused != nil {
		x.bytes = 0
	}
	a.mu.Lock()
	a.of[h] = x
	a.mu.Unlock()
	a.n.Add(1)
	return x.refused == nil
}

// end takes an arrival out: its bytes count until they are released.
func (a *bodies) end(h *fasthttp.RequestHeader) (x arrival) {
	if a.n.Load() == 0 {
		return arrival{}
	}
	a.mu.Lock()
	x, ok := a.of[h]
	delete(a.of, h)
	a.mu.Unlock()
	if ok {
		a.n.Add(-1)
	}
	return x
}

func (a *bodies) release(x arrival) {
	if x.bytes > 0 {
		a.budget.release(x.app, x.bytes)
	}
}

// sweep forgets the bodies whose time to arrive is over.
func (a *bodies) sweep(patience time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for h, x := range a.of {
		if time.Since(x.since) > patience {
			delete(a.of, h)
			a.n.Add(-1)
			a.release(x)
		}
	}
}

// limits gives a batch more room and more time, and lets a large body arrive only where
// there is room for it. It is the first to see a request, and brings its target into
// the form in which all others look at it.
func (s *Server) limits(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if h.RequestURI()[0] != '/' {
		originForm(h)
	}
	limit, c := s.cfg.MaxBody, fasthttp.RequestConfig{}
	if string(h.RequestURI()) == batchPath {
		limit, c = s.cfg.MaxBatch, fasthttp.RequestConfig{MaxRequestBodySize: s.cfg.MaxBatch, ReadTimeout: 6 * s.cfg.ReadTimeout}
	}
	if n := h.ContentLength(); n > smallBody || n == -1 {
		app, err := s.sender(h)
		if !s.bodies.begin(h, limit, app, err, 12*s.cfg.ReadTimeout) {
			c.MaxRequestBodySize = 1 // refuse answers
		}
	}
	return c
}

func (s *Server) tooLarge() *problem {
	return &problem{
		status: fasthttp.StatusRequestEntityTooLarge, code: "body_too_large",
		detail: fmt.Sprintf("the body is too large: the limit is %d bytes, and for a batch %d", s.cfg.MaxBody, s.cfg.MaxBatch),
	}
}

// expect answers Expect: 100-continue. A body that is too large is refused before it is sent.
func (s *Server) expect(ctx *fasthttp.RequestCtx) (status int) {
	limit := s.cfg.MaxBody
	if string(ctx.Request.Header.RequestURI()) == batchPath {
		limit = s.cfg.MaxBatch
	}
	if ctx.Request.Header.ContentLength() <= limit {
		return fasthttp.StatusContinue
	}
	p := s.tooLarge()
	p.send(ctx)
	s.stats.count(nil, p.status, 0)
	return p.status
}

// sender is the app of a request's token.
func (s *Server) sender(h *fasthttp.RequestHeader) (app string, err error) {
	if len(s.keys) == 0 {
		return AllApps, nil
	}
	place := -1
	if auth := h.Peek(fasthttp.HeaderAuthorization); len(auth) > len(bearer) && bytes.EqualFold(auth[:len(bearer)], bearer) {
		place = s.keys.find(bytes.TrimSpace(auth[len(bearer):]))
	}
	if place < 0 {
		return "", errNoSender
	}
	return s.keys[place].grant.app, nil
}

var errNoSender = &problem{
	status: fasthttp.StatusUnauthorized, code: "no_token", detail: "this needs a token: Authorization: Bearer TOKEN",
}
