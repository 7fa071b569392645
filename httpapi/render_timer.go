package httpapi

import (
	"encoding/base64"
	"strconv"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// viewAnswer renders a timer as a reader sees it.
type viewAnswer struct{ v scheduler.View }

func (a viewAnswer) render(b []byte) []byte { return appendView(b, &a.v) }

// appendView appends a timer: its definition as it was sent, defaults filled
// in, and what the server knows of it.
func appendView(b []byte, v *scheduler.View) []byte {
	b = append(b, `{"id":"`...)
	b = strconv.AppendUint(b, uint64(v.ID), 10)
	b = append(b, '"')
	b = appendDefinition(b, &v.Definition)
	b = textMember(b, "status", v.Status.String())
	if v.Status == engine.Disabled && v.Reason != "" {
		b = textMember(b, "reason", v.Reason)
	}
	if v.Until != 0 {
		b = timeMember(b, "disabled_until", v.Until)
	}
	b = intMember(b, "version", int64(v.Version))
	b = timeMember(b, "created_at", v.CreatedAt)
	b = timeMember(b, "updated_at", v.UpdatedAt)
	if v.NextDue != 0 {
		b = timeMember(b, "next_due", v.NextDue)
	}
	if v.LastTask != nil {
		b = appendTask(member(b, "last_task"), v.LastTask)
	}
	return append(b, '}')
}

// appendDefinition appends the fields of a definition to an object.
func appendDefinition(b []byte, d *engine.Definition) []byte {
	b = textMember(b, "app", d.App)
	if d.Name != "" {
		b = textMember(b, "name", d.Name)
	}
	b = appendSchedule(member(b, "schedule"), &d.Schedule)
	b = appendCallback(member(b, "callback"), &d.Callback)

	b = append(member(b, "retry"), '{')
	b = intMember(b, "max_attempts", int64(d.Retry.MaxAttempts))
	b = durationMember(b, "backoff", d.Retry.Backoff)
	b = floatMember(b, "multiplier", d.Retry.Multiplier)
	b = durationMember(b, "max_backoff", d.Retry.MaxBackoff)
	b = floatMember(b, "jitter", d.Retry.Jitter)
	b = append(durationMember(b, "max_age", d.Retry.MaxAge), '}')

	b = append(member(b, "misfire"), '{')
	b = textMember(b, "policy", d.Misfire.Policy.String())
	b = append(durationMember(b, "window", d.Misfire.Window), '}')

	b = textMember(b, "overlap", d.Overlap.String())
	b = textMember(b, "delivery", d.Delivery.String())
	b = intMember(b, "priority", int64(d.Priority))
	if d.StaleAfter != 0 {
		b = durationMember(b, "stale_after", d.StaleAfter)
	}
	b = append(member(b, "labels"), '{')
	for i := range d.Labels {
		b = pairMember(b, d.Labels[i].Key, d.Labels[i].Value)
	}
	return append(b, '}')
}

func appendSchedule(b []byte, s *engine.Schedule) []byte {
	b = append(b, '{')
	switch {
	case s.Cron != "":
		b = textMember(b, "cron", s.Cron)
	case s.Every != 0:
		b = durationMember(b, "every", s.Every)
	case s.At != 0:
		b = timeMember(b, "at", s.At)
	case s.HasDelay:
		b = durationMember(b, "delay", s.Delay)
	}
	if s.TimeZone != "" {
		b = textMember(b, "time_zone", s.TimeZone)
	}
	if s.StartAt != 0 {
		b = timeMember(b, "start_at", s.StartAt)
	}
	if s.EndAt != 0 {
		b = timeMember(b, "end_at", s.EndAt)
	}
	if s.MaxRuns != 0 {
		b = intMember(b, "max_runs", s.MaxRuns)
	}
	if s.Jitter != 0 {
		b = durationMember(b, "jitter", s.Jitter)
	}
	return append(b, '}')
}

func appendCallback(b []byte, c *engine.Callback) []byte {
	b = textMember(append(b, '{'), "url", c.URL)
	b = textMember(b, "method", c.Method)
	b = append(member(b, "headers"), '{')
	for i := range c.Headers {
		b = pairMember(b, c.Headers[i].Name, c.Headers[i].Value)
	}
	b = append(b, '}')
	if c.HasBody {
		switch c.BodyKind {
		case engine.BodyText:
			b = appendTextBytes(member(b, "body_text"), c.Body)
		case engine.BodyBase64:
			b = append(member(b, "body_base64"), '"')
			b = append(base64.StdEncoding.AppendEncode(b, c.Body), '"')
		default:
			b = append(member(b, "body"), c.Body...)
		}
	}
	b = durationMember(b, "timeout", c.Timeout)
	return append(textMember(b, "success", c.Success), '}')
}

// pairMember appends a field whose name is a user's text.
func pairMember(b []byte, name, v string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return appendText(append(appendText(b, name), ':'), v)
}
