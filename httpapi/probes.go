package httpapi

import (
	_ "embed"
	"errors"
	"net/http/pprof"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"xtimer/engine"
	"xtimer/engine/cluster"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
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

// getCluster is GET /v1/cluster: the nodes that share the cold tier, and who has which
// shard, as this node knows them. A server that is alone knows of none.
func (s *Server) getCluster(r *request) (reply, error) {
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("the nodes serve all apps: the request needs a token for all apps")
	}
	var all []nodes.Node
	var moves []cluster.Move
	if s.cfg.Cluster != nil {
		all, moves = s.cfg.Cluster.Nodes(), s.cfg.Cluster.Moves()
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "node", s.e.Node())
		b = wire.BoolMember(b, "cluster", s.cfg.Cluster != nil)
		if s.cfg.Cluster != nil {
			slowest, tooSlow := s.cfg.Cluster.SlowestBeat()
			b = wire.AppendMillis(wire.Member(b, "lease_ms"), s.cfg.Cluster.Times().Silence)
			b = wire.AppendMillis(wire.Member(b, "slowest_beat_ms"), slowest.Truncate(time.Millisecond))
			b = wire.BoolMember(b, "lease_too_short", tooSlow)
		}
		b = append(wire.Member(b, "nodes"), '[')
		for i := range all {
			b = appendNode(wire.Comma(b), &all[i])
		}
		b = append(wire.Member(append(b, ']'), "shards"), '[')
		for shard := 0; s.cfg.Cluster != nil && shard < engine.Shards; shard++ {
			owner, _ := s.cfg.Cluster.Owner(shard)
			b = wire.AppendText(wire.Comma(b), owner.Name)
		}
		b = append(wire.Member(append(b, ']'), "moves"), '[')
		for i := range moves {
			b = appendMove(wire.Comma(b), &moves[i])
		}
		return append(b, ']', '}')
	})}, nil
}

func appendMove(b []byte, m *cluster.Move) []byte {
	b = wire.TimeMember(append(b, '{'), "at", m.At)
	b = wire.TextMember(b, "how", string(m.How))
	if m.From != "" {
		b = wire.TextMember(b, "from", m.From)
	}
	b = wire.TextMember(b, "to", m.To)
	b = wire.AppendMillis(wire.Member(b, "gap_ms"), m.Gap.Truncate(time.Millisecond))
	b = append(wire.Member(b, "shards"), '[')
	for shard := range engine.Shards {
		if m.Shards.Has(shard) {
			b = strconv.AppendInt(wire.Comma(b), int64(shard), 10)
		}
	}
	return append(b, ']', '}')
}

// drainNode is POST /v1/cluster/nodes/{node}/drain: the node gives its shards to the others,
// and lives on.
func (s *Server) drainNode(r *request) (reply, error) { return s.askNode(r, engine.WishDrain) }

// undrainNode is DELETE /v1/cluster/nodes/{node}/drain.
func (s *Server) undrainNode(r *request) (reply, error) { return s.askNode(r, engine.WishServe) }

// evictNode is POST /v1/cluster/nodes/{node}/evict: the process of the node ends, and the
// other nodes take its shards.
func (s *Server) evictNode(r *request) (reply, error) { return s.askNode(r, engine.WishEnd) }

// askNode stores what the administrator wishes of a node, which the node reads at its next look.
func (s *Server) askNode(r *request, w engine.Wish) (reply, error) {
	if r.http.IsPost() {
		if err := readOptional(r, new(struct{}), nil); err != nil {
			return reply{}, err
		}
	}
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("the nodes serve all apps: the request needs an admin token for all apps")
	}
	var all []nodes.Node
	if s.cfg.Cluster != nil {
		all = s.cfg.Cluster.Nodes()
	}
	gone := &problem.Problem{
		Status: fasthttp.StatusNotFound, Code: "not_found",
		Detail: "no node " + wire.Printable(r.vars[0]) + " has a process: GET /v1/cluster lists the nodes",
	}
	i := slices.IndexFunc(all, func(n nodes.Node) bool { return n.Name == r.vars[0] })
	if i < 0 {
		return reply{}, gone
	}
	n := all[i]
	others := slices.ContainsFunc(all, func(o nodes.Node) bool {
		return o.Life != n.Life && o.State == engine.Serving && o.Wish == engine.WishServe
	})
	if w != engine.WishServe && !others {
		return reply{}, &problem.Problem{
			Status: fasthttp.StatusConflict, Code: "no_other_node",
			Detail: "no other node serves that could call the timers of node " + wire.Printable(n.Name),
		}
	}
	err := s.cfg.Cluster.Ask(r.ctx, n.Life, w)
	if errors.Is(err, engine.ErrConflict) {
		return reply{}, gone
	}
	if err != nil {
		return reply{}, err
	}
	n.Wish = w
	return reply{body: renderFunc(func(b []byte) []byte { return appendNode(b, &n) })}, nil
}

var nodeWishes = [...]string{engine.WishServe: "serve", engine.WishDrain: "drain", engine.WishEnd: "end"}

var nodeStates = [...]string{engine.Serving: "serving", engine.Draining: "draining", engine.Unfit: "unfit"}

func appendNode(b []byte, n *nodes.Node) []byte {
	b = wire.TextMember(append(b, '{'), "name", n.Name)
	b = wire.TextMember(b, "address", n.Address)
	b = wire.TextMember(b, "state", nodeStates[n.State])
	b = wire.TextMember(b, "wish", nodeWishes[n.Wish])
	b = wire.IntMember(b, "weight", int64(n.Weight))
	b = wire.IntMember(b, "shards", int64(n.Shards))
	b = wire.AppendMillis(wire.Member(b, "beat_age_ms"), max(0, n.Beaten.Truncate(time.Millisecond)))
	if n.Why != cluster.WhyNothing {
		b = wire.TextMember(b, "reason", string(n.Why))
	}
	b = wire.IntMember(b, "clock_offset_ms", n.Skew.Milliseconds())
	return append(b, '}')
}
