package wire

import (
	"strconv"
	"time"

	"xtimer/engine"
)

// AppendTask appends a task with the attempts it has.
func AppendTask(b []byte, t *engine.Task) []byte {
	b = append(b, `{"key":"`...)
	b = t.Key.Append(b)
	b = append(b, `","timer_id":"`...)
	b = strconv.AppendUint(b, uint64(t.Key.Timer), 10)
	b = append(b, '"')
	b = TextMember(b, "app", t.App)
	if t.Name != "" {
		b = TextMember(b, "name", t.Name)
	}
	b = TimeMember(b, "due", t.Key.Due)
	if t.Count > 1 {
		b = TimeMember(b, "due_last", t.DueLast)
		b = IntMember(b, "count", t.Count)
	}
	b = TextMember(b, "origin", t.Origin.String())
	b = TextMember(b, "status", t.Status.String())
	if t.Reason != "" {
		b = TextMember(b, "reason", t.Reason)
	}
	if len(t.Attempts) > 0 && t.Lateness >= 0 {
		b = AppendMillis(Member(b, "lateness_ms"), t.Lateness)
	}
	if len(t.Holds) > 0 {
		b = appendHolds(b, t)
	}
	if t.NotBefore != 0 && (t.Status == engine.Retrying || t.Status == engine.Waiting && t.Reason != "") {
		b = TimeMember(b, "next_attempt", t.NotBefore)
	}
	if t.Ended != 0 {
		b = TimeMember(b, "ended", t.Ended)
	}
	if t.Dismissed != 0 {
		b = TimeMember(b, "dismissed", t.Dismissed)
		if t.DismissedBy != "" {
			b = TextMember(b, "dismissed_by", t.DismissedBy)
		}
	}
	b = IntMember(b, "attempt_count", int64(t.LastAttempt()))
	b = append(Member(b, "attempts"), '[')
	for i := range t.Attempts {
		b = appendAttempt(Comma(b), &t.Attempts[i])
	}
	return append(b, ']', '}')
}

func appendHolds(b []byte, t *engine.Task) []byte {
	b = append(Member(AppendMillis(Member(b, "held_ms"), t.Held()), "holds"), '[')
	for i := range t.Holds {
		h := &t.Holds[i]
		b = TextMember(append(Comma(b), '{'), "by", h.By)
		b = TextMember(b, "name", h.Name)
		b = append(AppendMillis(Member(b, "ms"), h.Took), '}')
	}
	return append(b, ']')
}

func appendAttempt(b []byte, a *engine.Attempt) []byte {
	b = IntMember(append(b, '{'), "n", int64(a.N))
	b = TimeMember(b, "started", a.Started/1000)
	b = AppendMillis(Member(b, "took_ms"), a.Took)
	if a.Code != 0 {
		b = IntMember(b, "code", int64(a.Code))
	}
	if a.ErrorClass != "" {
		b = TextMember(b, "error_class", a.ErrorClass)
	}
	switch {
	case len(a.Response) == 0:
	case a.ErrorClass == engine.SecretMissing:
		b = appendTextBytes(Member(b, "secret"), a.Response)
	default:
		b = appendTextBytes(Member(b, "response"), a.Response)
	}
	if a.BatchSize != 0 {
		b = TextMember(b, "batch", engine.BatchName(a.Batch))
		b = IntMember(b, "batch_size", int64(a.BatchSize))
	}
	if p := &a.Phases; *p != (engine.Phases{}) {
		b = append(Member(b, "phases_us"), '{')
		for _, x := range [...]struct {
			name string
			took time.Duration
		}{
			{"wheel", p.Wheel},
			{"hold", p.Hold},
			{"queue", p.Queue},
			{"dial", p.Dial},
			{"tls", p.TLS},
			{"send", p.Send},
			{"first_byte", p.FirstByte},
			{"read", p.Read},
		} {
			if x.name == "hold" && x.took == 0 {
				continue
			}
			b = IntMember(b, x.name, x.took.Microseconds())
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// AppendMillis appends a duration as a number of ms, exact to the µs.
func AppendMillis(b []byte, d time.Duration) []byte {
	us := int64(d / time.Microsecond)
	if us < 0 {
		b, us = append(b, '-'), -us
	}
	b = strconv.AppendInt(b, us/1000, 10)
	if us %= 1000; us != 0 {
		b = digits(append(b, '.'), int(us), 100)
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return b
}
