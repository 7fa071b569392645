package httpapi

import (
	"math"
	"strings"

	"xtimer/engine"
)

// decodeTimer reads a timer over the defaults that d holds.
func decodeTimer(b []byte, def *engine.Definition) error {
	return decode(b, func(d *decoder) { d.timer(def) })
}

func (d *decoder) timer(def *engine.Definition) { object(d, def, timerFields) }

var timerFields = []field[engine.Definition]{
	{"app", func(d *decoder, v *engine.Definition) { d.text(&v.App) }},
	{"name", func(d *decoder, v *engine.Definition) { d.text(&v.Name) }},
	{"schedule", func(d *decoder, v *engine.Definition) { object(d, &v.Schedule, scheduleFields) }},
	{"callback", func(d *decoder, v *engine.Definition) { object(d, &v.Callback, callbackFields) }},
	{"retry", func(d *decoder, v *engine.Definition) { object(d, &v.Retry, retryFields) }},
	{"misfire", func(d *decoder, v *engine.Definition) { object(d, &v.Misfire, misfireFields) }},
	{"overlap", func(d *decoder, v *engine.Definition) {
		choice(d, &v.Overlap, engine.ParseOverlap, "allow, skip, queue")
	}},
	{"delivery", func(d *decoder, v *engine.Definition) {
		choice(d, &v.Delivery, engine.ParseDelivery, "at_least_once, at_most_once")
	}},
	{"priority", func(d *decoder, v *engine.Definition) { d.count(&v.Priority, 0, 9) }},
	{"stale_after", func(d *decoder, v *engine.Definition) { d.positive(&v.StaleAfter) }},
	{"labels", func(d *decoder, v *engine.Definition) {
		pairs(d, &v.Labels, func(k, v string) engine.Label { return engine.Label{Key: k, Value: v} },
			func(a, b engine.Label) int { return strings.Compare(a.Key, b.Key) })
	}},
}

// The values 0 and "" of a schedule mean "not given", so that they are refused
// here when they are given.
var scheduleFields = []field[engine.Schedule]{
	{"cron", func(d *decoder, v *engine.Schedule) { d.required(&v.Cron) }},
	{"time_zone", func(d *decoder, v *engine.Schedule) { d.text(&v.TimeZone) }},
	{"every", func(d *decoder, v *engine.Schedule) { d.positive(&v.Every) }},
	{"at", func(d *decoder, v *engine.Schedule) { d.instant(&v.At) }},
	{"delay", func(d *decoder, v *engine.Schedule) { v.HasDelay = true; d.duration(&v.Delay) }},
	{"start_at", func(d *decoder, v *engine.Schedule) { d.instant(&v.StartAt) }},
	{"end_at", func(d *decoder, v *engine.Schedule) { d.instant(&v.EndAt) }},
	{"max_runs", func(d *decoder, v *engine.Schedule) { d.integer(&v.MaxRuns, 1, math.MaxInt64) }},
	{"jitter", func(d *decoder, v *engine.Schedule) { d.duration(&v.Jitter) }},
}

var callbackFields = []field[engine.Callback]{
	{"url", func(d *decoder, v *engine.Callback) { d.text(&v.URL) }},
	{"method", func(d *decoder, v *engine.Callback) { d.text(&v.Method) }},
	{"headers", func(d *decoder, v *engine.Callback) {
		pairs(d, &v.Headers, func(k, v string) engine.Header { return engine.Header{Name: k, Value: v} },
			func(a, b engine.Header) int { return strings.Compare(a.Name, b.Name) })
	}},
	{"body", func(d *decoder, v *engine.Callback) { d.oneBody(v, engine.BodyJSON); d.json(&v.Body) }},
	{"body_text", func(d *decoder, v *engine.Callback) {
		var s string
		d.oneBody(v, engine.BodyText)
		d.text(&s)
		v.Body = []byte(s)
	}},
	{"body_base64", func(d *decoder, v *engine.Callback) { d.oneBody(v, engine.BodyBase64); d.base64(&v.Body) }},
	{"timeout", func(d *decoder, v *engine.Callback) { d.duration(&v.Timeout) }},
	{"success", func(d *decoder, v *engine.Callback) { d.text(&v.Success) }},
}

var retryFields = []field[engine.Retry]{
	{"max_attempts", func(d *decoder, v *engine.Retry) { d.count(&v.MaxAttempts, 0, math.MaxInt32) }},
	{"backoff", func(d *decoder, v *engine.Retry) { d.duration(&v.Backoff) }},
	{"multiplier", func(d *decoder, v *engine.Retry) { d.number(&v.Multiplier) }},
	{"max_backoff", func(d *decoder, v *engine.Retry) { d.duration(&v.MaxBackoff) }},
	{"jitter", func(d *decoder, v *engine.Retry) { d.number(&v.Jitter) }},
	{"max_age", func(d *decoder, v *engine.Retry) { d.duration(&v.MaxAge) }},
}

var misfireFields = []field[engine.Misfire]{
	{"policy", func(d *decoder, v *engine.Misfire) {
		choice(d, &v.Policy, engine.ParseMisfirePolicy, "skip, latest, all")
	}},
	{"window", func(d *decoder, v *engine.Misfire) { d.duration(&v.Window) }},
}

// oneBody notes how a body is sent, and refuses a second one.
func (d *decoder) oneBody(c *engine.Callback, kind engine.BodyKind) {
	if c.HasBody {
		d.invalid("ambiguous_body", "only one of body, body_text and body_base64 can be given")
	}
	c.HasBody, c.BodyKind = true, kind
}

// count reads a small whole number.
func (d *decoder) count(to *int, low, high int64) {
	n := int64(*to)
	d.integer(&n, low, high)
	*to = int(n)
}
