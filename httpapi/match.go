package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// precondition is an If-Match header: versions of which one has to stand.
type precondition struct {
	given, any bool // "*": whichever, but one
	versions   []uint32
}

// ifMatch reads If-Match. Weak tags never match (RFC 9110, 13.1.1).
func ifMatch(r *request) (p precondition, err error) {
	h := string(r.http.Request.Header.Peek("If-Match"))
	if h == "" {
		return p, nil
	}
	p.given = true
	if strings.TrimSpace(h) == "*" {
		p.any = true
		return p, nil
	}
	for tag := range strings.SplitSeq(h, ",") {
		tag = strings.TrimSpace(tag)
		strong := strings.TrimPrefix(tag, "W/")
		if len(strong) < 2 || strong[0] != '"' || strong[len(strong)-1] != '"' {
			return p, badField("If-Match", "bad_if_match", `must be * or an ETag like "3"`)
		}
		if v, err := strconv.ParseUint(strong[1:len(strong)-1], 10, 32); err == nil && v > 0 && strong == tag {
			p.versions = append(p.versions, uint32(v))
		}
	}
	return p, nil
}

var errStale = &engine.Fault{
	Kind: engine.FaultPrecondition, Code: "precondition_failed", Detail: "the current version of the timer is not one that If-Match names",
}

// try does a change under the precondition. One version is for the engine to
// compare; for any of several, the one that stands is looked up first, and again
// when it was replaced in between.
func (p precondition) try(look func() (scheduler.View, error), change func(version uint32) error) error {
	switch {
	case !p.given:
		return change(0)
	case !p.any && len(p.versions) == 0:
		return errStale
	case !p.any && len(p.versions) == 1:
		return change(p.versions[0])
	}
	for tries := 3; ; tries-- {
		v, err := look()
		if isFault(err, engine.FaultNotFound) {
			return errStale
		}
		if err != nil {
			return err
		}
		if !p.any && !slices.Contains(p.versions, v.Version) {
			return errStale
		}
		err = change(v.Version)
		if tries == 0 || !isFault(err, engine.FaultPrecondition) {
			return err
		}
	}
}
