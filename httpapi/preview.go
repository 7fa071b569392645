package httpapi

import (
	"cmp"
	"time"

	"xtimer/engine"
	"xtimer/engine/limit"
	"xtimer/engine/plan"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

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
	p := previewRequest{n: defaultDues, from: time.Now().UnixMilli()}
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
			b = appendClause(wire.Comma(b), &v.Clauses[i])
		}
		b = duesMember(append(b, ']'), v.Dues)
		b = append(wire.Member(b, "warnings"), '[')
		for i := range v.Warnings {
			b = appendWarning(wire.Comma(b), &v.Warnings[i])
		}
		return append(appendUndefined(b, undefined), ']', '}')
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

// appendUndefined appends a warning of each flow key that no flow limits.
func appendUndefined(b []byte, keys []string) []byte {
	for _, key := range keys {
		b = wire.TextMember(append(wire.Comma(b), '{'), "code", "flow_undefined")
		b = wire.TextMember(b, "detail", "no flow limits the key "+key+": its calls have no limit until one is set")
		b = append(wire.TextMember(b, "flow", key), '}')
	}
	return b
}

func appendClause(b []byte, c *plan.Clause) []byte {
	b = wire.TextMember(append(b, '{'), "kind", string(c.Kind))
	if c.Times != nil {
		b = append(wire.Member(b, "times"), '[')
		for _, t := range c.Times {
			b = wire.AppendText(wire.Comma(b), plan.TimeOfDay(t))
		}
		b = append(b, ']')
	}
	if c.Kind == plan.ClauseClock {
		b = unitsMember(b, "seconds", c.Seconds)
		b = unitsMember(b, "minutes", c.Minutes)
		b = unitsMember(b, "hours", c.Hours)
	}
	if c.Values != nil {
		b = numbersMember(b, "values", c.Values)
	}
	if c.MonthDays != nil {
		b = append(wire.Member(b, "month_days"), '[')
		for _, d := range c.MonthDays {
			b = append(wire.Comma(b), '{')
			b = wire.TextMember(b, "kind", string(d.Kind))
			if d.N != 0 || d.Kind == plan.MonthDayBeforeLast {
				b = wire.IntMember(b, "n", int64(d.N))
			}
			if d.Weekday != 0 {
				b = wire.IntMember(b, "weekday", int64(d.Weekday))
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if c.At != 0 {
		b = wire.TimeMember(b, "at", c.At)
	}
	if c.Length != 0 || c.Kind == plan.ClauseOnceAfter {
		b = wire.IntMember(b, "length_ms", c.Length.Milliseconds())
	}
	if c.Count != 0 {
		b = wire.IntMember(b, "count", c.Count)
	}
	if c.Text != "" {
		b = wire.TextMember(b, "text", c.Text)
	}
	return append(b, '}')
}

func unitsMember(b []byte, name string, u plan.Units) []byte {
	b = append(wire.Member(b, name), '{')
	if u.Every > 0 {
		b = wire.IntMember(b, "every", int64(u.Every))
	} else {
		b = numbersMember(b, "values", u.Values)
	}
	return append(b, '}')
}

func numbersMember(b []byte, name string, values []int) []byte {
	b = append(wire.Member(b, name), '[')
	for _, n := range values {
		b = wire.AppendInt(wire.Comma(b), int64(n))
	}
	return append(b, ']')
}

func appendWarning(b []byte, w *plan.Warning) []byte {
	b = wire.TextMember(append(b, '{'), "code", w.Code)
	b = wire.TextMember(b, "detail", w.Detail)
	for _, x := range [...]struct{ name, value string }{
		{"reason", w.Reason},
		{"zone", w.Zone},
		{"clock_before", w.Before},
		{"clock_after", w.After},
	} {
		if x.value != "" {
			b = wire.TextMember(b, x.name, x.value)
		}
	}
	if w.At != 0 {
		b = wire.TimeMember(b, "at", w.At)
	}
	if w.Count != 0 {
		b = wire.IntMember(b, "count", w.Count)
	}
	return append(b, '}')
}
