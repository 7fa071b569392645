package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/access"
	"xtimer/httpapi/wire"
)

// getStats is GET /v1/stats.
func (s *Server) getStats(r *request) (reply, error) {
	a := statsAnswer{server: s, whole: true}
	if r.Grant.App != access.AllApps {
		st := s.e.AppStats(r.Grant.App)
		a.s, a.app = &st, r.Grant.App
	} else {
		st, err := s.e.Stats(r.ctx)
		if err != nil {
			return reply{}, err
		}
		a.s = &st
	}
	if s.cfg.Cluster != nil && !r.ofNode {
		for _, other := range s.askEach(r, s.others(), nil) {
			a.whole = a.add(other) && a.whole
		}
	}
	return reply{body: a}, nil
}

// add adds what another node answers. Of the lateness it keeps the worst of a node: that of
// all cannot be told from those of each.
func (a statsAnswer) add(of nodeAnswer) (ok bool) {
	var x struct {
		Tasks struct {
			Open       int64            `json:"open"`
			InFlight   int64            `json:"in_flight"`
			Overdue    int64            `json:"overdue"`
			Oldest     float64          `json:"oldest_overdue_ms"`
			SinceStart map[string]int64 `json:"since_start"`
		} `json:"tasks"`
		Minute        map[string]float64 `json:"last_minute"`
		DueByMinute   []int64            `json:"due_by_minute"`
		Wheel         int                `json:"wheel"`
		SettleBacklog int64              `json:"settle_backlog"`
		Journal       int64              `json:"journal"`
		Watermark     time.Time          `json:"watermark"`
		Warnings      []inspect.Warning  `json:"warnings"`
	}
	if of.err != nil || of.Status != fasthttp.StatusOK || json.Unmarshal(of.Body, &x) != nil {
		return false
	}
	s := a.s
	s.Open, s.InFlight, s.Overdue = s.Open+x.Tasks.Open, s.InFlight+x.Tasks.InFlight, s.Overdue+x.Tasks.Overdue
	s.OldestOverdue = max(s.OldestOverdue, time.Duration(x.Tasks.Oldest*float64(time.Millisecond)))
	for i := range s.Ended {
		s.Ended[i] += x.Tasks.SinceStart[engine.TaskStatus(i).String()]
	}
	s.FiresPerSec += x.Minute["fires_per_second"]
	for i, name := range latenessNames {
		s.Lateness[i] = max(s.Lateness[i], x.Minute[name])
	}
	for i := range min(len(x.DueByMinute), len(s.DueByMinute)) {
		s.DueByMinute[i] += x.DueByMinute[i]
	}
	s.Wheel, s.SettleBacklog, s.Journal = s.Wheel+x.Wheel, s.SettleBacklog+x.SettleBacklog, s.Journal+x.Journal
	if at := x.Watermark.UnixMilli(); !x.Watermark.IsZero() && (s.Watermark <= 0 || at < s.Watermark) {
		s.Watermark = at
	}
	for _, w := range x.Warnings {
		w.Detail = "node " + of.node.Name + ": " + w.Detail
		s.Warnings = append(s.Warnings, w)
	}
	return true
}

// statsAnswer renders the figures of the service, or those of one app: its tasks, and
// what belongs to no app.
type statsAnswer struct {
	server *Server
	s      *inspect.Stats
	app    string // "": the service
	whole  bool   // each node is in it
}

var latenessNames = [...]string{"lateness_ms_p50", "lateness_ms_p99", "lateness_ms_p99.9"}

func (a statsAnswer) render(b []byte) []byte {
	s := a.s
	b = append(b, '{')
	if a.app != "" {
		b = wire.TextMember(b, "app", a.app)
	} else {
		b = append(wire.Member(b, "timers"), '{')
		b = wire.IntMember(b, "enabled", s.Timers.Enabled)
		b = wire.IntMember(b, "disabled", s.Timers.Disabled)
		b = append(wire.IntMember(b, "finished", s.Timers.Finished), '}')
	}
	n := len(b)
	if b = a.server.pauseMember(b, "pause", limit.EachApp); len(b) == n && a.app != "" {
		b = a.server.pauseMember(b, "pause", a.app)
	}
	b = append(wire.Member(b, "tasks"), '{')
	b = wire.IntMember(b, "open", s.Open)
	b = wire.IntMember(b, "in_flight", s.InFlight)
	b = wire.IntMember(b, "overdue", s.Overdue)
	b = wire.AppendMillis(wire.Member(b, "oldest_overdue_ms"), s.OldestOverdue)
	b = append(wire.Member(b, "since_start"), '{')
	for i, n := range s.Ended {
		if st := engine.TaskStatus(i); st.Final() {
			b = wire.IntMember(b, st.String(), n)
		}
	}

	b = append(b, `}},"last_minute":{`...)
	b = wire.FloatMember(b, "fires_per_second", s.FiresPerSec)
	for i, name := range latenessNames {
		b = wire.FloatMember(b, name, s.Lateness[i])
	}

	b = append(b, '}')
	if a.app == "" {
		b = append(wire.Member(b, "due_by_minute"), '[')
		for _, n := range s.DueByMinute {
			b = wire.AppendInt(wire.Comma(b), n)
		}
		b = append(b, ']')
		b = wire.IntMember(b, "wheel", int64(s.Wheel))
		b = wire.IntMember(b, "warm", int64(s.Warm))
		b = wire.IntMember(b, "settle_backlog", s.SettleBacklog)
		b = wire.IntMember(b, "journal", s.Journal)
	}
	b = wire.FloatMember(b, "uptime_seconds", s.Uptime.Truncate(time.Millisecond).Seconds())
	if s.Watermark > 0 {
		b = wire.TimeMember(b, "watermark", s.Watermark)
	}
	if b = warningsMember(tiersMember(b, s.Tiers), s.Warnings); !a.whole {
		b = wire.BoolMember(b, "partial", true)
	}
	return append(b, '}')
}

func tiersMember(b []byte, up map[string]bool) []byte {
	b = append(wire.Member(b, "tiers"), '{')
	for _, name := range slices.Sorted(maps.Keys(up)) {
		b = wire.BoolMember(b, name, up[name])
	}
	return append(b, '}')
}

// trend remembers how each of the last minutes went, up to a day of them, for
// GET /v1/stats/trend: 57 KiB. A restart forgets it; Prometheus does not. There is one of
// the service and one of each app that has a token.
type trend struct {
	look   func() inspect.Minute
	mu     sync.Mutex
	points []trendPoint // oldest first
	last   [10]int64    // what had ended when the last point was taken
}

type trendPoint struct {
	at       int64 // its end, Unix ms
	minute   inspect.Minute
	ended    int64
	failures int64 // failed, dead, missed or unknown
}

const trendLength = 24 * 60

// trends are by app; that of the service is access.AllApps'.
func trends(e *scheduler.Scheduler, apps []string) map[string]*trend {
	of := map[string]*trend{access.AllApps: {look: e.LastMinute}}
	var own []string
	for _, app := range apps {
		if of[app] == nil {
			of[app] = &trend{look: func() inspect.Minute { return e.AppMinute(app) }}
			own = append(own, app)
		}
	}
	if len(own) > 0 {
		e.Apps().Figures.Keep(own)
	}
	return of
}

// takeTrends takes a point each minute until ctx ends.
func (s *Server) takeTrends(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, t := range s.trends {
				t.take(s.e)
			}
		}
	}
}

func (t *trend) take(e *scheduler.Scheduler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.now(e)
	if len(t.points) == trendLength {
		t.points = append(t.points[:0], t.points[1:]...)
	}
	t.points, t.last = append(t.points, p), p.minute.Ended
}

// now is the minute that has not ended yet. mu is held.
func (t *trend) now(e *scheduler.Scheduler) (p trendPoint) {
	p.at, _ = e.Now()
	p.minute = t.look()
	for st := engine.Succeeded; st <= engine.Unknown; st++ {
		n := p.minute.Ended[st] - t.last[st]
		p.ended += n
		switch st {
		case engine.Failed, engine.Dead, engine.Missed, engine.Unknown:
			p.failures += n
		}
	}
	return p
}

// addTrend adds the minutes that another node tells of to the same ones before now of this
// node. Where this node has none, because it started later, it takes the other's.
func addTrend(points []trendPoint, of nodeAnswer) (all []trendPoint, ok bool) {
	var x struct {
		Minutes []map[string]json.RawMessage `json:"minutes"`
	}
	if of.err != nil || of.Status != fasthttp.StatusOK || json.Unmarshal(of.Body, &x) != nil {
		return points, false
	}
	if more := len(x.Minutes) - len(points); more > 0 {
		points = append(make([]trendPoint, more), points...)
	}
	for i, m := range x.Minutes {
		p := &points[len(points)-len(x.Minutes)+i]
		var end time.Time
		var rate, late float64
		var ended, failures int64
		err := errors.Join(json.Unmarshal(m["end"], &end), json.Unmarshal(m["fires_per_second"], &rate),
			json.Unmarshal(m["ended"], &ended), json.Unmarshal(m["failures"], &failures))
		for i, name := range latenessNames {
			err = errors.Join(err, json.Unmarshal(m[name], &late))
			p.minute.Lateness[i] = max(p.minute.Lateness[i], late)
		}
		if err != nil {
			return points, false
		}
		if p.at == 0 {
			p.at = end.UnixMilli()
		}
		p.minute.FiresPerSec += rate
		p.ended, p.failures = p.ended+ended, p.failures+failures
	}
	return points, true
}

// getTrend is GET /v1/stats/trend: the last minutes, the present one last.
func (s *Server) getTrend(r *request) (reply, error) {
	n, err := r.number("minutes", 180, 1, trendLength)
	if err != nil {
		return reply{}, err
	}
	t := s.trends[r.Grant.App]
	if t == nil { // another node has a token of the app, and this one has none
		t = &trend{look: func() inspect.Minute { return s.e.AppMinute(r.Grant.App) }}
	}
	t.mu.Lock()
	points := append(slices.Clone(t.points[max(0, len(t.points)-n+1):]), t.now(s.e))
	t.mu.Unlock()
	whole, ok := true, false
	if s.cfg.Cluster != nil && !r.ofNode {
		for _, other := range s.askEach(r, s.others(), nil) {
			points, ok = addTrend(points, other)
			whole = whole && ok
		}
	}
	now, steps := s.e.Now()
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TimeMember(append(b, '{'), "now", now)
		b = wire.IntMember(b, "clock_steps", int64(steps))
		b = append(wire.Member(b, "minutes"), '[')
		for i := range points {
			p := &points[i]
			b = wire.TimeMember(append(wire.Comma(b), '{'), "end", p.at)
			b = wire.FloatMember(b, "fires_per_second", p.minute.FiresPerSec)
			for i, name := range latenessNames {
				b = wire.FloatMember(b, name, p.minute.Lateness[i])
			}
			b = wire.IntMember(b, "ended", p.ended)
			b = append(wire.IntMember(b, "failures", p.failures), '}')
		}
		if b = append(b, ']'); !whole {
			b = wire.BoolMember(b, "partial", true)
		}
		return append(b, '}')
	})}, nil
}
