package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/httpapi/access"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

var (
	channelObjects = &objects{
		kind: alert.ChannelKind, thing: "channel", path: "alerts/channels", plural: "channels",
		decode: func(_ *Server, _ engine.ObjectKey, body []byte) ([]byte, error) {
			c, err := wire.DecodeChannel(body)
			if err == nil {
				err = c.Check()
			}
			return marshalled(c, err)
		},
		members: func(s *Server, b []byte, o *engine.Object) []byte {
			b = wire.AppendChannel(b, o.Body)
			if s.cfg.Alerts == nil {
				return b
			}
			return wire.AppendDeliveries(b, s.cfg.Alerts.Deliveries(o.App, o.Name))
		},
	}
	ruleObjects = &objects{
		kind: alert.RuleKind, thing: "rule", path: "alerts/rules", plural: "rules",
		decode: func(_ *Server, k engine.ObjectKey, body []byte) ([]byte, error) {
			r, err := wire.DecodeRule(body)
			if err == nil {
				err = r.Check(k.App)
			}
			return marshalled(r, err)
		},
		members: func(_ *Server, b []byte, o *engine.Object) []byte { return wire.AppendRule(b, o.Body) },
	}
	muteObjects = &objects{
		kind: alert.MuteKind, thing: "mute", path: "alerts/mutes", plural: "mutes",
		decode: func(s *Server, _ engine.ObjectKey, body []byte) ([]byte, error) {
			m, err := wire.DecodeMute(body)
			if err == nil {
				err = m.Check(time.UnixMilli(s.now()))
			}
			return marshalled(m, err)
		},
		members: func(_ *Server, b []byte, o *engine.Object) []byte { return wire.AppendMute(b, o.Body) },
	}
)

func marshalled(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

var errNoAlerts = &engine.Fault{Kind: engine.FaultUnavailable, Code: "not_ready", Detail: "the server has no alerts"}

// alerts is the alerter, once the server is ready.
func (s *Server) alerts() (*alert.Alerter, error) {
	if s.cfg.Alerts == nil {
		return nil, errNoAlerts
	}
	return s.cfg.Alerts, s.e.Ready()
}

// listIncidents is GET /v1/alerts/incidents: open ones first, then those closed, newest first.
func (s *Server) listIncidents(r *request) (reply, error) {
	a, err := s.alerts()
	if err != nil {
		return reply{}, err
	}
	app, badApp := r.limitApp(r.query["app"])
	after, limit, badPage := s.page(r)
	var span engine.TaskFilter
	badSpan := spanFilter(r.query, &span)
	state := r.query["state"]
	var badState error
	if state != "" && state != "open" && state != "closed" {
		badState = problem.BadField("state", "unknown_value", "must be open or closed")
	}
	if err := problem.Together(badApp, badPage, badSpan, badState); err != nil {
		return reply{}, err
	}
	all := slices.DeleteFunc(a.Incidents(app), func(i alert.Incident) bool {
		return state == "open" && i.Closed != 0 || state == "closed" && i.Closed == 0 ||
			i.Opened < span.From || span.To != 0 && i.Opened >= span.To
	})
	place := func(i *alert.Incident) incidentPlace { return incidentPlace{min(i.Closed, 1), i.Opened, i.ID} }
	slices.SortFunc(all, func(x, y alert.Incident) int { return place(&x).compare(place(&y)) })
	total, from := len(all), incidentPlace{}
	if after != "" {
		if err := json.Unmarshal([]byte(after), &from); err != nil {
			return reply{}, errBadCursor
		}
		i, found := slices.BinarySearchFunc(all, from, func(i alert.Incident, p incidentPlace) int { return place(&i).compare(p) })
		if found {
			i++
		}
		all = all[i:]
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(wire.Member(append(b, '{'), "incidents"), '[')
		next := ""
		for k := range all {
			b = wire.AppendIncident(wire.Comma(b), &all[k])
			if more := k+1 < len(all); more && (k+1 == limit || len(b) > pageBytes) {
				next = place(&all[k]).String()
				break
			}
		}
		b = wire.IntMember(append(b, ']'), "total", int64(total))
		return append(s.cursorMember(b, r, next), '}')
	})}, nil
}

// incidentPlace is where an incident stands in the list.
type incidentPlace struct {
	Closed, Opened int64
	ID             string
}

// String is the place as a cursor has it.
func (p incidentPlace) String() string {
	b, _ := json.Marshal(p) // two numbers and a text cannot fail
	return string(b)
}

func (p incidentPlace) compare(q incidentPlace) int {
	return cmp.Or(cmp.Compare(p.Closed, q.Closed), cmp.Compare(q.Opened, p.Opened), strings.Compare(p.ID, q.ID))
}

// ackIncident is POST /v1/alerts/incidents/{id}/ack.
func (s *Server) ackIncident(r *request) (reply, error) {
	a, err := s.alerts()
	if err != nil {
		return reply{}, err
	}
	var note string
	if err := readOptional(r, &note, []wire.Field[string]{{Name: "note", Read: func(d *wire.Decoder, v *string) { d.Text(v) }}}); err != nil {
		return reply{}, err
	}
	if len(note) > 1000 {
		return reply{}, engine.Invalid("note", "out_of_range", "must have at most 1000 bytes")
	}
	i, err := a.Ack(r.ctx, r.ownApp(), r.vars[0], note)
	if err != nil {
		return reply{}, err
	}
	return reply{body: renderFunc(func(b []byte) []byte { return wire.AppendIncident(b, &i) })}, nil
}

// previewRule is POST /v1/apps/{app}/alerts/rules/{name}/preview.
func (s *Server) previewRule(r *request) (reply, error) {
	a, err := s.alerts()
	if err != nil {
		return reply{}, err
	}
	key, err := ruleObjects.key(s, r, false)
	if err != nil {
		return reply{}, err
	}
	o := s.e.Objects().Get(key)
	if o == nil {
		return reply{}, engine.ErrNotFound
	}
	back := 24 * time.Hour
	if err := readOptional(r, &back, wire.PreviewFields); err != nil {
		return reply{}, err
	}
	if back < time.Minute || back > 168*time.Hour {
		return reply{}, engine.Invalid("from", "out_of_range", "must be between 1m and 168h")
	}
	var rule alert.Rule
	if err := json.Unmarshal(o.Body, &rule); err != nil {
		return reply{}, err
	}
	leave, err := s.previewing.Take(r.ctx, key.App)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	from := s.now() - back.Milliseconds()
	opened, failures, err := a.Preview(r.ctx, key.App, rule, from)
	if err != nil {
		return reply{}, err
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TimeMember(append(b, '{'), "from", from)
		return append(wire.IntMember(wire.IntMember(b, "incidents", int64(opened)), "failures", int64(failures)), '}')
	})}, nil
}

// previewTurns are those of previews of rules. A preview reads up to 100,000 failures, each 64 bytes of memory,
// and goes on when the client has left.
func previewTurns() *access.Turns {
	return access.NewTurns(1, 2, time.Second, &problem.Problem{
		Status: fasthttp.StatusTooManyRequests, Code: "previewing", Retry: 1,
		Detail: "at most one preview of a rule of an app and two in all may run at a time: retry when one has ended",
	})
}

// testChannel is POST /v1/apps/{app}/alerts/channels/{name}/test.
func (s *Server) testChannel(r *request) (reply, error) {
	a, err := s.alerts()
	if err != nil {
		return reply{}, err
	}
	key, err := channelObjects.key(s, r, true)
	if err != nil {
		return reply{}, err
	}
	if err := readOptional(r, new(struct{}), nil); err != nil {
		return reply{}, err
	}
	got, err := a.Test(r.ctx, key.App, key.Name)
	switch {
	case err != nil:
		return reply{}, err
	case got.Secret != "":
		return reply{}, &engine.Fault{Kind: engine.FaultInvalid, Code: got.Error, Detail: fmt.Sprintf("the channel names the secret %q, and app %s has no such secret: set it", got.Secret, key.App)}
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.BoolMember(append(b, '{'), "delivered", got.Delivered)
		if got.Status != 0 {
			b = wire.TextMember(wire.IntMember(b, "status", int64(got.Status)), "answer", got.Answer)
		}
		if got.Error != "" {
			b = wire.TextMember(b, "error", got.Error)
		}
		return append(b, '}')
	})}, nil
}

// alertRoutes are the routes of alerts that are not those of objects.
func alertRoutes() []route {
	return []route{
		{method: "GET", path: "/v1/alerts/incidents", role: access.RoleRead, handle: (*Server).listIncidents, list: true, query: []string{"app", "state", "from", "to", "limit", "cursor"}},
		{method: "POST", path: "/v1/alerts/incidents/{id}/ack", role: access.RoleWrite, handle: (*Server).ackIncident},
		{method: "POST", path: "/v1/apps/{app}/alerts/rules/{name}/preview", role: access.RoleRead, handle: (*Server).previewRule},
		{method: "POST", path: "/v1/apps/{app}/alerts/channels/{name}/test", role: access.RoleWrite, handle: (*Server).testChannel},
	}
}

// reportAlerts is POST /v1/internal/alerts: the node that judges asks for states and late calls.
func (s *Server) reportAlerts(r *request) (reply, error) {
	return r.answerMessage(s.cfg.Alerts.Report)
}

// askAlerts is an alert.Ask.
func (s *Server) askAlerts(ctx context.Context, message []byte) map[string][]byte {
	others := s.others()
	all, answers := make([][]byte, len(others)), make(map[string][]byte, len(others))
	var asked sync.WaitGroup
	for i, n := range others {
		asked.Go(func() { all[i] = s.nodes.AskAlerts(ctx, n.Address, message) })
	}
	asked.Wait()
	for i, n := range others {
		answers[n.Name] = all[i]
	}
	return answers
}
