package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	api "xtimer/httpapi/client"
)

// sentDefinition is a definition as the API takes it, every default filled in.
func sentDefinition(d *engine.Definition) api.Definition {
	s, c := &d.Schedule, &d.Callback
	out := api.Definition{
		App: d.App, Name: d.Name,
		Schedule: api.Schedule{
			Cron: s.Cron, TimeZone: s.TimeZone, Every: s.Every, At: timeOf(s.At),
			StartAt: timeOf(s.StartAt), EndAt: timeOf(s.EndAt), MaxRuns: s.MaxRuns, Jitter: s.Jitter,
		},
		Callback: api.Callback{URL: c.URL, Method: c.Method, Timeout: c.Timeout, Success: c.Success},
		Retry: api.Retry{
			MaxAttempts: d.Retry.MaxAttempts, Backoff: d.Retry.Backoff, Multiplier: d.Retry.Multiplier,
			MaxBackoff: d.Retry.MaxBackoff, Jitter: &d.Retry.Jitter, MaxAge: d.Retry.MaxAge,
		},
		Misfire:  api.Misfire{Policy: d.Misfire.Policy.String(), Window: &d.Misfire.Window},
		Overlap:  d.Overlap.String(),
		Delivery: d.Delivery.String(),
		Priority: &d.Priority, StaleAfter: api.Duration(d.StaleAfter), Flow: d.Flow.Keys(),
	}
	if s.HasDelay {
		out.Schedule.Delay = &s.Delay
	}
	if c.Batch != nil {
		out.Callback.Batch = &api.Batch{Max: c.Batch.Max, Wait: api.Duration(c.Batch.Wait)}
	}
	for _, h := range c.Headers {
		if h.Secret != "" {
			put(&out.Callback.SecretHeaders, h.Name, h.Secret)
		} else {
			put(&out.Callback.Headers, h.Name, h.Value)
		}
	}
	if len(d.Labels) > 0 {
		out.Labels = make(map[string]string, len(d.Labels))
		for _, l := range d.Labels {
			out.Labels[l.Key] = l.Value
		}
	}
	if c.HasBody {
		switch c.BodyKind {
		case engine.BodyText:
			out.Callback.BodyText = new(string(c.Body))
		case engine.BodyBase64:
			out.Callback.BodyBase64 = append([]byte{}, c.Body...) // not nil, though empty
		default:
			out.Callback.Body = json.RawMessage(c.Body)
		}
	}
	return out
}

// storedDefinition is a definition as the engine has it. Of a field that is left
// out it is the default, as at the API.
func storedDefinition(in *api.Definition) (engine.Definition, error) {
	d := engine.NewDefinition()
	d.App, d.Name = in.App, in.Name
	s := &in.Schedule
	d.Schedule = engine.Schedule{
		Cron: s.Cron, TimeZone: s.TimeZone, Every: s.Every, At: msOf(s.At),
		StartAt: msOf(s.StartAt), EndAt: msOf(s.EndAt), MaxRuns: s.MaxRuns, Jitter: s.Jitter,
	}
	if s.Delay != nil {
		d.Schedule.HasDelay, d.Schedule.Delay = true, *s.Delay
	}
	if err := storedCallback(&d.Callback, &in.Callback); err != nil {
		return d, err
	}
	r := &in.Retry
	fillIn(&d.Retry.MaxAttempts, r.MaxAttempts)
	fillIn(&d.Retry.Backoff, r.Backoff)
	fillIn(&d.Retry.Multiplier, r.Multiplier)
	fillIn(&d.Retry.MaxBackoff, r.MaxBackoff)
	fillIn(&d.Retry.MaxAge, r.MaxAge)
	if r.Jitter != nil {
		d.Retry.Jitter = *r.Jitter
	}
	if in.Misfire.Window != nil {
		d.Misfire.Window = *in.Misfire.Window
	}
	if in.Priority != nil {
		d.Priority = *in.Priority
	}
	d.StaleAfter, d.Flow = time.Duration(in.StaleAfter), engine.FlowOf(in.Flow)
	d.Labels = engine.SortLabels(in.Labels)
	if err := choose(&d.Misfire.Policy, in.Misfire.Policy, engine.ParseMisfirePolicy, "misfire.policy"); err != nil {
		return d, err
	}
	if err := choose(&d.Overlap, in.Overlap, engine.ParseOverlap, "overlap"); err != nil {
		return d, err
	}
	if err := choose(&d.Delivery, in.Delivery, engine.ParseDelivery, "delivery"); err != nil {
		return d, err
	}
	return d, plan.Validate(&d)
}

func put(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}

func storedCallback(c *engine.Callback, in *api.Callback) error {
	c.URL = in.URL
	fillIn(&c.Method, in.Method)
	fillIn(&c.Timeout, in.Timeout)
	fillIn(&c.Success, in.Success)
	if b := in.Batch; b != nil {
		c.Batch = &engine.Batch{Max: b.Max, Wait: time.Duration(b.Wait)}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		c.Headers = append(c.Headers, engine.Header{Name: name, Value: in.Headers[name]})
	}
	for name, secret := range in.SecretHeaders {
		c.Headers = append(c.Headers, engine.Header{Name: name, Secret: secret})
	}
	slices.SortFunc(c.Headers, func(a, b engine.Header) int { return strings.Compare(a.Name, b.Name) })
	bodies := 0
	have := func(kind engine.BodyKind, b []byte) {
		bodies++
		c.HasBody, c.BodyKind, c.Body = true, kind, b
	}
	if in.Body != nil {
		body, ok := in.Body.(json.RawMessage)
		if !ok {
			b, err := json.Marshal(in.Body)
			if err != nil {
				return fmt.Errorf("callback.body: %w", err)
			}
			body = b
		}
		var b bytes.Buffer // as the API keeps it: without the space between its tokens
		if err := json.Compact(&b, body); err != nil {
			return fmt.Errorf("callback.body: %w", err)
		}
		have(engine.BodyJSON, b.Bytes())
	}
	if in.BodyText != nil {
		have(engine.BodyText, []byte(*in.BodyText))
	}
	if in.BodyBase64 != nil {
		have(engine.BodyBase64, in.BodyBase64)
	}
	if bodies > 1 {
		return fmt.Errorf("callback: only one of body, body_text and body_base64 may be given")
	}
	return nil
}

// fillIn sets a field whose zero means that it was left out.
func fillIn[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}

// choose reads one of some words; "" leaves the default.
func choose[T any](to *T, s string, parse func(string) (T, bool), field string) error {
	if s == "" {
		return nil
	}
	v, ok := parse(s)
	if !ok {
		return fmt.Errorf("%s: %q is not a known value", field, s)
	}
	*to = v
	return nil
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// msOf rounds up, as the server does: nothing is ever early.
func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}
