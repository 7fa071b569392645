package httpapi

import (
	"fmt"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/conn"
	"xtimer/httpapi/problem"
)

// limits gives a batch more room and more time, and lets a large body arrive only where
// there is room for it. It is the first to see a request, and brings its target into
// the form in which all others look at it.
func (s *Server) limits(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if h.RequestURI()[0] != '/' {
		conn.OriginForm(h)
	}
	limit, c := s.cfg.MaxBody, fasthttp.RequestConfig{}
	if string(h.RequestURI()) == batchPath {
		limit, c = s.cfg.MaxBatch, fasthttp.RequestConfig{MaxRequestBodySize: s.cfg.MaxBatch, ReadTimeout: 6 * s.cfg.ReadTimeout}
	}
	if n := h.ContentLength(); n > conn.SmallBody || n == -1 {
		app, err := s.sender(h)
		if !s.bodies.Begin(h, limit, app, err, 12*s.cfg.ReadTimeout) {
			c.MaxRequestBodySize = 1 // refuse answers
		}
	}
	return c
}

func (s *Server) tooLarge() *problem.Problem {
	return &problem.Problem{
		Status: fasthttp.StatusRequestEntityTooLarge, Code: "body_too_large",
		Detail: fmt.Sprintf("the body is too large: the limit is %d bytes, and for a batch %d", s.cfg.MaxBody, s.cfg.MaxBatch),
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
	p.Send(ctx)
	s.stats.count(nil, p.Status, 0)
	return p.Status
}
