package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// DecodeTimer reads a timer over the defaults that def holds.
func DecodeTimer(b []byte, def *engine.Definition) error {
	return WithInvalid(Decode(b, func(d *Decoder) { d.Timer(def) }), "", def)
}

// WithInvalid adds to the faults that the decoding of a timer found what else is invalid
// in it, so that a response lists all errors. Without an err it adds nothing: to validate
// what was decoded is up to the engine.
func WithInvalid(err error, prefix string, def *engine.Definition) error {
	var f, more *engine.Fault
	if !errors.As(err, &f) || len(f.Fields) == 0 || f.Code == "malformed_json" || f.Code == "duplicate_field" ||
		!errors.As(plan.Validate(def), &more) {
		return err
	}
	all := *f
	all.Fields = slices.Clone(f.Fields)
	for _, m := range more.Fields {
		m.Field = prefix + m.Field
		// What a fault kept from being read is not missing as well.
		known := slices.ContainsFunc(f.Fields, func(k engine.FieldFault) bool {
			return k.Field == m.Field || strings.HasPrefix(k.Field, m.Field+".") || strings.HasPrefix(m.Field, k.Field+".")
		})
		if !known && len(all.Fields) < maxFaults {
			all.Fields = append(all.Fields, m)
		}
	}
	all.Detail = summary(all.Fields)
	return &all
}

// summary is one line about the faults of fields.
func summary(fields []engine.FieldFault) string {
	s := fields[0].Field + ": " + fields[0].Detail
	if n := len(fields); n > 1 {
		s += fmt.Sprintf(" (and %d more)", n-1)
	}
	return s
}

// Timer reads a timer over the defaults that def holds.
func (d *Decoder) Timer(def *engine.Definition) { Object(d, def, timerFields) }

// Schedule reads a schedule.
func (d *Decoder) Schedule(s *engine.Schedule) { Object(d, s, scheduleFields) }

var timerFields = []Field[engine.Definition]{
	{"app", func(d *Decoder, v *engine.Definition) { d.Text(&v.App) }},
	{"name", func(d *Decoder, v *engine.Definition) { d.Text(&v.Name) }},
	{"schedule", func(d *Decoder, v *engine.Definition) { d.Schedule(&v.Schedule) }},
	{"callback", func(d *Decoder, v *engine.Definition) { Object(d, &v.Callback, callbackFields) }},
	{"retry", func(d *Decoder, v *engine.Definition) { Object(d, &v.Retry, retryFields) }},
	{"misfire", func(d *Decoder, v *engine.Definition) { Object(d, &v.Misfire, misfireFields) }},
	{"overlap", func(d *Decoder, v *engine.Definition) {
		Choice(d, &v.Overlap, engine.ParseOverlap, "allow, skip, queue")
	}},
	{"delivery", func(d *Decoder, v *engine.Definition) {
		Choice(d, &v.Delivery, engine.ParseDelivery, "at_least_once, at_most_once")
	}},
	{"priority", func(d *Decoder, v *engine.Definition) { d.Count(&v.Priority, 0, 9) }},
	{"stale_after", func(d *Decoder, v *engine.Definition) { d.positive(&v.StaleAfter) }},
	{"flow", func(d *Decoder, v *engine.Definition) { d.Flow(&v.Flow) }},
	{"labels", func(d *Decoder, v *engine.Definition) {
		pairs(d, &v.Labels, func(k string) engine.Label {
			l := engine.Label{Key: k}
			d.Text(&l.Value)
			return l
		}, func(a, b engine.Label) int { return strings.Compare(a.Key, b.Key) })
	}},
}

// The values 0 and "" of a schedule mean "not given", so that they are refused
// here when they are given.
var scheduleFields = []Field[engine.Schedule]{
	{"cron", func(d *Decoder, v *engine.Schedule) { d.required(&v.Cron) }},
	{"time_zone", func(d *Decoder, v *engine.Schedule) { d.Text(&v.TimeZone) }},
	{"every", func(d *Decoder, v *engine.Schedule) { d.positive(&v.Every) }},
	{"at", func(d *Decoder, v *engine.Schedule) { d.Instant(&v.At) }},
	{"delay", func(d *Decoder, v *engine.Schedule) { v.HasDelay = true; d.duration(&v.Delay) }},
	{"start_at", func(d *Decoder, v *engine.Schedule) { d.Instant(&v.StartAt) }},
	{"end_at", func(d *Decoder, v *engine.Schedule) { d.Instant(&v.EndAt) }},
	{"max_runs", func(d *Decoder, v *engine.Schedule) { d.integer(&v.MaxRuns, 1, math.MaxInt64) }},
	{"jitter", func(d *Decoder, v *engine.Schedule) { d.duration(&v.Jitter) }},
}

var callbackFields = []Field[engine.Callback]{
	{"url", func(d *Decoder, v *engine.Callback) { d.Text(&v.URL) }},
	{"method", func(d *Decoder, v *engine.Callback) { d.Text(&v.Method) }},
	{"headers", func(d *Decoder, v *engine.Callback) {
		pairs(d, &v.Headers, func(k string) engine.Header {
			h := engine.Header{Name: k}
			d.TextOrSecret(&h.Value, &h.Secret)
			return h
		}, func(a, b engine.Header) int { return strings.Compare(a.Name, b.Name) })
	}},
	{"body", func(d *Decoder, v *engine.Callback) { d.oneBody(v, engine.BodyJSON); d.json(&v.Body) }},
	{"body_text", func(d *Decoder, v *engine.Callback) {
		var s string
		d.oneBody(v, engine.BodyText)
		d.Text(&s)
		v.Body = []byte(s)
	}},
	{"body_base64", func(d *Decoder, v *engine.Callback) { d.oneBody(v, engine.BodyBase64); d.base64(&v.Body) }},
	{"timeout", func(d *Decoder, v *engine.Callback) { d.duration(&v.Timeout) }},
	{"success", func(d *Decoder, v *engine.Callback) { d.Text(&v.Success) }},
	{"batch", func(d *Decoder, v *engine.Callback) {
		v.Batch = &engine.Batch{}
		Object(d, v.Batch, batchFields)
	}},
}

var batchFields = []Field[engine.Batch]{
	{"max", func(d *Decoder, v *engine.Batch) { d.Count(&v.Max, 0, math.MaxInt32) }},
	{"wait", func(d *Decoder, v *engine.Batch) { d.duration(&v.Wait) }},
}

var retryFields = []Field[engine.Retry]{
	{"max_attempts", func(d *Decoder, v *engine.Retry) { d.Count(&v.MaxAttempts, 0, math.MaxInt32) }},
	{"backoff", func(d *Decoder, v *engine.Retry) { d.duration(&v.Backoff) }},
	{"multiplier", func(d *Decoder, v *engine.Retry) { d.number(&v.Multiplier) }},
	{"max_backoff", func(d *Decoder, v *engine.Retry) { d.duration(&v.MaxBackoff) }},
	{"jitter", func(d *Decoder, v *engine.Retry) { d.number(&v.Jitter) }},
	{"max_age", func(d *Decoder, v *engine.Retry) { d.duration(&v.MaxAge) }},
}

var misfireFields = []Field[engine.Misfire]{
	{"policy", func(d *Decoder, v *engine.Misfire) {
		Choice(d, &v.Policy, engine.ParseMisfirePolicy, "skip, latest, all")
	}},
	{"window", func(d *Decoder, v *engine.Misfire) { d.duration(&v.Window) }},
}

// oneBody notes how a body is sent, and refuses a second one.
func (d *Decoder) oneBody(c *engine.Callback, kind engine.BodyKind) {
	if c.HasBody {
		d.Invalid("ambiguous_body", "only one of body, body_text and body_base64 may be given")
	}
	c.HasBody, c.BodyKind = true, kind
}

// Count reads a small whole number.
func (d *Decoder) Count(to *int, low, high int64) {
	n := int64(*to)
	d.integer(&n, low, high)
	*to = int(n)
}
