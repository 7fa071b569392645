package httpapi

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/httpapi/problem"
)

// precondition is an If-Match header: versions of which one has to stand.
type precondition struct {
	given, any bool // "*": whichever, but one
	versions   []uint32
}

// joined is a header that is a list, which may come in several lines (RFC 9110, 5.3); nil:
// there is none.
func joined(h *fasthttp.RequestHeader, name string) []byte {
	switch lines := h.PeekAll(name); len(lines) {
	case 0:
		return nil
	case 1:
		return lines[0]
	default:
		return bytes.Join(lines, []byte(","))
	}
}

// ifMatch reads If-Match. Weak tags never match (RFC 9110, 13.1.1).
func ifMatch(r *request) (p precondition, err error) {
	sent := joined(&r.http.Request.Header, fasthttp.HeaderIfMatch)
	if sent == nil {
		return p, nil
	}
	h := string(sent) // "" is refused: a variable that was not set must not lift the condition
	p.given = true
	if strings.TrimSpace(h) == "*" {
		p.any = true
		return p, nil
	}
	for tag := range strings.SplitSeq(h, ",") {
		tag = strings.TrimSpace(tag)
		strong := strings.TrimPrefix(tag, "W/")
		if len(strong) < 2 || strong[0] != '"' || strong[len(strong)-1] != '"' {
			return p, problem.BadField("If-Match", "bad_if_match", `must be * or an ETag like "3"`)
		}
		if v, err := strconv.ParseUint(strong[1:len(strong)-1], 10, 32); err == nil && v > 0 && strong == tag {
			p.versions = append(p.versions, uint32(v))
		}
	}
	return p, nil
}

func (p precondition) has(version uint32) bool { return slices.Contains(p.versions, version) }

// onlyNew reads the If-None-Match of a PUT: with *, the timer must not exist.
func onlyNew(r *request) (bool, error) {
	h := &r.http.Request.Header
	sent := joined(h, fasthttp.HeaderIfNoneMatch)
	switch {
	case sent == nil:
		return false, nil
	case strings.TrimSpace(string(sent)) != "*":
		return false, problem.BadField(fasthttp.HeaderIfNoneMatch, "bad_if_none_match", "must be *: what is put must not exist yet")
	case h.Peek(fasthttp.HeaderIfMatch) != nil:
		return false, problem.BadField(fasthttp.HeaderIfNoneMatch, "bad_if_none_match", "contradicts If-Match")
	}
	return true, nil
}

var errExists = &engine.Fault{
	Kind: engine.FaultPrecondition, Code: "precondition_failed", Detail: "the timer exists, and If-None-Match is *",
}

// isCurrent reports whether the client of a GET has this version already. Weak and strong
// tags compare alike here (RFC 9110, 13.1.2).
func isCurrent(r *request, version uint32) bool {
	tags := string(joined(&r.http.Request.Header, fasthttp.HeaderIfNoneMatch))
	if tags == "" || !r.http.IsGet() && !r.http.IsHead() {
		return false
	}
	if strings.TrimSpace(tags) == "*" {
		return true
	}
	for tag := range strings.SplitSeq(tags, ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == etag(version) {
			return true
		}
	}
	return false
}

// supports refuses preconditions of a write that its route would ignore.
func (rt *route) supports(h *fasthttp.RequestHeader) error {
	for _, name := range [...]string{fasthttp.HeaderIfMatch, fasthttp.HeaderIfNoneMatch, fasthttp.HeaderIfUnmodifiedSince} {
		if !slices.Contains(rt.preconditions, name) && h.Peek(name) != nil {
			return problem.BadField(name, "unsupported_precondition", "is not supported by "+rt.method+" "+rt.path)
		}
	}
	return nil
}

var errStale = &engine.Fault{
	Kind: engine.FaultPrecondition, Code: "precondition_failed", Detail: "the current version of the timer is not one that If-Match names",
}

// try does a change under the precondition. One version is for the engine to
// compare; for any of several, the one that stands is looked up first, and again
// when it was replaced in between. Where the timer does not exist the answer is that of
// look: 404, as without the precondition (RFC 9110, 13.2.1), or 412 of a PUT, which would
// create it.
func (p precondition) try(look func() (inspect.View, error), change func(version uint32) error) error {
	switch {
	case !p.given:
		return change(0)
	case !p.any && len(p.versions) == 1:
		return change(p.versions[0])
	}
	for tries := 3; ; tries-- {
		v, err := look()
		if err != nil {
			return err
		}
		if !p.any && !p.has(v.Version) {
			return errStale
		}
		err = change(v.Version)
		if tries == 0 || !isFault(err, engine.FaultPrecondition) {
			return err
		}
	}
}

// matched does a change of a timer under the If-Match of the request.
func (s *Server) matched(r *request, id engine.TimerID, change func(version uint32) error) error {
	match, err := ifMatch(r)
	if err != nil {
		return err
	}
	return match.try(func() (inspect.View, error) { return s.e.Timer(r.ctx, id) }, change)
}
