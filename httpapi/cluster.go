package httpapi

import (
	"time"

	"xtimer/engine"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// getCluster is GET /v1/cluster: the nodes that share the cold tier, and who has which
// shard, as this node knows them. A server that is alone knows of none.
func (s *Server) getCluster(r *request) (reply, error) {
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("the nodes serve all apps: the request needs a token for all apps")
	}
	var all []nodes.Node
	if s.cfg.Cluster != nil {
		all = s.cfg.Cluster.Nodes()
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "node", s.e.Node())
		b = wire.BoolMember(b, "cluster", s.cfg.Cluster != nil)
		b = append(wire.Member(b, "nodes"), '[')
		for i := range all {
			b = appendNode(wire.Comma(b), &all[i])
		}
		b = append(wire.Member(append(b, ']'), "shards"), '[')
		for shard := 0; s.cfg.Cluster != nil && shard < engine.Shards; shard++ {
			owner, _ := s.cfg.Cluster.Owner(shard)
			b = wire.AppendText(wire.Comma(b), owner.Name)
		}
		return append(b, ']', '}')
	})}, nil
}

var nodeStates = [...]string{engine.Serving: "serving", engine.Draining: "draining", engine.Unfit: "unfit"}

func appendNode(b []byte, n *nodes.Node) []byte {
	b = wire.TextMember(append(b, '{'), "name", n.Name)
	b = wire.TextMember(b, "address", n.Address)
	b = wire.TextMember(b, "state", nodeStates[n.State])
	b = wire.IntMember(b, "weight", int64(n.Weight))
	b = wire.IntMember(b, "shards", int64(n.Shards))
	b = wire.AppendMillis(wire.Member(b, "beat_age_ms"), max(0, n.Beaten.Truncate(time.Millisecond)))
	return append(b, '}')
}
