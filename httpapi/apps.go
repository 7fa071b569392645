package httpapi

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
	"xtimer/engine/quota"
	"xtimer/engine/secret"
	"xtimer/httpapi/wire"
)

// listApps is GET /v1/apps.
func (s *Server) listApps(r *request) (reply, error) {
	app, err := r.limitApp(r.query["app"])
	if err != nil {
		return reply{}, err
	}
	after, limit, err := s.page(r)
	if err != nil {
		return reply{}, err
	}
	p := s.e.Apps().Page(r.ctx, app, after, limit)
	since, whole := s.e.Started(), true
	if s.cfg.Cluster != nil && !r.ofNode {
		for _, of := range s.askEach(r, s.others(), nil) {
			x, ok := readApps(of)
			whole = whole && ok
			p.Add(x.apps(), x.Next != "", limit)
			since = max(since, x.Since.UnixMilli())
		}
	}
	now, _ := s.e.Now()
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TimeMember(append(b, '{'), "now", now)
		b = wire.TimeMember(b, "since", since)
		b = censusMembers(b, p.Count.At, p.Count.Whole)
		b = append(wire.Member(b, "apps"), '[')
		for i := range p.Apps {
			b = s.appendApp(wire.Comma(b), &p.Apps[i])
		}
		if b = s.cursorMember(append(b, ']'), r, strings.Clone(p.Next)); !whole {
			b = wire.BoolMember(b, "partial", true)
		}
		return append(b, '}')
	})}, nil
}

// otherApps is a page of apps as another node answers it.
type otherApps struct {
	Since time.Time `json:"since"`
	Next  string    `json:"next_cursor"` // not "": there are more
	Apps  []struct {
		App      string           `json:"app"`
		Timers   engine.Counts    `json:"timers"`
		Waiting  int64            `json:"waiting"`
		InFlight int64            `json:"in_flight"`
		Minute   map[string]any   `json:"last_minute"`
		Hour     map[string]any   `json:"last_hour"`
		Targets  []map[string]any `json:"targets"`
		More     int              `json:"more_targets"`
	} `json:"apps"`
}

// readApps reads the answer of another node; false: it did not answer.
func readApps(of nodeAnswer) (x otherApps, ok bool) {
	if of.err != nil || of.Status != fasthttp.StatusOK || json.Unmarshal(of.Body, &x) != nil {
		return otherApps{}, false
	}
	return x, true
}

// apps are the apps of the page.
func (x *otherApps) apps() []inspect.App {
	all := make([]inspect.App, len(x.Apps))
	for i := range x.Apps {
		of, a := &x.Apps[i], &all[i]
		a.Name, a.Timers, a.Waiting, a.InFlight, a.More = of.App, of.Timers, of.Waiting, of.InFlight, of.More
		a.Minute, a.Hour = outcomesOf(of.Minute), outcomesOf(of.Hour)
		for _, t := range of.Targets {
			var u inspect.AppTarget
			u.Target.Target, _ = t["target"].(string)
			u.Answering, _ = t["answering"].(bool)
			u.Limit, u.InFlight, u.Waiting = int64(number(t["limit"])), int64(number(t["in_flight"])), int64(number(t["waiting"]))
			u.OK, u.Failed = int64(number(t["attempts_ok"])), int64(number(t["attempts_failed"]))
			u.Took = [2]float64{number(t["took_ms_p50"]), number(t["took_ms_p99"])}
			a.Targets = append(a.Targets, u)
		}
	}
	return all
}

// number is a number of JSON; 0 for none.
func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

// outcomesOf reads what outcomesMember renders.
func outcomesOf(m map[string]any) (o inspect.Outcomes) {
	for i := range o.Ended {
		o.Ended[i] = int64(number(m[engine.TaskStatus(i).String()]))
	}
	o.FiresPerSec = number(m["fires_per_second"])
	if late, ok := m[latenessNames[0]]; ok {
		o.Called, o.Lateness[0], o.Lateness[1] = 1, number(late), number(m[latenessNames[1]])
	}
	return o
}

// censusMembers says when the timers were counted, and whether all of them were.
func censusMembers(b []byte, at int64, exact bool) []byte {
	if at > 0 {
		b = wire.TimeMember(b, "as_of", at)
	}
	return wire.BoolMember(b, "exact", exact)
}

func (s *Server) appendApp(b []byte, a *inspect.App) []byte {
	b = wire.TextMember(append(b, '{'), "app", a.Name)
	b = s.pauseMember(b, "pause", a.Name)
	b = append(wire.Member(b, "timers"), '{')
	b = wire.IntMember(b, "enabled", a.Timers.Enabled)
	b = wire.IntMember(b, "disabled", a.Timers.Disabled)
	b = append(wire.IntMember(b, "finished", a.Timers.Finished), '}')
	b = wire.IntMember(b, "waiting", a.Waiting)
	b = wire.IntMember(b, "in_flight", a.InFlight)
	b = outcomesMember(b, "last_minute", &a.Minute)
	b = outcomesMember(b, "last_hour", &a.Hour)
	b = append(wire.Member(b, "targets"), '[')
	for i := range a.Targets {
		t := &a.Targets[i]
		b = wire.TextMember(append(wire.Comma(b), '{'), "target", t.Target.Target)
		b = wire.IntMember(b, "limit", t.Limit)
		b = wire.IntMember(b, "in_flight", t.InFlight)
		b = wire.IntMember(b, "waiting", t.Waiting)
		b = wire.BoolMember(b, "answering", t.Answering)
		b = wire.IntMember(b, "attempts_ok", t.OK)
		b = wire.IntMember(b, "attempts_failed", t.Failed)
		if t.OK+t.Failed > 0 {
			b = wire.FloatMember(b, "took_ms_p50", t.Took[0])
			b = wire.FloatMember(b, "took_ms_p99", t.Took[1])
		}
		b = append(b, '}')
	}
	if b = append(b, ']'); a.More > 0 {
		b = wire.IntMember(b, "more_targets", int64(a.More))
	}
	return append(b, '}')
}

// outcomesMember renders the tasks that ended in some time.
func outcomesMember(b []byte, name string, o *inspect.Outcomes) []byte {
	b = append(wire.Member(b, name), '{')
	for i, n := range o.Ended {
		if st := engine.TaskStatus(i); st.Final() {
			b = wire.IntMember(b, st.String(), n)
		}
	}
	if rate, ok := o.SuccessRate(); ok {
		b = wire.FloatMember(b, "success_rate", rate)
	}
	b = wire.FloatMember(b, "fires_per_second", o.FiresPerSec)
	if o.Called > 0 {
		b = wire.FloatMember(b, latenessNames[0], o.Lateness[0])
		b = wire.FloatMember(b, latenessNames[1], o.Lateness[1])
	}
	return append(b, '}')
}

// secretObjects are the secrets, whose values no answer has.
var secretObjects = &objects{
	kind: secret.Kind, thing: "secret", path: "secrets", plural: "secrets",
	decode: func(s *Server, k engine.ObjectKey, body []byte) ([]byte, error) {
		var value string
		err := wire.Decode(body, func(d *wire.Decoder) {
			wire.Object(d, &value, []wire.Field[string]{{Name: "value", Read: func(d *wire.Decoder, v *string) { d.Text(v) }}})
		})
		switch {
		case err != nil:
			return nil, err
		case len(value) == 0 || len(value) > secret.MaxValue:
			return nil, engine.Invalid("value", "out_of_range", "must have 1 to %d bytes", secret.MaxValue)
		case strings.HasSuffix(k.Name, "*"):
			return nil, engine.Invalid("name", "bad_name", "the name of a secret must not end in *")
		}
		return s.cfg.Secrets.Body(k, value)
	},
	same:    func(s *Server, k engine.ObjectKey) func(a, b []byte) bool { return s.cfg.Secrets.Same(k) },
	members: func(_ *Server, b []byte, _ *engine.Object) []byte { return b },
}

// countWithin is how long an answer waits for the number of timers of an app.
const countWithin = 2 * time.Second

// quotaObjects are the quotas of apps, with what is used of them.
var quotaObjects = &objects{
	kind: quota.Kind, thing: "quota", path: "quota", ofApp: true,
	of:   func(r *request) (engine.ObjectKey, error) { return quota.Key(r.vars[0]), nil },
	name: func(b []byte, k engine.ObjectKey) []byte { return wire.TextMember(b, "app", k.App) },
	decode: func(_ *Server, k engine.ObjectKey, body []byte) ([]byte, error) {
		l, err := wire.DecodeQuota(body)
		if err == nil {
			err = l.Check(k.App)
		}
		return l.Body(), err
	},
	members: func(s *Server, b []byte, o *engine.Object) []byte {
		l, err := quota.Read(o)
		if err != nil {
			return b
		}
		b = append(wire.Member(wire.AppendQuota(b, &l), "use"), '{')
		ctx, cancel := context.WithTimeout(context.Background(), countWithin)
		defer cancel()
		use := s.e.QuotaUse(ctx, o.App)
		if use.HasStock {
			b = wire.IntMember(b, "timers", use.Stock.Timers)
			b = wire.IntMember(b, "bytes", use.Stock.Bytes)
		}
		b = wire.IntMember(b, "in_flight", int64(use.InFlight))
		return append(wire.IntMember(b, "held", int64(use.Held)), '}')
	},
}

// upcomingHours is GET /v1/upcoming/hours.
func (s *Server) upcomingHours(r *request) (reply, error) {
	app, err := r.limitApp(r.query["app"])
	if err != nil {
		return reply{}, err
	}
	hours, err := r.number("hours", inspect.ForecastHours, 1, inspect.ForecastHours)
	if err != nil {
		return reply{}, err
	}
	n := s.e.Apps().Census.Look(r.ctx)
	c, exact := n.Of(app)
	now, _ := s.e.Now()
	dues, first := n.Hours(&c, now, hours)
	return reply{body: renderFunc(func(b []byte) []byte {
		b = censusMembers(append(b, '{'), n.At, exact)
		b = wire.IntMember(b, "timers", c.Enabled)
		b = append(wire.Member(b, "hours"), '[')
		for i, n := range dues {
			b = wire.TimeMember(append(wire.Comma(b), '{'), "hour", first+int64(i)*time.Hour.Milliseconds())
			b = append(wire.IntMember(b, "dues", n), '}')
		}
		return append(b, ']', '}')
	})}, nil
}

// pauseMember appends the pause of an app, or of limit.EachApp, while it lasts.
func (s *Server) pauseMember(b []byte, name, app string) []byte {
	now, _ := s.e.Now()
	p := limit.PauseOf(s.e.Objects(), app, now)
	if p == nil {
		return b
	}
	b = wire.TimeMember(append(wire.Member(b, name), '{'), "since", p.Since)
	if p.Until != engine.MaxDue {
		b = wire.TimeMember(b, "until", p.Until)
	}
	if p.Reason != "" {
		b = wire.TextMember(b, "reason", p.Reason)
	}
	if p.By != "" {
		b = wire.TextMember(b, "by", p.By)
	}
	return append(b, '}')
}

// getPause is GET of the pause of an app, or of all apps.
func (s *Server) getPause(r *request) (reply, error) {
	app := r.vars[0]
	if !r.MayUse(app) {
		return reply{}, wrongApp(r.Grant.App)
	}
	if err := s.e.Ready(); err != nil {
		return reply{}, err
	}
	return s.pauseReply(app, s.e.Objects().Get(limit.AppKey(app))), nil
}

// ofApp changes the pause of an app, or of all apps.
func ofApp(v verb) func(*Server, *request) (reply, error) {
	return func(s *Server, r *request) (reply, error) {
		app := r.vars[0]
		switch {
		case !r.MayUse(app):
			return reply{}, wrongApp(r.Grant.App)
		case !r.mayChange(app):
			return reply{}, errHoldsForAll
		}
		if err := s.e.Ready(); err != nil {
			return reply{}, err
		}
		o, err := s.change(r, limit.AppKey(app), v, false)
		if err != nil {
			return reply{}, err
		}
		return s.pauseReply(app, o), nil
	}
}

// pauseReply says whether an app is paused; o is its object, nil for none.
func (s *Server) pauseReply(app string, o *engine.Object) reply {
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "app", app)
		n := len(b)
		if x, err := limit.Read(o); err == nil {
			b = s.appendPause(b, &x, o)
		}
		if len(b) == n {
			b = wire.BoolMember(b, "paused", false)
		}
		if word := s.e.Resuming(limit.NameOf(limit.AppKey(app))); word != "" {
			b = wire.TextMember(b, "resuming", word)
		}
		if app != limit.EachApp {
			b = s.pauseMember(b, "all", limit.EachApp)
		}
		return append(b, '}')
	})}
}

// verb reads a request. What it returns changes the object of a flow or an app; exists: something is said of it.
type verb func(s *Server, r *request) (func(x *limit.Object, exists bool) error, error)

func paused(s *Server, r *request) (func(*limit.Object, bool) error, error) {
	var how disabling
	err := readOptional(r, &how, disablingFields)
	return func(x *limit.Object, _ bool) error {
		now, _ := s.e.Now()
		x.Pause(limit.Pause{Until: how.until, Reason: how.reason, By: engine.Author(r.ctx)}, now)
		return nil
	}, err
}

func resumed(s *Server, r *request) (func(*limit.Object, bool) error, error) {
	backlog := engine.BacklogCall
	err := readOptional(r, &backlog, wire.ResumeFields)
	return func(x *limit.Object, exists bool) error {
		if !exists {
			return engine.ErrNotFound
		}
		now, _ := s.e.Now()
		x.Resume(backlog, now)
		return nil
	}, err
}

func cooled(_ *Server, r *request) (func(*limit.Object, bool) error, error) {
	var how disabling
	err := readOptional(r, &how, disablingFields)
	return func(x *limit.Object, _ bool) error {
		if how.until == 0 {
			return engine.Invalid("until", "required", "is required")
		}
		x.CooldownUntil = how.until
		return nil
	}, err
}
