package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// handler answers one request; what it returns is rendered by Server.handle.
type handler func(s *Server, r *request) (reply, error)

// route is one line of the routing table.
type route struct {
	method, path string
	role         Role
	handle       handler
	query        []string // the parameters it takes
	// preconditions are the headers If-… that a write takes; others are refused.
	preconditions []string
	list          bool // its answer is a page of many; see turns
	// answers counts the answers by the first digit of their status; written
	// by NewServer.
	answers [6]*metrics.Counter
}

// thing is what the path of a route names: who may not see it, and who asks for what is
// not there, get the same answer.
func (rt *route) thing() string {
	switch {
	case strings.HasPrefix(rt.path, "/v1/tasks"):
		return "task"
	case strings.HasPrefix(rt.path, "/v1/operations"):
		return "operation"
	}
	return "timer"
}

// node is a segment of a path in the tree of all routes.
type node struct {
	next    map[string]*node
	any     *node // a {variable} segment
	methods map[string]*route
	allow   string
}

// tree builds the tree of a table.
func tree(table []route) *node {
	root := &node{}
	for i := range table {
		n := root
		for _, segment := range strings.Split(table[i].path[1:], "/") {
			n = n.child(segment)
		}
		if n.methods == nil {
			n.methods = make(map[string]*route)
		}
		n.methods[table[i].method] = &table[i]
		if table[i].method == fasthttp.MethodGet {
			n.methods[fasthttp.MethodHead] = &table[i]
		}
	}
	root.seal()
	return root
}

func (n *node) child(segment string) *node {
	if strings.HasPrefix(segment, "{") {
		if n.any == nil {
			n.any = &node{}
		}
		return n.any
	}
	if n.next == nil {
		n.next = make(map[string]*node)
	}
	if n.next[segment] == nil {
		n.next[segment] = &node{}
	}
	return n.next[segment]
}

// seal writes the Allow header of every path.
func (n *node) seal() {
	var methods []string
	for m := range n.methods {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	n.allow = strings.Join(methods, ", ")
	for _, c := range n.next {
		c.seal()
	}
	if n.any != nil {
		n.any.seal()
	}
}

// maxVars is the most variables that a path has.
const maxVars = 2

// find walks the tree along a raw path, of which every segment is percent-decoded by
// itself: a name may hold any UTF-8, an encoded slash among it. Nothing is
// normalised: neither "//" nor "..", which are names like any other, and no
// path ever reaches a file system.
func (n *node) find(method, path string) (r *route, vars [maxVars]string, err error) {
	if path == "" || path[0] != '/' {
		return nil, vars, malformed("bad_path", "the path must begin with a slash")
	}
	rest, more, used := path[1:], true, 0
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if strings.IndexByte(segment, '%') >= 0 {
			if segment, err = url.PathUnescape(segment); err != nil {
				return nil, vars, malformed("bad_path", "the path has an invalid percent-encoding: "+err.Error())
			}
		}
		if !utf8.ValidString(segment) {
			return nil, vars, malformed("bad_path", "the path is not UTF-8")
		}
		if c := n.next[segment]; c != nil {
			n = c
			continue
		}
		if n.any == nil || segment == "" {
			return nil, vars, errNoRoute
		}
		n = n.any
		vars[used] = segment
		used++
	}
	if n.methods == nil {
		return nil, vars, errNoRoute
	}
	if r = n.methods[method]; r == nil {
		return nil, vars, &problem{
			status: fasthttp.StatusMethodNotAllowed, code: "method_not_allowed",
			detail: "this path allows " + n.allow, allow: n.allow,
		}
	}
	return r, vars, nil
}

var errNoRoute = &problem{
	status: fasthttp.StatusNotFound, code: "no_such_path", detail: "this path does not exist; /openapi.json lists all paths",
}
