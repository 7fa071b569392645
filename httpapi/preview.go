package httpapi

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/httpapi/wire"
)

type previewRequest struct {
	schedule engine.Schedule
	given    bool
	n        int
	from     int64
}

var previewFields = []wire.Field[previewRequest]{
	{Name: "schedule", Read: func(d *wire.Decoder, v *previewRequest) { v.given = true; d.Schedule(&v.schedule) }},
	{Name: "n", Read: func(d *wire.Decoder, v *previewRequest) { d.Count(&v.n, 1, maxLimit) }},
	{Name: "from", Read: func(d *wire.Decoder, v *previewRequest) { d.Instant(&v.from) }},
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
		return reply{}, badField("schedule", "missing", "is missing")
	}
	v, err := plan.PreviewSchedule(p.schedule, p.n, p.from)
	if err != nil {
		return reply{}, err
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "sentence", v.Sentence)
		b = duesMember(b, v.Dues)
		b = append(wire.Member(b, "warnings"), '[')
		for _, w := range v.Warnings {
			b = wire.TextMember(append(wire.Comma(b), '{'), "code", w.Code)
			b = append(wire.TextMember(b, "detail", w.Detail), '}')
		}
		return append(b, ']', '}')
	})}, nil
}
