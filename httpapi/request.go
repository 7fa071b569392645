package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"xtimer/httpapi/conn"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/httpapi/access"
	"xtimer/httpapi/paths"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// request is what a handler gets.
type request struct {
	http  *fasthttp.RequestCtx
	ctx   context.Context // ends when the server has waited long enough
	route *route
	vars  [paths.MaxVars]string // of the path, in order, decoded
	query map[string]string
	access.Grant
	ofNode bool // another node makes it, for a client of its own
}

// parseQuery reads the parameters and refuses those that the route does not
// take, and those given twice.
func (r *request) parseQuery(raw string) error {
	if raw == "" {
		return nil
	}
	r.query = make(map[string]string)
	var errs []error
	for raw != "" {
		var pair string
		if pair, raw, _ = strings.Cut(raw, "&"); pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(k)
		if err != nil {
			return problem.Malformed("bad_query", "the query has an invalid percent-encoding: "+err.Error())
		}
		if !slices.Contains(r.route.query, name) {
			known := "the path takes no parameters"
			if len(r.route.query) > 0 {
				known = "known parameters are " + strings.Join(r.route.query, ", ")
			}
			errs = append(errs, problem.BadField(wire.Printable(name), "unknown_parameter", "is not a parameter of this path; "+known))
			continue
		}
		if _, twice := r.query[name]; twice {
			errs = append(errs, problem.BadField(name, "duplicate_parameter", "is given twice"))
		}
		if r.query[name], err = url.QueryUnescape(v); err != nil || !wire.IsText(r.query[name]) {
			errs = append(errs, problem.BadField(name, "bad_query", "is not percent-encoded UTF-8"))
		}
	}
	return problem.Together(errs...)
}

// body is the request's body; it is overwritten by the connection's next
// request, so that whoever keeps some of it copies it.
func (r *request) body() ([]byte, error) {
	if e := r.http.Request.Header.ContentEncoding(); len(e) > 0 && string(e) != "identity" {
		return nil, &problem.Problem{
			Status: fasthttp.StatusUnsupportedMediaType, Code: "content_encoding", Detail: "send the body without Content-Encoding",
		}
	}
	return r.http.PostBody(), nil
}

// message is the body of a request that another node makes for itself.
func (r *request) message() ([]byte, error) {
	if !r.ofNode {
		return nil, errForNodes
	}
	return r.body()
}

// answerMessage answers a message of another node; do makes the answer.
func (r *request) answerMessage(do func(message []byte) ([]byte, error)) (reply, error) {
	b, err := r.message()
	if err != nil {
		return reply{}, err
	}
	if b, err = do(b); err != nil {
		return reply{}, problem.Malformed("bad_message", err.Error())
	}
	return reply{made: &b, kind: "application/octet-stream"}, nil
}

// optionalBody is nil when there is none, or only white space.
func (r *request) optionalBody() ([]byte, error) {
	b, err := r.body()
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, err
	}
	return b, err
}

// timerID reads the timer of the path. What cannot be an id is not found.
func (r *request) timerID() (engine.TimerID, error) {
	id, err := engine.ParseTimerID(r.vars[0])
	if err != nil {
		return 0, engine.ErrNotFound
	}
	return id, nil
}

// app is the app that a list is limited to: the one asked for, or the token's.
func (r *request) limitApp(asked string) (string, error) {
	switch {
	case r.Grant.App == access.AllApps:
		return asked, nil
	case asked != "" && asked != r.Grant.App:
		return "", wrongApp(r.Grant.App)
	default:
		return r.Grant.App, nil
	}
}

func wrongApp(app string) *problem.Problem {
	p := problem.Forbidden("the token is valid only for the app " + app)
	p.Fields = []engine.FieldFault{{Field: "app", Detail: p.Detail}}
	return p
}

// named is what the path names, for people: billing/order-7, or an id.
func (r *request) named() string {
	names := make([]string, 0, paths.MaxVars)
	for _, v := range r.vars {
		if v != "" {
			names = append(names, wire.Printable(v))
		}
	}
	return strings.Join(names, "/")
}

// number reads a parameter within [low, high].
func (r *request) number(name string, def, low, high int) (int, error) {
	s, ok := r.query[name]
	if !ok {
		return def, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high || s[0] == '+' {
		return 0, problem.BadField(name, "out_of_range", "must be a number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
	return n, nil
}

// holder is whom the memory of the answer counts for: the app of the token. What wants
// no token counts for none.
func (r *request) holder() string {
	if r.route.role == access.RoleOpen {
		return ""
	}
	return r.Grant.App
}

// boolean reads a parameter that is true or false.
func (r *request) boolean(name string) (bool, error) {
	switch s, ok := r.query[name]; {
	case !ok || s == "false":
		return false, nil
	case s == "true":
		return true, nil
	default:
		return false, problem.BadField(name, "wrong_type", "must be true or false")
	}
}

// parseInstant reads a parameter that is a time.
func parseInstant(name, s string) (int64, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms > 0 && ms <= engine.MaxDue {
		if wire.IsSeconds(ms) {
			return 0, problem.BadField(name, "out_of_range", wire.NotSeconds(ms))
		}
		return ms, nil
	}
	ms, fault, ok := wire.ParseTime(s)
	if !ok {
		if fault == "" {
			fault = wire.Quote(s) + " is neither a time like 2026-11-20T17:00:00.250Z nor Unix ms"
		}
		return 0, problem.BadField(name, "wrong_type", fault)
	}
	return ms, nil
}

// reply is what a handler gives back.
type reply struct {
	status   int      // 0: 200
	body     renderer // nil: none
	made     *[]byte  // the body as it is, from buffers; nil: none
	fixed    []byte   // the body as it is and stays; nil: none
	kind     string   // Content-Type; "": application/json
	version  uint32   // of the timer, for the ETag; 0: none
	location string
	replayed bool // by its Idempotency-Key
	sent     bool // the handler wrote the answer itself
}

// renderer appends an answer to b.
type renderer interface {
	render(b []byte) []byte
}

// rendered is an answer that is ready.
type rendered []byte

func (r rendered) render(b []byte) []byte { return append(b, r...) }

// renderFunc is a renderer that is a function.
type renderFunc func(b []byte) []byte

func (f renderFunc) render(b []byte) []byte { return f(b) }

// taskAnswer renders one task.
type taskAnswer struct{ t *engine.Task }

func (a taskAnswer) render(b []byte) []byte { return wire.AppendTask(b, a.t) }

// viewAnswer renders a timer as a reader sees it.
type viewAnswer struct{ v inspect.View }

func (a viewAnswer) render(b []byte) []byte { return wire.AppendView(b, &a.v) }

// limits gives a batch more room and more time, and lets a large body arrive only where
// there is room for it. It is the first to see a request, and brings its target into
// the form in which all others look at it.
func (s *Server) limits(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if h.RequestURI()[0] != '/' {
		conn.OriginForm(h)
	}
	limit := s.largest(h)
	c := fasthttp.RequestConfig{MaxRequestBodySize: limit}
	if string(h.RequestURI()) == batchPath {
		c.ReadTimeout = 6 * s.cfg.ReadTimeout
	}
	if n := h.ContentLength(); n > conn.SmallBody && n <= limit || n == -1 {
		sender := s.sender
		if s.ofConsole(h) {
			sender = s.visitor
		}
		app, err := sender(h)
		if !s.bodies.Begin(h, limit, app, err, 12*s.cfg.ReadTimeout) {
			c.MaxRequestBodySize = 1 // refuse answers
		}
	}
	return c
}

// maxForm bounds a form of the console: percent-encoded, the largest body of a callback has
// three times its size.
const maxForm = 2 << 20

// largest is the size of the largest body that may follow a head.
func (s *Server) largest(h *fasthttp.RequestHeader) int {
	switch {
	case string(h.RequestURI()) == batchPath:
		return s.cfg.MaxBatch
	case s.ofConsole(h):
		return maxForm
	}
	return s.cfg.MaxBody
}

func (s *Server) tooLarge(h *fasthttp.RequestHeader) *problem.Problem {
	if s.ofConsole(h) {
		return &problem.Problem{
			Status: fasthttp.StatusRequestEntityTooLarge, Code: "body_too_large",
			Detail: fmt.Sprintf("the form is too large: the limit is %d bytes", maxForm),
		}
	}
	return &problem.Problem{
		Status: fasthttp.StatusRequestEntityTooLarge, Code: "body_too_large",
		Detail: fmt.Sprintf("the body is too large: the limit is %d bytes, and for a batch %d", s.cfg.MaxBody, s.cfg.MaxBatch),
	}
}

// expect answers Expect: 100-continue. A body that is too large, or is not to be read, is
// refused before it is sent.
func (s *Server) expect(ctx *fasthttp.RequestCtx) (status int) {
	h := &ctx.Request.Header
	if h.ContentLength() <= s.largest(h) && s.bodies.Refused(h) == nil {
		return fasthttp.StatusContinue
	}
	s.refuse(ctx, fasthttp.ErrBodyTooLarge)
	return ctx.Response.StatusCode()
}
