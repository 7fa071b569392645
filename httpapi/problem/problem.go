// Package problem is what the API answers when it cannot do what it was asked,
// application/problem+json (RFC 9457).
package problem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/httpapi/wire"
)

// Problem is an answer of trouble. Its type is about:blank, so that its title is the
// status's phrase; what programs go by is its code.
type Problem struct {
	Status int
	Code   string
	Detail string
	Fields []engine.FieldFault
	Retry  int                   // Retry-After in seconds; 0: none
	Allow  string                // of a 405
	Rate   *engine.RateLimit     // of a 429 by a limit of requests
	More   func(b []byte) []byte // appends further members; nil: there are none
}

func (p *Problem) Error() string { return p.Detail }

// statusOf gives each kind of fault its status.
var statusOf = [...]int{
	engine.FaultMalformed:    fasthttp.StatusBadRequest,
	engine.FaultInvalid:      fasthttp.StatusUnprocessableEntity,
	engine.FaultNotFound:     fasthttp.StatusNotFound,
	engine.FaultConflict:     fasthttp.StatusConflict,
	engine.FaultPrecondition: fasthttp.StatusPreconditionFailed,
	engine.FaultTooMany:      fasthttp.StatusTooManyRequests,
	engine.FaultExceeded:     fasthttp.StatusTooManyRequests,
	engine.FaultUnavailable:  fasthttp.StatusServiceUnavailable,
	engine.FaultFull:         fasthttp.StatusInsufficientStorage,
}

// Of turns any error into the answer of it. What is nobody's fault but
// ours is a 500 whose cause is for the log alone.
func Of(err error) *Problem {
	var p *Problem
	var f *engine.Fault
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &f):
		p = &Problem{Status: statusOf[f.Kind], Code: f.Code, Detail: f.Detail, Fields: f.Fields}
		if f.Kind == engine.FaultTooMany || f.Kind == engine.FaultUnavailable {
			p.Retry = 1
		}
		if p.Rate = f.Rate; p.Rate != nil {
			p.Retry = seconds(p.Rate.Wait)
		}
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Problem{
			Status: fasthttp.StatusServiceUnavailable, Code: "shutting_down", Retry: 1,
			Detail: "the server is stopping and cannot serve the request",
		}
	default:
		return &Problem{
			Status: fasthttp.StatusInternalServerError, Code: "internal",
			Detail: "internal error; see the server's log",
		}
	}
}

// seconds rounds up, to one at least.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// Malformed is a 400 about what is not as HTTP or JSON want it.
func Malformed(code, detail string) *Problem {
	return &Problem{Status: fasthttp.StatusBadRequest, Code: code, Detail: detail}
}

// BadField is a 400 about one field or query parameter.
func BadField(field, code, detail string) *Problem {
	return &Problem{
		Status: fasthttp.StatusBadRequest, Code: code, Detail: field + ": " + detail,
		Fields: []engine.FieldFault{{Field: field, Detail: detail}},
	}
}

// Forbidden is a 403 of a request whose token may not do that.
func Forbidden(detail string) *Problem {
	return &Problem{Status: fasthttp.StatusForbidden, Code: "forbidden", Detail: detail}
}

// Together is one answer to all that is wrong with the parameters of a request; an error
// that is no 400 of a field stands alone.
func Together(errs ...error) error {
	var all *Problem
	for _, err := range errs {
		var p *Problem
		switch {
		case err == nil:
		case !errors.As(err, &p) || p.Status != fasthttp.StatusBadRequest || len(p.Fields) == 0:
			return err
		case all == nil:
			c := *p
			all = &c
		default:
			all.Fields = slices.Concat(all.Fields, p.Fields)
		}
	}
	if all == nil {
		return nil
	}
	if more := len(all.Fields) - 1; more > 0 {
		all.Detail = all.Fields[0].Field + ": " + all.Fields[0].Detail + " (and " + strconv.Itoa(more) + " more)"
	}
	return all
}

// Append appends the problem as JSON.
func (p *Problem) Append(b []byte) []byte {
	b = append(b, `{"type":"about:blank"`...)
	b = wire.TextMember(b, "title", fasthttp.StatusMessage(p.Status))
	b = wire.IntMember(b, "status", int64(p.Status))
	b = wire.TextMember(b, "detail", p.Detail)
	b = wire.TextMember(b, "code", p.Code)
	if len(p.Fields) > 0 {
		b = append(wire.Member(b, "errors"), '[')
		for _, f := range p.Fields {
			b = wire.TextMember(append(wire.Comma(b), '{'), "field", f.Field)
			b = append(wire.TextMember(b, "detail", f.Detail), '}')
		}
		b = append(b, ']')
	}
	if p.More != nil {
		b = p.More(b)
	}
	return append(b, '}')
}

// Send writes the problem as the answer.
func (p *Problem) Send(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	ctx.SetStatusCode(p.Status)
	h.SetContentType("application/problem+json")
	if p.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.Retry))
	}
	if r := p.Rate; r != nil { // draft-ietf-httpapi-ratelimit-headers
		h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", r.Name, r.Most, seconds(r.Window)))
		h.Set("RateLimit", fmt.Sprintf("%q;r=0;t=%d", r.Name, p.Retry))
	}
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.Status == fasthttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="xtimer"`)
	}
	ctx.SetBody(p.Append(nil))
}
