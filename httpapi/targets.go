package httpapi

import (
	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/limit"
	"xtimer/httpapi/access"
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
	decode: decodeFlow, members: (*Server).appendFlow,
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
