// Package httpapi serves the API of xtimer. Its JSON is read and written by wire; the
// calls are made by callback, which this package does not know.
//
// The way of a request: the listener of conn → fasthttp → Server.handle → the routing
// table (routes.go, in a tree of paths) → access, which looks at the token → a handler
// (timers.go, tasks.go, bulk.go …) → the engine; and back as a reply that is rendered by
// appending, or as an error that becomes a problem. In a cluster another node may answer in
// place of the handler (forward.go, nodes).
package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/engine/secret"
	"xtimer/httpapi/access"
	"xtimer/httpapi/conn"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/paths"
	"xtimer/httpapi/problem"
)

// Server serves the API of an engine.
type Server struct {
	e      *scheduler.Scheduler
	cfg    ServerConfig
	log    *slog.Logger
	guard  *access.Guard
	routes []route
	root   *paths.Tree[*route]
	fast   *fasthttp.Server
	stats  counters
	trends map[string]*trend       // by app
	pages  fasthttp.RequestHandler // the console's; nil: there is none
	signed Sessions                // the console's; nil: there are none

	cursors cursors
	// clusterCursors are made of the secret of the nodes when that is known.
	clusterCursors atomic.Pointer[cursors]

	answers    *conn.Budget
	bodies     *conn.Bodies
	listing    *access.Turns
	verifying  *access.Turns
	previewing *access.Turns
	nodes      *nodes.Client // nil: the process is alone

	draining atomic.Bool
	work     context.Context // ends when Grace is over: of every request
	streams  context.Context // ends with Serve's: of the event streams
	endWork  context.CancelFunc
	endFlow  context.CancelFunc
}

// NewServer builds a server; nothing runs before Serve.
func NewServer(e *scheduler.Scheduler, cfg ServerConfig) (*Server, error) {
	cfg.defaults()
	s := &Server{e: e, cfg: cfg, log: cfg.Log, answers: conn.NewBudget(), bodies: conn.NewBodies(), listing: listTurns(), verifying: verifyTurns(), previewing: previewTurns()}
	var err error
	if s.guard, err = access.NewGuard(cfg.Tokens); err != nil {
		return nil, fmt.Errorf("cannot use the tokens: %w", err)
	}
	if s.cursors, err = newCursors(cfg.CursorKey); err != nil {
		return nil, err
	}
	if cfg.Secrets == nil && e.Objects() != nil {
		if s.cfg.Secrets, err = secret.New(e.Objects(), nil, cfg.Log); err != nil {
			return nil, err
		}
	}
	if cfg.Cluster != nil {
		s.nodes = nodes.NewClient(cfg.Cluster.Secret, cfg.Cluster.Now)
		if cfg.Alerts != nil {
			cfg.Alerts.AskBy(s.askAlerts)
		}
		e.AllotBy(s.nodes.AskFlows)
		e.TellBy(s.nodes.TellResult)
		e.ItemsBy(s.nodes.AskItem)
	}
	s.trends = trends(e, s.guard.Apps())
	s.work, s.endWork = context.WithCancel(context.Background())
	s.streams, s.endFlow = context.WithCancel(s.work)
	s.routes = routes(cfg)
	s.root = tree(s.routes)
	s.stats.init(s)
	if cfg.Console != nil {
		s.pages = s.console(cfg.Console)
	}
	s.fast = &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.refuse,
		HeaderReceived:               s.limits,
		ExpectHandler:                s.expect,
		Name:                         "xtimer",
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 conn.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		MaxRequestBodySize:           cfg.MaxBody,
		ReadBufferSize:               8 << 10,
		Concurrency:                  cfg.MaxConns + 1, // our listener turns away first, and says why
		CloseOnShutdown:              true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		Logger:                       quiet{},
	}
	return s, nil
}

// SetDraining makes /readyz answer 503: no new work should be sent here.
func (s *Server) SetDraining() { s.draining.Store(true) }

// Serve answers requests from ln until ctx ends; then it takes no new
// connection, ends the event streams, and returns when all requests in flight
// are answered. What they wait for ends with Grace: an answer of a node that hangs, or of a
// tier. A second later Serve closes the connections that are left, as that of a client that
// sends slowly, and returns without them. A server serves once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	l := conn.Listen(ln, conn.Limits{
		PerIP: s.cfg.MaxConnsPerIP, Total: s.cfg.MaxConns,
		Failures: s.stats.acceptErrors, Refused: s.stats.refused,
		Warn: func(err error) { s.log.Warn("cannot accept connections for now", "err", err) },
	})
	s.stats.open = func() float64 { return float64(l.Open()) }
	defer s.endWork()

	var looking sync.WaitGroup
	looking.Go(func() { s.takeTrends(s.streams) })
	defer looking.Wait()
	defer s.endFlow()
	served := make(chan error, 1)
	go func() { served <- s.fast.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	s.SetDraining()
	s.endFlow()
	defer time.AfterFunc(s.cfg.Grace, s.endWork).Stop()
	grace, cancel := context.WithTimeout(context.Background(), s.cfg.Grace+time.Second)
	defer cancel()
	err := s.fast.ShutdownWithContext(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("connections are closed although their requests are not answered", "connections", l.Open(), "after", s.cfg.Grace)
		l.CloseVisitors()
		err = nil
	}
	if s.nodes != nil {
		s.nodes.Close()
	}
	l.Close() // of a server that has just been told to serve it knows nothing
	<-served
	l.Free()
	return err
}

// handle answers a request: as the API, or else as the console.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	h := &ctx.Request.Header
	arrived := s.bodies.End(h)
	defer s.bodies.Release(arrived)
	defer unchunked(ctx)
	if conn.FramedTwice(h.RawHeaders()) {
		problem.Malformed("bad_framing", "Content-Length and Transfer-Encoding were both sent: the end of the body is ambiguous").Send(ctx)
		ctx.SetConnectionClose()
		return
	}
	if conn.HasBareLF(h.RawHeaders()) {
		problem.Malformed("bad_framing", "a line of the request's head ends in LF without CR: the end of the head is ambiguous").Send(ctx)
		ctx.SetConnectionClose()
		return
	}
	if ctx.IsConnect() {
		errNoProxy.Send(ctx)
		return
	}
	if s.cfg.LocalOnly && access.Rebound(ctx, s.open) {
		access.ErrRebound.Send(ctx)
		return
	}
	if s.ofConsole(h) {
		s.showPage(ctx)
		if ctx.Response.StatusCode() != fasthttp.StatusNotFound || bytes.Contains(h.Peek(fasthttp.HeaderAccept), []byte("html")) {
			return
		}
		ctx.Response.Reset() // who asks for no page is told so as by the API
	}
	s.api(ctx)
}

var errNoProxy = &problem.Problem{
	Status: fasthttp.StatusNotImplemented, Code: "no_proxy", Detail: "the server is not a proxy and does not support CONNECT",
}

// api is the one decorator of all handlers: it finds the route, asks the
// token, counts, renders, and catches what panics.
func (s *Server) api(ctx *fasthttp.RequestCtx) {
	begin := time.Now()
	var rt *route
	defer func() {
		if p := recover(); p != nil {
			s.stats.panics.Inc()
			s.log.Error("a handler panicked", "method", string(ctx.Method()), "panic", p, "stack", string(debug.Stack()))
			ctx.Response.Reset()
			problem.Of(fmt.Errorf("panic: %v", p)).Send(ctx)
			ctx.SetConnectionClose()
		}
		s.stats.count(rt, ctx.Response.StatusCode(), time.Since(begin))
	}()
	r := request{http: ctx, ctx: s.work}
	var out reply
	err := s.admit(&r)
	rt = r.route
	if err == nil && rt.list && !r.ofNode { // or two nodes that ask each other wait for each other's turn
		var leave func()
		if leave, err = s.reading(&r); err == nil {
			defer leave()
		}
	}
	if err == nil {
		out, err = s.respond(&r)
	}
	if err != nil {
		s.problem(&r, err).Send(ctx)
		return
	}
	if !out.sent {
		s.send(&r, &out)
	}
}

// problem turns what went wrong into its answer, and logs what is our fault.
// While the engine starts or stops, or has lost a tier, that is the reason of
// what fails.
func (s *Server) problem(r *request, err error) *problem.Problem {
	if errors.Is(err, engine.ErrElsewhere) {
		err = errNoOwner
	}
	p := problem.Of(err)
	if rt := r.route; errors.Is(err, engine.ErrNotFound) && rt != nil {
		p.Detail = rt.thing() + " " + r.named() + " not found"
	}
	if p.Code != "internal" {
		return p
	}
	if reason := s.e.Ready(); reason != nil {
		return notReady("not_ready", reason.Error())
	}
	s.log.Error("cannot serve a request", "method", r.route.method, "path", r.route.path, "err", err)
	return p
}

// admit finds the route and sees whether the request may take it.
func (s *Server) admit(r *request) error {
	uri := string(r.http.Request.Header.RequestURI())
	path, query, _ := strings.Cut(uri, "?")
	var err error
	if r.route, r.vars, err = s.root.Find(unsafeString(r.http.Method()), path); err != nil {
		return err
	}
	if err := access.SameOrigin(r.http); err != nil {
		return err
	}
	if r.Grant, err = s.authorize(r); err != nil {
		return err
	}
	if !r.http.IsGet() && !r.http.IsHead() {
		r.ctx = engine.WithAuthor(r.ctx, r.Grant.Name)
		if err := r.route.supports(&r.http.Request.Header); err != nil {
			return err
		}
	}
	return r.parseQuery(query)
}

// send renders the reply.
func (s *Server) send(r *request, out *reply) {
	ctx := r.http
	h := &ctx.Response.Header
	if out.status != 0 {
		ctx.SetStatusCode(out.status)
	}
	if out.version != 0 {
		h.Set(fasthttp.HeaderETag, etag(out.version))
		if isCurrent(r, out.version) {
			h.SetNoDefaultContentType(true)
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
	}
	if out.location != "" {
		h.Set(fasthttp.HeaderLocation, out.location)
	}
	if out.replayed {
		h.Set("Idempotency-Replayed", "true")
	}
	if out.body == nil && out.made == nil && out.fixed == nil {
		return
	}
	h.SetContentType(orElse(out.kind, "application/json"))
	if out.fixed != nil {
		ctx.Response.SetBodyRaw(out.fixed)
		return
	}
	b := out.made
	if b == nil {
		b = buffers.Get().(*[]byte)
		*b = out.body.render((*b)[:0])
	}
	// A page has had its room since it was read.
	s.answer(ctx, r.holder(), r.route.list || !ctx.IsGet() && !ctx.IsHead(), b)
}

func etag(version uint32) string { return `"` + strconv.FormatUint(uint64(version), 10) + `"` }

// refuse answers what could not be read as a request.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	h := &ctx.Request.Header
	arrived := s.bodies.End(h)
	s.bodies.Release(arrived)
	p := problem.Malformed("bad_request", "the request is not well-formed HTTP")
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		p.Status, p.Code, p.Detail = fasthttp.StatusRequestHeaderFieldsTooLarge, "header_too_large", "the request's head is larger than 8 KiB"
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && arrived.Refused != nil:
		p = problem.Of(arrived.Refused)
		conn.StillSending(ctx)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		conn.StillSending(ctx)
		p = s.tooLarge(h)
	case conn.IsTimeout(err):
		p.Status, p.Code, p.Detail = fasthttp.StatusRequestTimeout, "request_timeout", "the request took too long to arrive"
	}
	if s.ofConsole(h) && !ctx.IsGet() && !ctx.IsHead() { // a head that was not read is a GET
		ctx.SetUserValue(refusal{}, p)
		s.showPage(ctx)
	} else {
		p.Send(ctx)
	}
	s.stats.count(nil, ctx.Response.StatusCode(), 0)
}

// now is the time that the engine goes by, in Unix ms: the clock of the process may be wrong.
func (s *Server) now() int64 {
	now, _ := s.e.Now()
	return now
}

func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// quiet drops fasthttp's own log lines: each is about one client's connection.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
