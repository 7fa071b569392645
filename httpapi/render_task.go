package httpapi

import (
	"strconv"
	"time"

	"xtimer/engine"
)

// taskAnswer renders one task.
type taskAnswer struct{ t *engine.Task }

func (a taskAnswer) render(b []byte) []byte { return appendTask(b, a.t) }

func appendTask(b []byte, t *engine.Task) []byte {
	b = append(b, `{"key":"`...)
	b = t.Key.Append(b)
	b = append(b, `","timer_id":"`...)
	b = strconv.AppendUint(b, uint64(t.Key.Timer), 10)
	b = append(b, '"')
	b = textMember(b, "app", t.App)
	if t.Name != "" {
		b = textMember(b, "name", t.Name)
	}
	b = timeMember(b, "due", t.Key.Due)
	if t.Count > 1 {
		b = timeMember(b, "due_last", t.DueLast)
		b = intMember(b, "count", t.Count)
	}
	b = textMember(b, "origin", t.Origin.String())
	b = textMember(b, "status", t.Status.String())
	if t.Reason != "" {
		b = textMember(b, "reason", t.Reason)
	}
	if len(t.Attempts) > 0 && t.Lateness >= 0 {
		b = appendMillis(member(b, "lateness_ms"), t.Lateness)
	}
	if t.Status == engine.Retrying && t.NotBefore != 0 {
		b = timeMember(b, "next_attempt", t.NotBefore)
	}
	if t.Ended != 0 {
		b = timeMember(b, "ended", t.Ended)
	}
	b = intMember(b, "attempt_count", int64(t.LastAttempt()))
	b = append(member(b, "attempts"), '[')
	for i := range t.Attempts {
		b = appendAttempt(comma(b), &t.Attempts[i])
	}
	return append(b, ']', '}')
}

func appendAttempt(b []byte, a *engine.Attempt) []byte {
	b = intMember(append(b, '{'), "n", int64(a.N))
	b = timeMember(b, "started", a.Started/1000)
	b = appendMillis(member(b, "took_ms"), a.Took)
	if a.Code != 0 {
		b = intMember(b, "code", int64(a.Code))
	}
	if a.ErrorClass != "" {
		b = textMember(b, "error_class", a.ErrorClass)
	}
	if len(a.Response) > 0 {
		b = appendTextBytes(member(b, "response"), a.Response)
	}
	if p := &a.Phases; *p != (engine.Phases{}) {
		b = append(member(b, "phases_us"), '{')
		for _, x := range [...]struct {
			name string
			took time.Duration
		}{
			{"wheel", p.Wheel},
			{"queue", p.Queue},
			{"dial", p.Dial},
			{"tls", p.TLS},
			{"send", p.Send},
			{"first_byte", p.FirstByte},
			{"read", p.Read},
		} {
			b = intMember(b, x.name, x.took.Microseconds())
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendMillis appends a duration as a number of ms, exact to the µs.
func appendMillis(b []byte, d time.Duration) []byte {
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
