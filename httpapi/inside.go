package httpapi

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"xtimer/httpapi/access"
	"xtimer/httpapi/conn"
	"xtimer/httpapi/problem"
)

// inside answers the requests of the console without a socket between: each
// goes through Server.handle with its visitor's token, and so its rights, its
// limits and its answers are the API's.
type inside struct{ s *Server }

// visitorAddr is the key under which the context of a page has its visitor's address.
type visitorAddr struct{}

// refusal is the key under which the context of a page has why its form was not read: that
// is what the API answers then, and so what the page shows.
type refusal struct{}

// RoundTrip is http.RoundTripper's.
func (i inside) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := q.Context().Err(); err != nil {
		return nil, err
	}
	ctx := &fasthttp.RequestCtx{}
	from, _ := q.Context().Value(visitorAddr{}).(net.Addr)
	ctx.Init(&fasthttp.Request{}, from, quiet{})
	h := &ctx.Request.Header
	h.SetMethod(q.Method)
	h.SetRequestURI(q.URL.RequestURI())
	h.SetHost(q.URL.Host)
	for name, values := range q.Header {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	if q.Body != nil {
		b, err := io.ReadAll(q.Body)
		q.Body.Close()
		if err != nil {
			return nil, err
		}
		ctx.Request.SetBodyRaw(b)
	}
	if p, ok := q.Context().Value(refusal{}).(*problem.Problem); ok {
		p.Send(ctx)
	} else {
		i.s.api(ctx)
	}

	p := &http.Response{
		StatusCode: ctx.Response.StatusCode(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Request: q,
	}
	for k, v := range ctx.Response.Header.All() {
		p.Header.Add(string(k), string(v))
	}
	if !ctx.Response.IsBodyStream() {
		b := ctx.Response.Body()
		p.ContentLength, p.Body = int64(len(b)), io.NopCloser(bytes.NewReader(b))
		return p, nil
	}
	p.ContentLength, p.Body = -1, insideStream{ctx.Response.BodyStream(), &ctx.Response}
	return p, nil
}

// insideStream is an answer without an end; closing it ends its writer.
type insideStream struct {
	io.Reader
	resp *fasthttp.Response
}

func (i insideStream) Close() error { return i.resp.CloseBodyStream() }

// holderPages is whom the memory of the console's pages counts for.
const holderPages = "the console's pages"

// console mounts a handler of net/http for all paths that are not the API's.
func (s *Server) console(build func(http.RoundTripper) http.Handler) fasthttp.RequestHandler {
	pages := build(inside{s})
	s.signed, _ = pages.(Sessions)
	serve := fasthttpadaptor.NewFastHTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil { // or it would end the process
				s.stats.panics.Inc()
				s.log.Error("a page panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				http.Error(w, "internal error; see the server's log", http.StatusInternalServerError)
			}
		}()
		// Not the adaptor's context: that is a RequestCtx, which is used again
		// for another request while what was derived from it still looks at it.
		ctx := s.work
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			ctx = context.WithValue(ctx, visitorAddr{}, net.Addr(net.TCPAddrFromAddrPort(from)))
		}
		if p := r.Context().Value(refusal{}); p != nil {
			r.Body, ctx = http.NoBody, context.WithValue(ctx, refusal{}, p)
		}
		pages.ServeHTTP(w, r.WithContext(ctx))
	}))
	return func(ctx *fasthttp.RequestCtx) {
		serve(ctx)
		if ctx.Response.IsBodyStream() {
			conn.InPieces(ctx)
			return
		}
		if len(ctx.Response.Body()) > smallAnswer {
			b := ctx.Response.SwapBody(nil)
			s.answer(ctx, holderPages, !ctx.IsGet(), &b)
		}
	}
}

// ofConsole reports whether the console answers the request of a head.
func (s *Server) ofConsole(h *fasthttp.RequestHeader) bool {
	return s.pages != nil && !ofAPI(unsafeString(h.RequestURI())) && !forProgram(h.Peek(fasthttp.HeaderAccept))
}

// showPage answers a request to the console.
func (s *Server) showPage(ctx *fasthttp.RequestCtx) {
	if u, err := url.ParseRequestURI(unsafeString(ctx.Request.Header.RequestURI())); err != nil || u.Path == "*" { // or the pages answer 500
		problem.Malformed("bad_path", "the target of the request is not a path").Send(ctx)
		return
	}
	s.pages(ctx)
}

// visitor is the app that the memory of a form counts for. Its token is that of a session: the
// console takes no other.
func (s *Server) visitor(h *fasthttp.RequestHeader) (app string, err error) {
	token := ""
	if s.signed != nil {
		token = s.signed.Token(string(h.Peek(fasthttp.HeaderCookie)))
	}
	return s.guard.AppOf(token)
}

// forProgram reports whether the asker wants JSON and no page: a path that lacks its
// /v1 must be a 404 for it, not the console's page of the same name.
func forProgram(accept []byte) bool {
	return bytes.Contains(accept, []byte("json")) && !bytes.Contains(accept, []byte("html")) && !bytes.Contains(accept, []byte("*/*"))
}

// ofAPI reports whether a path is the API's, whether or not anything is there.
func ofAPI(uri string) bool {
	path, _, _ := strings.Cut(uri, "?")
	switch path {
	case "/livez", "/readyz", "/metrics", "/openapi.json":
		return true
	}
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/debug/")
}

// open reports whether a request is for what wants no token, such as a probe; a page of
// the console is not.
func (s *Server) open(ctx *fasthttp.RequestCtx) bool {
	uri := unsafeString(ctx.Request.Header.RequestURI())
	path, _, _ := strings.Cut(uri, "?")
	rt, _, err := s.root.Find(unsafeString(ctx.Method()), path)
	return err == nil && rt.role == access.RoleOpen && ofAPI(uri)
}
