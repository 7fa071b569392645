// Package paths finds what the path of a request names.
package paths

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/problem"
)

// Tree has one R for each method and path.
type Tree[R any] struct{ root node[R] }

// node is a segment of a path.
type node[R any] struct {
	next    map[string]*node[R]
	any     *node[R] // a {variable} segment
	methods map[string]R
	allow   string // the Allow header of the path
}

// Add makes r what a method and a path name, of which {variable} segments are any. GET is
// HEAD as well.
func (t *Tree[R]) Add(method, path string, r R) {
	n := &t.root
	for segment := range strings.SplitSeq(path[1:], "/") {
		n = n.child(segment)
	}
	if n.methods == nil {
		n.methods = make(map[string]R)
	}
	n.methods[method] = r
	if method == fasthttp.MethodGet {
		n.methods[fasthttp.MethodHead] = r
	}
	var methods []string
	for m := range n.methods {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	n.allow = strings.Join(methods, ", ")
}

func (n *node[R]) child(segment string) *node[R] {
	if strings.HasPrefix(segment, "{") {
		if n.any == nil {
			n.any = &node[R]{}
		}
		return n.any
	}
	if n.next == nil {
		n.next = make(map[string]*node[R])
	}
	if n.next[segment] == nil {
		n.next[segment] = &node[R]{}
	}
	return n.next[segment]
}

// MaxVars is the most variables that a path has.
const MaxVars = 3

// Find walks the tree along a raw path, of which every segment is percent-decoded by
// itself: a name may hold any UTF-8, an encoded slash among it. Nothing is
// normalised: neither "//" nor "..", which are names like any other, and no
// path ever reaches a file system.
func (t *Tree[R]) Find(method, path string) (r R, vars [MaxVars]string, err error) {
	if path == "" || path[0] != '/' {
		return r, vars, problem.Malformed("bad_path", "the path must begin with a slash")
	}
	n, rest, more, used := &t.root, path[1:], true, 0
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if strings.IndexByte(segment, '%') >= 0 {
			if segment, err = url.PathUnescape(segment); err != nil {
				return r, vars, problem.Malformed("bad_path", "the path has an invalid percent-encoding: "+err.Error())
			}
		}
		if !utf8.ValidString(segment) {
			return r, vars, problem.Malformed("bad_path", "the path is not UTF-8")
		}
		if c := n.next[segment]; c != nil {
			n = c
			continue
		}
		if n.any == nil || segment == "" {
			return r, vars, errNoRoute
		}
		n = n.any
		vars[used] = segment
		used++
	}
	if n.methods == nil {
		return r, vars, errNoRoute
	}
	r, ok := n.methods[method]
	if !ok {
		return r, vars, &problem.Problem{
			Status: fasthttp.StatusMethodNotAllowed, Code: "method_not_allowed",
			Detail: "this path allows " + n.allow, Allow: n.allow,
		}
	}
	return r, vars, nil
}

var errNoRoute = &problem.Problem{
	Status: fasthttp.StatusNotFound, Code: "no_such_path", Detail: "this path does not exist; /openapi.json lists all paths",
}
