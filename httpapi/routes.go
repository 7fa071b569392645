package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/paths"
)

// handler answers one request; what it returns is rendered by Server.handle.
type handler func(s *Server, r *request) (reply, error)

// route is one line of the routing table.
type route struct {
	method, path string
	role         access.Role
	handle       handler
	query        []string // the parameters it takes
	// preconditions are the headers If-… that a write takes; others are refused.
	preconditions []string
	list          bool // its answer is a page of many; see turns
	about         subject
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
	case strings.HasPrefix(rt.path, "/v1/alerts/incidents"):
		return "incident"
	case strings.HasPrefix(rt.path, "/v1/targets"):
		return "target"
	case strings.HasPrefix(rt.path, "/v1/cluster/nodes"):
		return "node"
	case rt.path == "/v1/apps/{app}/pause", rt.path == "/v1/apps/{app}/resume":
		return "pause"
	}
	return cmp.Or(thingOf(rt.path), "timer")
}

const batchPath = "/v1/timers/batch"

var (
	timerFilters = []string{"app", "name_prefix", "q", "status", "label"}
	taskFilters  = []string{"app", "timer_id", "status", "from", "to", "origin", "code", "q", "dismissed"}
	paging       = []string{"limit", "cursor"}
)

func parameters(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// routes is the routing table: all that the server answers. /openapi.json
// describes the same routes, and a test holds the two against each other.
func routes(cfg ServerConfig) []route {
	const (
		get, post, put, patch, del = fasthttp.MethodGet, fasthttp.MethodPost, fasthttp.MethodPut, fasthttp.MethodPatch, fasthttp.MethodDelete

		timer  = "/v1/timers/{id}"
		byName = "/v1/apps/{app}/timers/{name}"
		task   = "/v1/tasks/{key}"
	)
	bulk := parameters(timerFilters, []string{"all", "dry_run"})
	table := []route{
		{method: post, path: "/v1/timers", role: access.RoleWrite, about: newTimer, handle: (*Server).createTimer},
		{method: get, path: "/v1/timers", role: access.RoleRead, handle: (*Server).listTimers, list: true, query: parameters(timerFilters, paging, []string{"last_task", "total"})},
		{method: post, path: batchPath, role: access.RoleWrite, about: newTimer, handle: (*Server).createTimers},
		{method: post, path: "/v1/timers/enable", role: access.RoleWrite, handle: (*Server).enableTimers, query: bulk},
		{method: post, path: "/v1/timers/disable", role: access.RoleWrite, handle: (*Server).disableTimers, query: bulk},
		{method: post, path: "/v1/timers/delete", role: access.RoleWrite, handle: (*Server).deleteTimers, query: bulk},
		{method: get, path: "/v1/operations/{id}", role: access.RoleRead, handle: (*Server).getOperation},

		{method: get, path: byName, role: access.RoleRead, about: timerOfName, handle: (*Server).getTimerByName},
		{method: put, path: byName, role: access.RoleWrite, about: timerOfName, handle: (*Server).putTimer, query: []string{"dry_run"}, preconditions: []string{fasthttp.HeaderIfMatch, fasthttp.HeaderIfNoneMatch}},
		{method: del, path: byName, role: access.RoleWrite, about: timerOfName, handle: (*Server).deleteTimerByName, preconditions: []string{fasthttp.HeaderIfMatch}},

		{method: get, path: timer, role: access.RoleRead, about: timerOfID, handle: (*Server).getTimer},
		{method: patch, path: timer, role: access.RoleWrite, about: timerOfID, handle: (*Server).patchTimer, preconditions: []string{fasthttp.HeaderIfMatch}},
		{method: del, path: timer, role: access.RoleWrite, about: timerOfID, handle: (*Server).deleteTimer, preconditions: []string{fasthttp.HeaderIfMatch}},
		{method: post, path: timer + "/enable", role: access.RoleWrite, about: timerOfID, handle: (*Server).enableTimer, preconditions: []string{fasthttp.HeaderIfMatch}},
		{method: post, path: timer + "/disable", role: access.RoleWrite, about: timerOfID, handle: (*Server).disableTimer, preconditions: []string{fasthttp.HeaderIfMatch}},
		{method: post, path: timer + "/run", role: access.RoleWrite, about: timerOfID, handle: (*Server).runTimer, preconditions: []string{fasthttp.HeaderIfMatch}},
		{method: get, path: timer + "/upcoming", role: access.RoleRead, about: timerOfID, handle: (*Server).upcoming, query: []string{"n"}},
		{method: get, path: timer + "/versions", role: access.RoleRead, about: timerOfID, handle: (*Server).timerVersions, list: true, query: paging},
		{method: get, path: "/v1/upcoming", role: access.RoleRead, handle: (*Server).coming, list: true, query: []string{"app", "at", "limit"}},
		{method: get, path: "/v1/upcoming/hours", role: access.RoleRead, handle: (*Server).upcomingHours, list: true, query: []string{"app", "hours"}},
		{method: get, path: "/v1/apps", role: access.RoleRead, handle: (*Server).listApps, list: true, query: parameters([]string{"app"}, paging)},
		{method: post, path: "/v1/schedules/preview", role: access.RoleRead, handle: (*Server).preview},

		{method: get, path: "/v1/tasks", role: access.RoleRead, handle: (*Server).listTasks, list: true, query: parameters(taskFilters, paging)},
		{method: get, path: "/v1/tasks/stream", role: access.RoleRead, handle: (*Server).streamTasks, query: parameters(taskFilters, []string{"last_event_id"})},
		{method: post, path: "/v1/tasks/retry", role: access.RoleWrite, handle: (*Server).retryTasks, query: parameters(taskFilters, []string{"all", "dry_run"})},
		{method: get, path: "/v1/tasks/failures", role: access.RoleRead, handle: (*Server).listFailures, list: true, query: taskFilters},
		{method: get, path: task, role: access.RoleRead, about: taskOfKey, handle: (*Server).getTask},
		{method: post, path: task + "/retry", role: access.RoleWrite, about: taskOfKey, handle: (*Server).retryTask},
		{method: post, path: task + "/dismiss", role: access.RoleWrite, about: taskOfKey, handle: (*Server).dismissTask},

		{method: post, path: "/v1/admin/backup", role: access.RoleAdmin, handle: (*Server).backup},
		{method: get, path: "/v1/admin/verify", role: access.RoleAdmin, handle: (*Server).verify, query: []string{"app", "from", "to", "late"}},
		{method: get, path: "/v1/stats", role: access.RoleRead, handle: (*Server).getStats},
		{method: get, path: "/v1/stats/trend", role: access.RoleRead, handle: (*Server).getTrend, query: []string{"minutes"}},
		{method: get, path: "/v1/system", role: access.RoleAdmin, handle: (*Server).getSystem},
		{method: get, path: "/v1/cluster", role: access.RoleRead, handle: (*Server).getCluster},
		{method: post, path: "/v1/cluster/nodes/{node}/drain", role: access.RoleAdmin, handle: (*Server).drainNode},
		{method: del, path: "/v1/cluster/nodes/{node}/drain", role: access.RoleAdmin, handle: (*Server).undrainNode},
		{method: post, path: "/v1/cluster/nodes/{node}/evict", role: access.RoleAdmin, handle: (*Server).evictNode},
		{method: post, path: "/v1/system/clock/reset", role: access.RoleAdmin, handle: (*Server).resetClock, query: []string{"dry_run"}},
		{method: get, path: "/v1/token", role: access.RoleRead, handle: (*Server).getToken},
		{method: get, path: "/v1/version", handle: (*Server).getVersion},
		{method: get, path: "/livez", handle: (*Server).livez},
		{method: get, path: "/readyz", handle: (*Server).readyz},
		{method: get, path: "/metrics", handle: (*Server).getMetrics},
		{method: get, path: "/openapi.json", handle: (*Server).getOpenAPI},
	}
	table = slices.Concat(table, objectRoutes(), alertRoutes(), flowRoutes(), targetRoutes())
	if cfg.Cluster != nil && cfg.Alerts != nil {
		table = append(table, route{method: post, path: nodes.AlertsPath, role: access.RoleAdmin, handle: (*Server).reportAlerts})
	}
	if cfg.Cluster != nil {
		table = append(table, nodeRoutes()...)
	}
	if cfg.Pprof {
		table = append(
			table,
			route{method: get, path: "/debug/pprof/", role: access.RoleAdmin, handle: (*Server).pprof, query: []string{"debug", "gc", "seconds"}},
			route{method: get, path: "/debug/pprof/{profile}", role: access.RoleAdmin, handle: (*Server).pprof, query: []string{"debug", "gc", "seconds"}},
		)
	}
	return table
}

// nodeRoutes are for the other nodes of a cluster.
func nodeRoutes() []route {
	return []route{
		{method: fasthttp.MethodPost, path: nodes.FlowsPath, role: access.RoleAdmin, handle: (*Server).allot},
		{method: fasthttp.MethodPost, path: nodes.ResultsPath, role: access.RoleAdmin, handle: (*Server).learn},
		{method: fasthttp.MethodPost, path: nodes.ItemsPath, role: access.RoleAdmin, handle: (*Server).doItem},
		{method: fasthttp.MethodPost, path: nodes.TimersPath, role: access.RoleAdmin, handle: (*Server).tellTimers},
		{method: fasthttp.MethodPost, path: nodes.GatesPath, role: access.RoleAdmin, handle: (*Server).tellGates},
		{method: fasthttp.MethodPost, path: nodes.WaitingPath, role: access.RoleAdmin, handle: (*Server).tellWaiting},
	}
}

// tree finds the routes of a table.
func tree(table []route) *paths.Tree[*route] {
	t := &paths.Tree[*route]{}
	for i := range table {
		t.Add(table[i].method, table[i].path, &table[i])
	}
	return t
}
