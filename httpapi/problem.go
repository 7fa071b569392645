package httpapi

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/httpapi/wire"
)

// problem is an answer of trouble, application/problem+json (RFC 9457). Its
// type is about:blank, so that its title is the status's phrase; what programs
// go by is its code.
type problem struct {
	status int
	code   string
	detail string
	fields []engine.FieldFault
	tiers  map[string]bool // of /readyz: up or not, by name
	retry  int             // Retry-After in seconds; 0: none
	allow  string          // of a 405
}

func (p *problem) Error() string { return p.detail }

// statusOf gives each kind of fault its status.
var statusOf = [...]int{
	engine.FaultMalformed:    fasthttp.StatusBadRequest,
	engine.FaultInvalid:      fasthttp.StatusUnprocessableEntity,
	engine.FaultNotFound:     fasthttp.StatusNotFound,
	engine.FaultConflict:     fasthttp.StatusConflict,
	engine.FaultPrecondition: fasthttp.StatusPreconditionFailed,
	engine.FaultTooMany:      fasthttp.StatusTooManyRequests,
	engine.FaultUnavailable:  fasthttp.StatusServiceUnavailable,
	engine.FaultFull:         fasthttp.StatusInsufficientStorage,
}

// problemOf turns any error into the answer of it. What is nobody's fault but
// ours is a 500 whose cause is for the log alone.
func problemOf(err error) *problem {
	var p *problem
	var f *engine.Fault
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &f):
		p = &problem{status: statusOf[f.Kind], code: f.Code, detail: f.Detail, fields: f.Fields}
		if f.Kind == engine.FaultTooMany || f.Kind == engine.FaultUnavailable {
			p.retry = 1
		}
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &problem{
			status: fasthttp.StatusServiceUnavailable, code: "shutting_down", retry: 1,
			detail: "the server is stopping and cannot serve the request",
		}
	default:
		return &problem{
			status: fasthttp.StatusInternalServerError, code: "internal",
			detail: "internal error; see the server's log",
		}
	}
}

func malformed(code, detail string) *problem {
	return &problem{status: fasthttp.StatusBadRequest, code: code, detail: detail}
}

// badField is a 400 about one field or query parameter.
func badField(field, code, detail string) *problem {
	return &problem{
		status: fasthttp.StatusBadRequest, code: code, detail: field + ": " + detail,
		fields: []engine.FieldFault{{Field: field, Detail: detail}},
	}
}

// together is one answer to all that is wrong with the parameters of a request; an error
// that is no 400 of a field stands alone.
func together(errs ...error) error {
	var all *problem
	for _, err := range errs {
		var p *problem
		switch {
		case err == nil:
		case !errors.As(err, &p) || p.status != fasthttp.StatusBadRequest || len(p.fields) == 0:
			return err
		case all == nil:
			c := *p
			all = &c
		default:
			all.fields = slices.Concat(all.fields, p.fields)
		}
	}
	if all == nil {
		return nil
	}
	if more := len(all.fields) - 1; more > 0 {
		all.detail = all.fields[0].Field + ": " + all.fields[0].Detail + " (and " + strconv.Itoa(more) + " more)"
	}
	return all
}

func (p *problem) render(b []byte) []byte {
	b = append(b, `{"type":"about:blank"`...)
	b = wire.TextMember(b, "title", fasthttp.StatusMessage(p.status))
	b = wire.IntMember(b, "status", int64(p.status))
	b = wire.TextMember(b, "detail", p.detail)
	b = wire.TextMember(b, "code", p.code)
	if len(p.fields) > 0 {
		b = append(wire.Member(b, "errors"), '[')
		for _, f := range p.fields {
			b = wire.TextMember(append(wire.Comma(b), '{'), "field", f.Field)
			b = append(wire.TextMember(b, "detail", f.Detail), '}')
		}
		b = append(b, ']')
	}
	if p.tiers != nil {
		b = tiersMember(b, p.tiers)
	}
	return append(b, '}')
}

// send writes the problem as the answer.
func (p *problem) send(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	ctx.SetStatusCode(p.status)
	h.SetContentType("application/problem+json")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retry))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.status == fasthttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="xtimer"`)
	}
	ctx.SetBody(p.render(nil))
}
