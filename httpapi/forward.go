package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// In a cluster a client may ask any node. What is about one timer only the node that owns
// the timer's shard can do, or knows to the last instant: another node makes the request
// there for its client, as the client sent it, over one hop. While the shard moves, or its
// owner does not answer, the node looks again who owns it, until ownerWait is over.
//
// A request that may have been carried out is made again only if that changes nothing.

// subject is what a request is about, and so which node answers it.
type subject uint8

const (
	noTimer  subject = iota // any node answers
	newTimer                // any node that owns shards
	timerOfID
	timerOfName
	taskOfKey
)

// Times of a request that another node answers.
const (
	ownerWait  = 4 * time.Second  // for a node that owns the shard and can be reached
	answerWait = 30 * time.Second // for the answer of a node that has the request

	firstPause, longestPause = 10 * time.Millisecond, 100 * time.Millisecond // between two looks
	livingLook               = 100 * time.Millisecond                        // whether a node that is to answer lives
)

// respond has the handler of the request answer, or the node that can.
func (s *Server) respond(r *request) (reply, error) {
	if s.cfg.Cluster == nil || r.route.about == noTimer {
		return r.route.handle(s, r)
	}
	if r.ofNode {
		return s.respondToNode(r)
	}
	why := error(errNoOwner)
	for until, pause := time.Now().Add(ownerWait), firstPause; ; pause = min(2*pause, longestPause) {
		out, err := s.respondOnce(r)
		var again *askAgain
		if !errors.As(err, &again) {
			return out, err
		}
		if again.why != nil {
			why = again.why
		}
		if time.Until(until) < pause || len(s.cfg.Cluster.Nodes()) == 0 {
			return reply{}, why
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return reply{}, r.ctx.Err()
		}
	}
}

// askAgain is the error of a request that nobody has carried out, or that may be made again.
type askAgain struct{ why error } // nil: nobody owns the shard yet

func (a *askAgain) Error() string { return "the request is to be made again" }

// respondToNode answers another node, which asks again elsewhere after a 421.
func (s *Server) respondToNode(r *request) (reply, error) {
	if r.route.about == newTimer && s.e.Owned() == (engine.Set{}) {
		return reply{}, errMisdirected
	}
	out, err := r.route.handle(s, r)
	var f *engine.Fault
	if errors.As(err, &f) && (f.Code == engine.ErrElsewhere.Code || f.Code == "not_ready") {
		err = errMisdirected
	}
	return out, err
}

// respondOnce has the handler answer if the subject of the request is this node's, and else
// the owner.
func (s *Server) respondOnce(r *request) (reply, error) {
	own := s.e.Owned()
	shard := r.shard()
	here := shard != noShard && own.Has(shard)
	switch r.route.about {
	case timerOfName: // the handler finds the timer, and so whose it is
		here = true
	case newTimer:
		here = own != (engine.Set{})
	default:
		here = here || shard == noShard // the handler tells that there is no such timer
	}
	if here {
		out, err := r.route.handle(s, r)
		if !errors.Is(err, engine.ErrElsewhere) {
			return out, err
		}
	}
	if r.route.about == timerOfName {
		t, err := s.e.DefinitionByName(r.ctx, r.vars[0], r.vars[1])
		switch {
		case err == nil:
			shard = t.ID.Shard()
		case !isFault(err, engine.FaultNotFound):
			return reply{}, err
		}
	}
	n, ok := s.owner(shard)
	if !ok {
		return reply{}, &askAgain{}
	}
	return s.forward(r, n)
}

const noShard = -1

// shard is the shard of what the path names; noShard if the path does not tell.
func (r *request) shard() int {
	switch r.route.about {
	case timerOfID:
		if id, err := r.timerID(); err == nil {
			return id.Shard()
		}
	case taskOfKey:
		if k, err := engine.ParseKey(r.vars[0]); err == nil {
			return k.Timer.Shard()
		}
	}
	return noShard
}

// owner finds the other node that owns a shard; of noShard, one that owns any.
func (s *Server) owner(shard int) (n nodes.Node, ok bool) {
	if shard != noShard {
		n, ok = s.cfg.Cluster.Owner(shard)
		return n, ok && !n.Own // if it is this one, the engine has it soon, or gives it away
	}
	all := slices.DeleteFunc(s.cfg.Cluster.Nodes(), func(n nodes.Node) bool { return n.Own || n.Shards == 0 || n.State == engine.Draining })
	if len(all) == 0 {
		return n, false
	}
	return all[rand.IntN(len(all))], true
}

// forward has another node answer.
func (s *Server) forward(r *request, n nodes.Node) (reply, error) {
	ctx, cancel := context.WithTimeout(r.ctx, answerWait)
	defer cancel()
	a, err := s.ask(ctx, n, r.forNode())
	switch {
	case err == nil && a.Status == fasthttp.StatusMisdirectedRequest:
		s.stats.forwarded.moved.Inc()
		return reply{}, &askAgain{}
	case err == nil && a.Status == fasthttp.StatusUnauthorized: // of this node: the client's token is good
		s.stats.forwarded.failed.Inc()
		s.log.Error("another node does not take the requests of this node", "node", n.Name, "address", n.Address, "answer", string(a.Body))
		return reply{}, errUnreachable(n)
	case err == nil:
		s.stats.forwarded.answered.Inc()
		return r.passOn(a), nil
	}
	s.stats.forwarded.failed.Inc()
	s.log.Debug("a node did not answer", "node", n.Name, "address", n.Address, "error", err)
	if errors.Is(err, nodes.ErrNotSent) || r.isRepeatable() {
		return reply{}, &askAgain{errUnreachable(n)}
	}
	return reply{}, errInDoubt(n)
}

// forNode is the request as another node gets it.
func (r *request) forNode() *nodes.Request {
	q := asked(&r.http.Request)
	q.Body, q.For = slices.Clone(r.http.PostBody()), r.Grant // the connection may need its buffer before the other node has read it
	if !r.isCreate() {
		delete(q.Header, idempotencyKey) // it says nothing there, and a client of HTTP would repeat the request
	}
	return q
}

// ask makes a request at another node. It gives up when that node lives no more.
func (s *Server) ask(ctx context.Context, n nodes.Node, q *nodes.Request) (a nodes.Answer, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		a, err = s.nodes.Ask(ctx, n.Address, q)
	}()
	tick := time.NewTicker(livingLook)
	defer tick.Stop()
	for {
		select {
		case <-answered:
			return a, err
		case <-tick.C:
			if !s.lives(n) {
				cancel()
			}
		}
	}
}

// asked is a request of fasthttp as one node makes it at another, without its body.
func asked(h *fasthttp.Request) *nodes.Request {
	path, query, _ := strings.Cut(string(h.Header.RequestURI()), "?")
	q := &nodes.Request{Method: string(h.Header.Method()), Target: path}
	if query != "" {
		q.Target += "?" + query
	}
	if q.Method == fasthttp.MethodHead { // the answer to the client leaves the body out
		q.Method = fasthttp.MethodGet
	}
	q.Keep(func(name string) []byte {
		switch name {
		case fasthttp.HeaderIfMatch, fasthttp.HeaderIfNoneMatch:
			return joined(&h.Header, name)
		}
		return h.Header.Peek(name)
	})
	return q
}

// nodeAnswer is what one of several nodes answers.
type nodeAnswer struct {
	node nodes.Node
	nodes.Answer
	err error
}

// isInDoubt reports whether the node may have the request although its answer is missing.
func (a *nodeAnswer) isInDoubt() bool { return a.err != nil && !errors.Is(a.err, nodes.ErrNotSent) }

// others are the other nodes.
func (s *Server) others() []nodes.Node {
	return slices.DeleteFunc(s.cfg.Cluster.Nodes(), func(n nodes.Node) bool { return n.Own })
}

// askEach makes the request at each of some nodes; change may change it before. A node that lives and does not answer
// keeps the request for answerWait.
func (s *Server) askEach(r *request, of []nodes.Node, change func(*nodes.Request)) []nodeAnswer {
	ctx, cancel := context.WithTimeout(r.ctx, answerWait)
	defer cancel()
	return s.askAll(ctx, r, of, change)
}

// askAll is askEach until ctx ends.
func (s *Server) askAll(ctx context.Context, r *request, of []nodes.Node, change func(*nodes.Request)) []nodeAnswer {
	if len(of) == 0 {
		return nil
	}
	q := r.forNode()
	if change != nil {
		change(q)
	}
	all := make([]nodeAnswer, len(of))
	var asked sync.WaitGroup
	for i, n := range of {
		asked.Go(func() {
			a, err := s.ask(ctx, n, q)
			all[i] = nodeAnswer{n, a, err}
		})
	}
	asked.Wait()
	return all
}

// readProblem is the problem that a node answers.
func readProblem(a nodeAnswer) error {
	p := &problem.Problem{Status: a.Status}
	if json.Unmarshal(a.Body, p) != nil || p.Code == "" {
		return fmt.Errorf("node %s answers with status %d", a.node.Name, a.Status)
	}
	p.Retry, _ = strconv.Atoi(a.Header.Get(fasthttp.HeaderRetryAfter))
	return p
}

const idempotencyKey = "Idempotency-Key"

func (r *request) isCreate() bool { return r.route.about == newTimer && r.route.path != batchPath }

// isRepeatable reports whether the request may be carried out twice, as far as its client
// can tell.
func (r *request) isRepeatable() bool {
	h := &r.http.Request.Header
	switch {
	case r.http.IsGet(), r.http.IsHead():
		return true
	case r.http.IsPut():
		return h.Peek(fasthttp.HeaderIfMatch) == nil && h.Peek(fasthttp.HeaderIfNoneMatch) == nil
	}
	return r.isCreate() && h.Peek(idempotencyKey) != nil
}

// passOn is the answer of another node, for the client.
func (r *request) passOn(a nodes.Answer) reply {
	h := &r.http.Response.Header
	for _, name := range [...]string{fasthttp.HeaderETag, fasthttp.HeaderLocation, fasthttp.HeaderRetryAfter, "Idempotency-Replayed"} {
		if v := a.Header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	if a.Status == fasthttp.StatusNotModified {
		h.SetNoDefaultContentType(true)
	}
	out := reply{status: a.Status, kind: a.Header.Get(fasthttp.HeaderContentType)}
	if len(a.Body) > 0 {
		out.made = &a.Body
	}
	return out
}

// authorize finds out what a request may do: by its token, or, if another node makes it, by
// what that node says of its client.
func (s *Server) authorize(r *request) (access.Grant, error) {
	signature := string(r.http.Request.Header.Peek(nodes.Header))
	if s.cfg.Cluster == nil || signature == "" {
		return s.guard.Authorize(r.http, r.route.role)
	}
	q := asked(&r.http.Request)
	q.Body = r.http.PostBody()
	may, err := q.Verify(signature, s.cfg.Cluster.Secret(), s.cfg.Cluster.Now())
	if err == nil {
		err = q.CheckBody(signature)
	}
	if err != nil {
		return access.Grant{}, &problem.Problem{Status: fasthttp.StatusUnauthorized, Code: "bad_node_signature", Detail: err.Error()}
	}
	if may.Role < r.route.role {
		return access.Grant{}, problem.Forbidden("the client of the node has the role " + may.Role.String() + "; the request needs " + r.route.role.String())
	}
	r.ofNode = true
	return may, nil
}

// allot is POST /v1/internal/flows: another node asks for calls of flow keys.
func (s *Server) allot(r *request) (reply, error) {
	return r.answerMessage(s.e.Allot)
}

// sender is the app that the memory of a body counts for.
func (s *Server) sender(h *fasthttp.RequestHeader) (app string, err error) {
	if signature := string(h.Peek(nodes.Header)); s.cfg.Cluster != nil && signature != "" {
		q := fasthttp.Request{}
		h.CopyTo(&q.Header)
		if may, err := asked(&q).Verify(signature, s.cfg.Cluster.Secret(), s.cfg.Cluster.Now()); err == nil {
			return may.App, nil
		}
	}
	return s.guard.Sender(h)
}

var (
	errNoOwner = &problem.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: "no_owner", Retry: 1,
		Detail: "no node of the cluster has the timer at present, and nothing was changed: repeat the request",
	}
	errForNodes = problem.Forbidden("the path is for the nodes of the cluster")
	// errMisdirected is for nodes.
	errMisdirected = &problem.Problem{
		Status: fasthttp.StatusMisdirectedRequest, Code: "misdirected", Detail: "this node does not have the timer",
	}
)

func errUnreachable(n nodes.Node) *problem.Problem {
	return &problem.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: "owner_unreachable", Retry: 1,
		Detail: "the node " + wire.Printable(n.Name) + " at " + wire.Printable(n.Address) + " has the timer, and does not respond to this node: repeat the request",
	}
}

func errInDoubt(n nodes.Node) *problem.Problem {
	return &problem.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: "in_doubt", Retry: 1,
		Detail: "the node " + wire.Printable(n.Name) + " at " + wire.Printable(n.Address) + " got the request, and its response was lost: the request may have been carried out; read the timer before you repeat the request",
	}
}
