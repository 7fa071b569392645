package httpapi

import (
	_ "embed"
	"net/http/pprof"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"xtimer/engine"
	"xtimer/httpapi/access"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// livez is GET /livez: the process answers.
func (s *Server) livez(*request) (reply, error) { return statusReply("ok"), nil }

func statusReply(status string) reply {
	return reply{body: renderFunc(func(b []byte) []byte {
		return append(wire.TextMember(append(b, '{'), "status", status), '}')
	})}
}

// readyz is GET /readyz: this node serves and fires; else 503, and why not. Both
// say which tiers are there: without the warm one it is ready, and slower. What is amiss
// although it fires is a warning: a clock that is behind, targets that are late.
func (s *Server) readyz(*request) (reply, error) {
	tiers := s.e.Tiers()
	var not *problem.Problem
	if s.draining.Load() {
		not = notReady("draining", "this node is shutting down")
	} else if err := s.e.Ready(); err != nil {
		not = notReady("not_ready", err.Error())
	}
	if not != nil {
		not.More = func(b []byte) []byte { return tiersMember(b, tiers) }
		return reply{}, not
	}
	warnings := s.e.Warnings()
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "status", "ready")
		return append(warningsMember(tiersMember(b, tiers), warnings), '}')
	})}, nil
}

func notReady(code, reason string) *problem.Problem {
	return &problem.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: code, Detail: reason, Retry: 1,
		Fields: []engine.FieldFault{{Field: "ready", Detail: reason}},
	}
}

// getVersion is GET /v1/version.
func (s *Server) getVersion(*request) (reply, error) {
	v := s.cfg.Version
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "version", v.Version)
		b = wire.TextMember(b, "commit", v.Commit)
		return append(wire.TextMember(b, "go", v.Go), '}')
	})}, nil
}

// pprof is GET /debug/pprof/….
func (s *Server) pprof(r *request) (reply, error) {
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("a profile covers the whole process, including its command line: the request needs a token for all apps")
	}
	if len(r.vars) == 0 || r.vars[0] == "" {
		fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index)(r.http)
	} else {
		pprofhandler.PprofHandler(r.http)
	}
	return reply{sent: true}, nil
}

// openAPI describes every route, parameter and schema; it is written by hand,
// and openapi_test.go holds it against the routing table and the real answers.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI is GET /openapi.json.
func (s *Server) getOpenAPI(*request) (reply, error) { return reply{fixed: openAPI}, nil }
