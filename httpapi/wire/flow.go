package wire

import (
	"cmp"
	"strings"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

var limitFields = []Field[flow.Limit]{
	{"rate", func(d *Decoder, v *flow.Limit) { d.Count(&v.Rate, 1, 1_000_000) }},
	{"per", func(d *Decoder, v *flow.Limit) { d.positive(&v.Per) }},
	{"burst", func(d *Decoder, v *flow.Limit) { d.Count(&v.Burst, 1, 1_000_000) }},
	{"concurrency", func(d *Decoder, v *flow.Limit) { d.Count(&v.Concurrency, 1, 10_000) }},
	{"hold", func(d *Decoder, v *flow.Limit) {
		Choice(d, &v.HoldTask, func(s string) (bool, bool) { return s == "task", s == "task" || s == "call" }, "call, task")
	}},
	{"cooldown", func(d *Decoder, v *flow.Limit) { d.Flag(&v.Cooldown) }},
	{"breaker", func(d *Decoder, v *flow.Limit) {
		v.Breaker = flow.Breaker{Share: 0.5, Of: 20, Within: 30 * time.Second, Open: 30 * time.Second, MaxOpen: 5 * time.Minute}
		Object(d, &v.Breaker, breakerFields)
	}},
}

var breakerFields = []Field[flow.Breaker]{
	{"share", func(d *Decoder, v *flow.Breaker) { d.number(&v.Share) }},
	{"of", func(d *Decoder, v *flow.Breaker) { d.Count(&v.Of, 1, 1000) }},
	{"within", func(d *Decoder, v *flow.Breaker) { d.positive(&v.Within) }},
	{"open", func(d *Decoder, v *flow.Breaker) { d.positive(&v.Open) }},
	{"max_open", func(d *Decoder, v *flow.Breaker) { d.positive(&v.MaxOpen) }},
}

// Flow reads flow keys.
func (d *Decoder) Flow(to *engine.Flow) {
	var keys []string
	d.List(func(int) {
		keys = append(keys, "")
		d.Text(&keys[len(keys)-1])
	})
	*to = engine.FlowOf(keys)
}

// ResumeFields are what a resume says: which of the dues that were held are called.
var ResumeFields = []Field[string]{
	{"backlog", func(d *Decoder, v *string) {
		Choice(d, v, func(s string) (string, bool) {
			return s, s == engine.BacklogCall || s == engine.BacklogLatest || s == engine.BacklogSkip
		}, "call, latest, skip")
	}},
}

// DecodeLimit reads the limit of a flow key, fills in its defaults, and judges it.
func DecodeLimit(b []byte) (*flow.Limit, error) {
	l := &flow.Limit{}
	if err := Decode(b, func(d *Decoder) { Object(d, l, limitFields) }); err != nil {
		return nil, err
	}
	if l.Rate != 0 {
		l.Per, l.Burst = cmp.Or(l.Per, time.Second), cmp.Or(l.Burst, 1)
	}
	wrong := l.Check()
	if len(wrong) == 0 {
		return l, nil
	}
	f := &engine.Fault{Kind: engine.FaultInvalid, Code: wrong[0].Code, Detail: strings.TrimPrefix(wrong[0].Field+": "+wrong[0].Detail, ": ")}
	for _, w := range wrong {
		if w.Field != "" {
			f.Fields = append(f.Fields, engine.FieldFault{Field: w.Field, Detail: w.Detail})
		}
	}
	return nil, f
}

// AppendLimit appends the members of a limit.
func AppendLimit(b []byte, l *flow.Limit) []byte {
	if l.Rate != 0 {
		b = IntMember(b, "rate", int64(l.Rate))
		b = DurationMember(b, "per", l.Per)
		b = IntMember(b, "burst", int64(l.Burst))
	}
	if l.Concurrency != 0 {
		b = IntMember(b, "concurrency", int64(l.Concurrency))
	}
	if l.HoldTask {
		b = TextMember(b, "hold", "task")
	}
	if l.Cooldown {
		b = BoolMember(b, "cooldown", true)
	}
	if k := &l.Breaker; k.Of != 0 {
		b = append(Member(b, "breaker"), '{')
		b = FloatMember(b, "share", k.Share)
		b = IntMember(b, "of", int64(k.Of))
		b = DurationMember(b, "within", k.Within)
		b = DurationMember(b, "open", k.Open)
		b = append(DurationMember(b, "max_open", k.MaxOpen), '}')
	}
	return b
}
