package httpapi

import (
	"cmp"
	"encoding/json"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/fair"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
	"xtimer/engine/plan"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// What a person on call asks for; the console shows it.

// getToken is GET /v1/token: what the bearer may do.
func (s *Server) getToken(r *request) (reply, error) {
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "app", r.Grant.App)
		b = wire.TextMember(b, "role", r.Grant.Role.String())
		b = wire.TextMember(b, "name", r.Grant.Name)
		return append(wire.BoolMember(b, "needed", !s.guard.Open()), '}')
	})}, nil
}

// timerVersions is GET /v1/timers/{id}/versions.
func (s *Server) timerVersions(r *request) (reply, error) {
	limit, err := r.number("limit", 20, 1, 100)
	if err != nil {
		return reply{}, err
	}
	id, err := r.timerID()
	if err != nil {
		return reply{}, err
	}
	before, err := s.versionCursor(r)
	if err != nil {
		return reply{}, err
	}
	if app, err := s.e.AppOf(r.ctx, id); err != nil || !r.MayUse(app) {
		return reply{}, cmp.Or(err, error(engine.ErrNotFound))
	}
	b := buffers.Get().(*[]byte)
	*b = append((*b)[:0], `{"versions":[`...)
	for next := ""; ; {
		vs, err := s.e.Versions(r.ctx, id, before, min(limit, versionsAtOnce))
		if err != nil {
			return reply{}, err
		}
		n := appendViews(b, vs)
		if n > 0 {
			before = vs[n-1].Version
		}
		limit -= n
		if full := len(*b) > pageBytes || limit == 0; full || n < versionsAtOnce {
			if full && before > 1 {
				next = strconv.FormatUint(uint64(before), 10)
			}
			*b = append(s.cursorMember(append(*b, ']'), r, next), '}')
			return reply{made: b}, nil
		}
	}
}

// versionsAtOnce is how many versions a page has in memory with their bodies.
const versionsAtOnce = 8

// versionCursor reads the version that a page begins before; 0: it begins with the newest.
func (s *Server) versionCursor(r *request) (uint32, error) {
	text, err := s.cursor(r)
	if err != nil || text == "" {
		return 0, err
	}
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, errBadCursor
	}
	return uint32(v), nil
}

// coming is GET /v1/upcoming.
func (s *Server) coming(r *request) (reply, error) {
	app, err := r.limitApp(r.query["app"])
	if err != nil {
		return reply{}, err
	}
	at, _ := s.e.Now()
	if q, ok := r.query["at"]; ok {
		if at, err = parseInstant("at", q); err != nil {
			return reply{}, err
		}
	}
	limit, err := r.number("limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return reply{}, err
	}
	c, err := s.e.Coming(r.ctx, at, app, limit)
	if err != nil {
		return reply{}, err
	}
	if s.cfg.Cluster != nil && !r.ofNode {
		q := "at=" + strconv.FormatInt(at, 10) + "&limit=" + strconv.Itoa(limit) + "&app=" + url.QueryEscape(app)
		for _, a := range s.askEach(r, s.others(), func(n *nodes.Request) { n.Target = "/v1/upcoming?" + q }) {
			c.Partial = !addComing(&c, a) || c.Partial
		}
		slices.SortFunc(c.Dues, func(a, b inspect.ComingDue) int { return a.Key.Compare(b.Key) })
		if len(c.Dues) > limit {
			c.Dues, c.Partial = c.Dues[:limit], true
		}
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TimeMember(append(b, '{'), "minute", c.Minute)
		b = append(wire.Member(b, "due_by_second"), '[')
		for _, n := range c.Seconds {
			b = wire.AppendInt(wire.Comma(b), n)
		}
		b = append(wire.Member(append(b, ']'), "dues"), '[')
		for _, d := range c.Dues {
			b = wire.TextMember(append(wire.Comma(b), '{'), "timer_id", d.Key.Timer.String())
			b = wire.TextMember(b, "app", d.App)
			if d.Name != "" {
				b = wire.TextMember(b, "name", d.Name)
			}
			b = append(wire.TimeMember(b, "due", d.Key.Due), '}')
		}
		return append(wire.BoolMember(append(b, ']'), "partial", c.Partial), '}')
	})}, nil
}

// addComing adds the dues of another node; false: there are more, or it did not answer.
func addComing(c *inspect.Coming, of nodeAnswer) (whole bool) {
	var x struct {
		Seconds [60]int64 `json:"due_by_second"`
		Dues    []struct {
			Timer string    `json:"timer_id"`
			App   string    `json:"app"`
			Name  string    `json:"name"`
			Due   time.Time `json:"due"`
		} `json:"dues"`
		Minute  time.Time `json:"minute"`
		Partial bool      `json:"partial"`
	}
	if of.err != nil || of.Status != fasthttp.StatusOK || json.Unmarshal(of.Body, &x) != nil || x.Minute.UnixMilli() != c.Minute {
		return false
	}
	for i, n := range x.Seconds {
		c.Seconds[i] += n
	}
	for _, d := range x.Dues {
		id, err := engine.ParseTimerID(d.Timer)
		if err != nil {
			return false
		}
		c.Dues = append(c.Dues, inspect.ComingDue{Key: engine.Key{Timer: id, Due: d.Due.UnixMilli()}, App: d.App, Name: d.Name})
	}
	return !x.Partial
}

// listFailures is GET /v1/tasks/failures: what failed or is dead, grouped. The
// newest 1,000 are looked at.
func (s *Server) listFailures(r *request) (reply, error) {
	f, err := r.taskFilter(r.query)
	if err == nil {
		err = retryable(&f)
	}
	f.HasDismissed = true // what was dismissed is asked for by dismissed=true
	if r.ofNode {
		return s.newestTasks(r, &f, err)
	}
	if err != nil {
		return reply{}, err
	}
	if mine, err := s.owns(r, f.Timer); err != nil || !mine {
		return reply{fixed: noGroups}, err
	}
	whole := true
	groups, partial, err := s.e.Failures(r.ctx, func(before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
		ts, next, all, err := s.tasks(r, &f, before, limit)
		whole = whole && all
		return ts, next, err
	})
	if err != nil {
		return reply{}, err
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(b, `{"groups":[`...)
		for i := range groups {
			g := &groups[i]
			b = append(wire.Comma(b), '{')
			if g.Target != "" {
				b = wire.TextMember(b, "target", g.Target)
			}
			b = wire.TextMember(b, "error", g.Error)
			b = wire.IntMember(b, "count", int64(len(g.Keys)))
			b = wire.TimeMember(b, "first_due", g.First)
			b = wire.TimeMember(b, "last_due", g.Keys[0].Due)
			b = append(wire.Member(b, "keys"), '[')
			for _, k := range g.Keys {
				b = append(k.Append(append(wire.Comma(b), '"')), '"')
			}
			b = append(b, ']', '}')
		}
		return append(wire.BoolMember(append(b, ']'), "partial", partial || !whole), '}')
	})}, nil
}

var noGroups = []byte(`{"groups":[],"partial":false}`)

// Setting is one setting in force, as GET /v1/system shows it: no secrets.
type Setting struct{ Name, Value, From string }

// getSystem is GET /v1/system.
func (s *Server) getSystem(r *request) (reply, error) {
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("the settings cover the whole service: the request needs an admin token for all apps")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "node", s.e.Node())
		b = wire.IntMember(b, "cpus", int64(s.cfg.CPUs))
		b = wire.IntMember(b, "goroutines", int64(runtime.NumGoroutine()))
		b = wire.IntMember(b, "heap_bytes", int64(m.HeapAlloc))
		b = wire.IntMember(b, "memory_bytes", int64(m.Sys-m.HeapReleased))
		b = wire.IntMember(b, "connections", int64(s.stats.open()))
		b = wire.IntMember(b, "streams", s.stats.streams.Load())
		b = wire.FloatMember(b, "clock_behind_seconds", s.e.ClockBehind().Seconds())
		b = callsMember(b, s.e.Calls(shownTargets))
		b = append(wire.Member(b, "settings"), '[')
		for _, x := range s.cfg.Settings {
			b = wire.TextMember(append(wire.Comma(b), '{'), "name", x.Name)
			b = wire.TextMember(b, "value", x.Value)
			b = append(wire.TextMember(b, "from", x.From), '}')
		}
		return append(b, ']', '}')
	})}, nil
}

// resetClock is POST /v1/system/clock/reset: the clock as it is, is right, and a former
// one that was ahead of it was wrong. It answers as other bulk operations do.
func (s *Server) resetClock(r *request) (reply, error) {
	dryRun, err := r.boolean("dry_run")
	if err != nil {
		return reply{}, err
	}
	if err := readOptional(r, new(struct{}), nil); err != nil {
		return reply{}, err
	}
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("the clock affects all apps: the request needs an admin token for all apps")
	}
	return s.start(r, dryRun, func(part change.Part) (change.Operation, error) { return s.e.ResetClock(r.ctx, dryRun, part) })
}

// warningsMember says what is amiss although the server serves and fires, if anything is.
func warningsMember(b []byte, ws []inspect.Warning) []byte {
	if len(ws) == 0 {
		return b
	}
	b = append(wire.Member(b, "warnings"), '[')
	for _, w := range ws {
		b = wire.TextMember(append(wire.Comma(b), '{'), "code", w.Code)
		b = append(wire.TextMember(b, "detail", w.Detail), '}')
	}
	return append(b, ']')
}

// shownTargets is how many of the limited targets GET /v1/system names.
const shownTargets = 20

// callsMember says who may have how many calls in flight.
func callsMember(b []byte, c fair.Stats) []byte {
	b = append(wire.Member(b, "calls"), '{')
	b = wire.IntMember(b, "limit", int64(c.Places))
	b = wire.IntMember(b, "in_flight", int64(c.InFlight))
	b = wire.IntMember(b, "silent", int64(c.Silent))
	b = wire.IntMember(b, "waiting", int64(c.Waiting))
	b = wire.IntMember(b, "limited_targets", int64(c.Limited))
	b = append(wire.Member(b, "targets"), '[')
	for _, t := range c.Targets {
		b = wire.TextMember(append(wire.Comma(b), '{'), "target", t.Target)
		b = wire.IntMember(b, "limit", int64(t.Limit))
		b = wire.IntMember(b, "in_flight", int64(t.InFlight))
		b = wire.IntMember(b, "waiting", int64(t.Waiting))
		b = append(wire.BoolMember(b, "answering", t.Answering), '}')
	}
	return append(b, ']', '}')
}

// retryable refuses statuses that cannot be retried; none means failed and dead.
func retryable(f *engine.TaskFilter) error {
	for _, st := range f.Statuses {
		if st != engine.Failed && st != engine.Dead && st != engine.Unknown {
			return engine.Invalid("status", "not_retryable", "%s tasks cannot be retried; failed, dead and unknown ones can", st)
		}
	}
	if len(f.Statuses) == 0 {
		f.Statuses = []engine.TaskStatus{engine.Failed, engine.Dead}
	}
	return nil
}

type previewRequest struct {
	schedule engine.Schedule
	given    bool
	n        int
	from     int64
	app      string
	flow     engine.Flow
}

var previewFields = []wire.Field[previewRequest]{
	{Name: "schedule", Read: func(d *wire.Decoder, v *previewRequest) { v.given = true; d.Schedule(&v.schedule) }},
	{Name: "n", Read: func(d *wire.Decoder, v *previewRequest) { d.Count(&v.n, 1, maxLimit) }},
	{Name: "from", Read: func(d *wire.Decoder, v *previewRequest) { d.Instant(&v.from) }},
	{Name: "app", Read: func(d *wire.Decoder, v *previewRequest) { d.Text(&v.app) }},
	{Name: "flow", Read: func(d *wire.Decoder, v *previewRequest) { d.Flow(&v.flow) }},
}

// preview is POST /v1/schedules/preview.
func (s *Server) preview(r *request) (reply, error) {
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	p := previewRequest{n: defaultDues, from: s.now()}
	if err := wire.Decode(body, func(d *wire.Decoder) { wire.Object(d, &p, previewFields) }); err != nil {
		return reply{}, err
	}
	if !p.given {
		return reply{}, problem.BadField("schedule", "missing", "is missing")
	}
	v, err := plan.PreviewSchedule(p.schedule, p.n, p.from)
	if err != nil {
		return reply{}, err
	}
	undefined, err := s.undefinedFlow(r, &p)
	if err != nil {
		return reply{}, err
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "sentence", v.Sentence)
		b = append(wire.Member(b, "clauses"), '[')
		for i := range v.Clauses {
			b = wire.AppendClause(wire.Comma(b), &v.Clauses[i])
		}
		b = duesMember(append(b, ']'), v.Dues)
		b = append(wire.Member(b, "warnings"), '[')
		for i := range v.Warnings {
			b = wire.AppendWarning(wire.Comma(b), &v.Warnings[i])
		}
		return append(wire.AppendUndefined(b, undefined), ']', '}')
	})}, nil
}

// undefinedFlow are the flow keys of a request that no flow limits.
func (s *Server) undefinedFlow(r *request, p *previewRequest) ([]string, error) {
	app := cmp.Or(p.app, r.ownApp())
	switch {
	case p.app != "" && !r.MayUse(p.app):
		return nil, wrongApp(r.Grant.App)
	case p.flow == "":
		return nil, nil
	case app == "":
		return nil, problem.BadField("app", "missing", "is missing: the flow keys are those of an app")
	}
	if err := plan.CheckFlow(p.flow); err != nil {
		return nil, err
	}
	return limit.Undefined(s.e.Objects(), app, p.flow), nil
}
