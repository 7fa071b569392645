package wire

import (
	"encoding/base64"
	"strconv"

	"xtimer/engine"
	"xtimer/engine/inspect"
)

// AppendView appends a timer: its definition as it was sent, defaults filled
// in, and what the server knows of it.
func AppendView(b []byte, v *inspect.View) []byte {
	b = append(b, `{"id":"`...)
	b = strconv.AppendUint(b, uint64(v.ID), 10)
	b = append(b, '"')
	b = appendDefinition(b, &v.Definition)
	b = TextMember(b, "status", v.Status.String())
	if v.Deleted {
		b = BoolMember(b, "deleted", true)
	}
	if v.Status == engine.Disabled && v.Reason != "" {
		b = TextMember(b, "reason", v.Reason)
	}
	if v.Until != 0 {
		b = TimeMember(b, "disabled_until", v.Until)
	}
	b = IntMember(b, "version", int64(v.Version))
	b = TimeMember(b, "created_at", v.CreatedAt)
	b = TimeMember(b, "updated_at", v.UpdatedAt)
	if v.UpdatedBy != "" {
		b = TextMember(b, "updated_by", v.UpdatedBy)
	}
	if v.NextDue != 0 {
		b = TimeMember(b, "next_due", v.NextDue)
	}
	if v.LastTask != nil {
		b = AppendTask(Member(b, "last_task"), v.LastTask)
	}
	return append(b, '}')
}

// appendDefinition appends the fields of a definition to an object.
func appendDefinition(b []byte, d *engine.Definition) []byte {
	b = TextMember(b, "app", d.App)
	if d.Name != "" {
		b = TextMember(b, "name", d.Name)
	}
	b = appendSchedule(Member(b, "schedule"), &d.Schedule)
	b = appendCallback(Member(b, "callback"), &d.Callback)

	b = append(Member(b, "retry"), '{')
	b = IntMember(b, "max_attempts", int64(d.Retry.MaxAttempts))
	b = DurationMember(b, "backoff", d.Retry.Backoff)
	b = FloatMember(b, "multiplier", d.Retry.Multiplier)
	b = DurationMember(b, "max_backoff", d.Retry.MaxBackoff)
	b = FloatMember(b, "jitter", d.Retry.Jitter)
	b = append(DurationMember(b, "max_age", d.Retry.MaxAge), '}')

	b = append(Member(b, "misfire"), '{')
	b = TextMember(b, "policy", d.Misfire.Policy.String())
	b = append(DurationMember(b, "window", d.Misfire.Window), '}')

	b = TextMember(b, "overlap", d.Overlap.String())
	b = TextMember(b, "delivery", d.Delivery.String())
	b = IntMember(b, "priority", int64(d.Priority))
	if d.StaleAfter != 0 {
		b = DurationMember(b, "stale_after", d.StaleAfter)
	}
	if d.Flow != "" {
		b = append(Member(b, "flow"), '[')
		for _, key := range d.Flow.Keys() {
			b = AppendText(Comma(b), key)
		}
		b = append(b, ']')
	}
	b = append(Member(b, "labels"), '{')
	for i := range d.Labels {
		b = pairMember(b, d.Labels[i].Key, d.Labels[i].Value)
	}
	return append(b, '}')
}

func appendSchedule(b []byte, s *engine.Schedule) []byte {
	b = append(b, '{')
	switch {
	case s.Cron != "":
		b = TextMember(b, "cron", s.Cron)
	case s.Every != 0:
		b = DurationMember(b, "every", s.Every)
	case s.At != 0:
		b = TimeMember(b, "at", s.At)
	case s.HasDelay:
		b = DurationMember(b, "delay", s.Delay)
	}
	if s.TimeZone != "" {
		b = TextMember(b, "time_zone", s.TimeZone)
	}
	if s.StartAt != 0 {
		b = TimeMember(b, "start_at", s.StartAt)
	}
	if s.EndAt != 0 {
		b = TimeMember(b, "end_at", s.EndAt)
	}
	if s.MaxRuns != 0 {
		b = IntMember(b, "max_runs", s.MaxRuns)
	}
	if s.Jitter != 0 {
		b = DurationMember(b, "jitter", s.Jitter)
	}
	return append(b, '}')
}

func appendCallback(b []byte, c *engine.Callback) []byte {
	b = TextMember(append(b, '{'), "url", c.URL)
	b = TextMember(b, "method", c.Method)
	b = append(Member(b, "headers"), '{')
	for i := range c.Headers {
		h := &c.Headers[i]
		if h.Secret == "" {
			b = pairMember(b, h.Name, h.Value)
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(AppendText(b, h.Name), `:{"secret":`...)
		b = append(AppendText(b, h.Secret), '}')
	}
	b = append(b, '}')
	if c.HasBody {
		switch c.BodyKind {
		case engine.BodyText:
			b = appendTextBytes(Member(b, "body_text"), c.Body)
		case engine.BodyBase64:
			b = append(Member(b, "body_base64"), '"')
			b = append(base64.StdEncoding.AppendEncode(b, c.Body), '"')
		default:
			b = append(Member(b, "body"), c.Body...)
		}
	}
	b = DurationMember(b, "timeout", c.Timeout)
	b = TextMember(b, "success", c.Success)
	if c.Batch != nil {
		b = IntMember(append(Member(b, "batch"), '{'), "max", int64(c.Batch.Max))
		b = append(DurationMember(b, "wait", c.Batch.Wait), '}')
	}
	return append(b, '}')
}

// pairMember appends a field whose name is a user's text.
func pairMember(b []byte, name, v string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return AppendText(append(AppendText(b, name), ':'), v)
}
