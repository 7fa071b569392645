package httpapi

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// targetObjects are the limits of targets, and their pauses. They hold for all apps: only an
// admin of all apps sees and changes them.
var targetObjects = &objects{
	kind: limit.TargetKind, thing: "target", plural: "targets",
	of: func(r *request) (engine.ObjectKey, error) {
		switch {
		case r.Grant.App != access.AllApps:
			return engine.ObjectKey{}, errHoldsForAll
		case r.route.list:
			return engine.ObjectKey{Kind: limit.TargetKind, App: limit.EachApp}, nil
		}
		return limit.TargetKey(r.vars[0], r.vars[1], r.vars[2])
	},
	name: func(b []byte, k engine.ObjectKey) []byte {
		return wire.TextMember(b, "target", limit.NameOf(k).Key)
	},
	decode: decodeFlow, keep: limit.Keep, members: (*Server).appendFlow, stands: true,
}

func targetRoutes() []route {
	const list, one = "/v1/targets", "/v1/targets/{scheme}/{host}/{port}"
	k := targetObjects
	return []route{
		{method: fasthttp.MethodGet, path: list, role: access.RoleAdmin, handle: k.list, list: true, query: paging},
		{method: fasthttp.MethodGet, path: one, role: access.RoleAdmin, handle: k.get},
		{method: fasthttp.MethodPut, path: one, role: access.RoleAdmin, handle: k.put, query: []string{"dry_run"}, preconditions: []string{fasthttp.HeaderIfMatch, fasthttp.HeaderIfNoneMatch}},
		{method: fasthttp.MethodDelete, path: one, role: access.RoleAdmin, handle: k.delete, preconditions: []string{fasthttp.HeaderIfMatch}},
		{method: fasthttp.MethodPost, path: one + "/pause", role: access.RoleAdmin, handle: k.changedBy(paused)},
		{method: fasthttp.MethodPost, path: one + "/resume", role: access.RoleAdmin, handle: k.changedBy(resumed)},
		{method: fasthttp.MethodPost, path: one + "/cooldown", role: access.RoleAdmin, handle: k.changedBy(cooled)},
	}
}

// gates are how flow keys and targets stand at all nodes together.
type gates struct {
	of      map[engine.ObjectKey]nodes.Gate
	now     int64
	partial bool // a node did not tell
}

// gatesOf asks all nodes how objects stand.
func (s *Server) gatesOf(r *request, k *objects, os ...*engine.Object) (g gates) {
	if !k.stands || len(os) == 0 {
		return g
	}
	g.now, _ = s.e.Now()
	keys := make([]engine.ObjectKey, len(os))
	for i, o := range os {
		keys[i] = o.ObjectKey
	}
	all := s.gates(keys)
	if s.cfg.Cluster != nil {
		for _, a := range s.askEach(r, s.others(), func(q *nodes.Request) { *q = nodes.AskGates(keys) }) {
			of, err := nodes.ReadGates(a.Answer, len(keys))
			if a.err != nil || err != nil {
				g.partial = true
				s.log.Warn("a node does not tell how flow keys stand", "node", a.node.Name, "error", cmp.Or(a.err, err))
				continue
			}
			for i := range of {
				all[i].Add(of[i])
			}
		}
	}
	g.of = make(map[engine.ObjectKey]nodes.Gate, len(keys))
	for i, o := range os {
		if x, _, err := limit.InForce(s.e.Objects(), o, g.now); err == nil {
			all[i].Closed = max(all[i].Closed, x.CooldownUntil)
		}
		g.of[o.ObjectKey] = all[i]
	}
	return g
}

// gates are how flow keys and targets stand at this node.
func (s *Server) gates(keys []engine.ObjectKey) []nodes.Gate {
	all := make([]nodes.Gate, len(keys))
	for i, k := range keys {
		g, oldest, used := s.e.Gate(limit.NameOf(k))
		all[i] = nodes.Gate{Used: used, Waiting: g.Waiting, InFlight: g.InFlight, Oldest: oldest, Breaker: g.Breaker, Every: g.Every, Resuming: s.e.Resuming(limit.NameOf(k))}
		all[i].Closed = g.Closed.Milliseconds()
		if g.Next != flow.Never {
			all[i].Next = g.Next.Milliseconds()
		}
	}
	return all
}

// append appends how an object stands.
func (g *gates) append(b []byte, o *engine.Object) []byte {
	x, stands := g.of[o.ObjectKey]
	if !stands {
		return b
	}
	if x.Closed > g.now {
		b = wire.TimeMember(b, "cooldown_until", x.Closed)
	}
	if x.Resuming != "" {
		b = wire.TextMember(b, "resuming", x.Resuming)
	}
	if x.Used {
		b = wire.IntMember(b, "waiting", int64(x.Waiting))
		if x.Oldest != 0 {
			b = wire.TimeMember(b, "oldest_at", x.Oldest)
		}
		b = wire.IntMember(b, "in_flight", int64(x.InFlight))
		if x.Breaker != "" {
			b = wire.TextMember(b, "breaker_state", x.Breaker)
		}
		if x.Next != 0 {
			b = wire.TimeMember(b, "next_at", x.Next)
		}
		if wait, known := x.Wait(g.now); known {
			b = wire.DurationMember(b, "wait_estimate", wait.Truncate(time.Millisecond))
		}
	}
	if g.partial {
		b = wire.BoolMember(b, "partial", true)
	}
	return b
}

// tellGates is POST /v1/internal/gates: another node asks how flow keys and targets stand.
func (s *Server) tellGates(r *request) (reply, error) {
	b, err := r.message()
	if err != nil {
		return reply{}, err
	}
	var keys []engine.ObjectKey
	if err := json.Unmarshal(b, &keys); err != nil {
		return reply{}, problem.Malformed("bad_message", err.Error())
	}
	b, err = json.Marshal(s.gates(keys))
	return reply{made: &b}, err
}

// waitingAsk is what a node asks another for.
type waitingAsk struct {
	inspect.WaitingCursor
	Limit int
}

// waitingFor is GET /v1/apps/{app}/flows/{name}/waiting.
func (s *Server) waitingFor(r *request) (reply, error) {
	key, err := flowObjects.key(s, r, false)
	if err != nil {
		return reply{}, err
	}
	after, limit, err := s.page(r)
	if err != nil {
		return reply{}, err
	}
	if strings.HasSuffix(key.Name, "*") {
		return reply{}, engine.Invalid("name", "is_pattern", "%s is a pattern, and each key that matches has its own queue: name one key", wire.Quote(key.Name))
	}
	c := inspect.WaitingCursor{App: key.App, Key: key.Name}
	if after != "" {
		if json.Unmarshal([]byte(after), &c) != nil || c.App != key.App || c.Key != key.Name {
			return reply{}, errBadCursor
		}
	}
	moves := s.moves()
	if after == "" {
		c.Moves = moves
	}
	l, whole, err := s.waiting(r, &c, limit)
	whole = whole && c.Moves == moves && s.moves() == moves // after a move a node may have passed over tasks that came since
	if err != nil {
		return reply{}, err
	}
	b := buffers.Get().(*[]byte)
	*b = append((*b)[:0], `{"tasks":[`...)
	for n := 0; n < limit && len(*b) <= pageBytes; n++ {
		t := l.Take()
		if t == nil {
			break
		}
		*b = wire.AppendTask(wire.Comma(*b), t)
	}
	*b = append(*b, ']')
	if next, more := l.Cursor(&c); more {
		at, err := json.Marshal(next)
		if err != nil {
			return reply{}, err
		}
		*b = s.cursorMember(*b, r, string(at))
	}
	if !whole {
		*b = wire.BoolMember(*b, "partial", true)
	}
	*b = append(*b, '}')
	return reply{made: b}, nil
}

// moves is how often shards have moved among the nodes, as far as this one knows.
func (s *Server) moves() uint64 {
	if life := s.e.Life(); life != nil {
		if seen := life.Seen(); seen != nil {
			return seen.Moves
		}
	}
	return 0
}

// waiting asks all nodes what waits for a flow key.
func (s *Server) waiting(r *request, c *inspect.WaitingCursor, limit int) (l *inspect.WaitingList, whole bool, err error) {
	l, whole = inspect.NewWaitingList(c), true
	own, err := s.e.Waiting(r.ctx, c.App, c.Key, c.Of[s.e.Node()], limit)
	if err != nil {
		return nil, false, err
	}
	l.Add(s.e.Node(), own)
	if s.cfg.Cluster == nil {
		return l, true, nil
	}
	for _, a := range s.askEach(r, s.others(), func(q *nodes.Request) { *q = nodes.AskWaiting(waitingAsk{*c, limit}) }) {
		page, err := readWaiting(a)
		if err != nil {
			whole = false
			s.log.Warn("the list of what waits for a flow key lacks a node", "node", a.node.Name, "error", err)
			continue
		}
		l.Add(a.node.Name, page)
	}
	return l, whole, nil
}

// readWaiting reads what tellWaiting of another node has answered.
func readWaiting(a nodeAnswer) (page inspect.WaitingPage, err error) {
	if a.err != nil {
		return page, a.err
	}
	if err := nodes.ReadWaiting(a.Answer, &page); err != nil {
		return page, err
	}
	return page, page.Decode()
}

// tellWaiting is POST /v1/internal/waiting: another node asks what waits for a flow key.
func (s *Server) tellWaiting(r *request) (reply, error) {
	b, err := r.message()
	if err != nil {
		return reply{}, err
	}
	var q waitingAsk
	if err := json.Unmarshal(b, &q); err != nil {
		return reply{}, problem.Malformed("bad_message", err.Error())
	}
	page, err := s.e.Waiting(r.ctx, q.App, q.Key, q.Of[s.e.Node()], min(max(q.Limit, 1), maxLimit))
	if err != nil {
		return reply{}, err
	}
	page.Encode(pageBytes)
	b, err = json.Marshal(&page)
	return reply{made: &b}, err
}
