package httpapi

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

type previewRequest struct {
	schedule engine.Schedule
	given    bool
	n        int
	from     int64
}

var previewFields = []field[previewRequest]{
	{"schedule", func(d *decoder, v *previewRequest) { v.given = true; object(d, &v.schedule, scheduleFields) }},
	{"n", func(d *decoder, v *previewRequest) { d.count(&v.n, 1, maxLimit) }},
	{"from", func(d *decoder, v *previewRequest) { d.instant(&v.from) }},
}

// preview is POST /v1/schedules/preview.
func (s *Server) preview(r *request) (reply, error) {
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	p := previewRequest{n: defaultDues, from: time.Now().UnixMilli()}
	if err := decode(body, func(d *decoder) { object(d, &p, previewFields) }); err != nil {
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
		b = textMember(append(b, '{'), "sentence", v.Sentence)
		b = duesMember(b, v.Dues)
		b = append(member(b, "warnings"), '[')
		for _, w := range v.Warnings {
			b = textMember(append(comma(b), '{'), "code", w.Code)
			b = append(textMember(b, "detail", w.Detail), '}')
		}
		return append(b, ']', '}')
	})}, nil
}
