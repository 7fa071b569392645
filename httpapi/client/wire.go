package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The wire forms of durations and times, put over the fields of the types that
// have such: a Go string or ms; RFC 3339 or Unix ms.
type (
	Duration time.Duration
	instant  time.Time
)

// MarshalText writes a duration without the zeros at its end: 24h, 1h30m.
func (d Duration) MarshalText() ([]byte, error) {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return []byte(s), nil
}

func (d Duration) IsZero() bool { return d == 0 }

func (d *Duration) UnmarshalJSON(b []byte) error {
	var ms int64
	if json.Unmarshal(b, &ms) == nil {
		if *d = Duration(ms) * Duration(time.Millisecond); int64(*d)/int64(time.Millisecond) != ms {
			return fmt.Errorf("%d ms is too large", ms)
		}
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		if v, err := time.ParseDuration(s); err == nil {
			*d = Duration(v)
			return nil
		}
	}
	return fmt.Errorf(`%s is neither a duration like "250ms" or "1h30m", up to 2562047h, nor a whole number of ms`, b)
}

func (t instant) IsZero() bool { return time.Time(t).IsZero() }

// MarshalText writes a time with ms. Finer digits are rounded up, as the server
// does: nothing is ever early.
func (t instant) MarshalText() ([]byte, error) {
	v := time.Time(t).UTC()
	if ms := v.Truncate(time.Millisecond); ms.Before(v) {
		v = ms.Add(time.Millisecond)
	}
	return v.AppendFormat(nil, "2006-01-02T15:04:05.000Z"), inYears(v)
}

// inYears refuses what RFC 3339 cannot write.
func inYears(t time.Time) error {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return fmt.Errorf("the year %d is not in the range 0 to 9999", y)
	}
	return nil
}

func (t *instant) UnmarshalJSON(b []byte) error {
	var ms int64
	if json.Unmarshal(b, &ms) == nil {
		if 1e8 <= ms && ms < 1e11 { // as ms it lies in 1970
			return fmt.Errorf("%d is a Unix time in seconds; numbers are in milliseconds: write %d000", ms, ms)
		}
		*t = instant(time.UnixMilli(ms).UTC())
		return inYears(time.Time(*t))
	}
	if json.Unmarshal(b, (*time.Time)(t)) != nil {
		return fmt.Errorf("%s is neither a time like \"2026-11-20T17:00:00.250Z\" nor Unix ms", b)
	}
	return inYears(time.Time(*t))
}

// marshal is json.Marshal, but leaves <, > and & as they are: a callback's body
// goes out as its writer wrote it.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

type (
	plainSchedule Schedule
	plainCallback Callback
	plainRetry    Retry
	plainMisfire  Misfire
)

type wireSchedule struct {
	*plainSchedule
	Every   *Duration `json:"every,omitzero"`
	At      *instant  `json:"at,omitzero"`
	Delay   *Duration `json:"delay,omitempty"`
	StartAt *instant  `json:"start_at,omitzero"`
	EndAt   *instant  `json:"end_at,omitzero"`
	Jitter  *Duration `json:"jitter,omitzero"`
}

func (s *Schedule) wire() wireSchedule {
	return wireSchedule{
		(*plainSchedule)(s), (*Duration)(&s.Every), (*instant)(&s.At), (*Duration)(s.Delay),
		(*instant)(&s.StartAt), (*instant)(&s.EndAt), (*Duration)(&s.Jitter),
	}
}

// MarshalJSON writes the wire form.
func (s Schedule) MarshalJSON() ([]byte, error) { return marshal(s.wire()) }

// UnmarshalJSON reads the wire form.
func (s *Schedule) UnmarshalJSON(b []byte) error {
	w := s.wire()
	err := json.Unmarshal(b, &w)
	s.Delay = (*time.Duration)(w.Delay)
	return err
}

type wireCallback struct {
	*plainCallback
	Timeout *Duration              `json:"timeout,omitzero"`
	Headers map[string]headerValue `json:"headers,omitempty"`
}

// headerValue is a value, or a secret by its name.
type headerValue struct{ value, secret string }

type secretName struct {
	Secret string `json:"secret"`
}

// MarshalJSON writes a string, or {"secret":…}.
func (h headerValue) MarshalJSON() ([]byte, error) {
	if h.secret != "" {
		return marshal(secretName{h.secret})
	}
	return marshal(h.value)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *headerValue) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var s secretName
		err := json.Unmarshal(b, &s)
		h.secret = s.Secret
		return err
	}
	return json.Unmarshal(b, &h.value)
}

func (c *Callback) headers() map[string]headerValue {
	all := make(map[string]headerValue, len(c.Headers)+len(c.SecretHeaders))
	for name, v := range c.Headers {
		all[name] = headerValue{value: v}
	}
	for name, s := range c.SecretHeaders {
		all[name] = headerValue{secret: s}
	}
	return all
}

func (c *Callback) setHeaders(all map[string]headerValue) {
	c.Headers, c.SecretHeaders = nil, nil
	put := func(to *map[string]string, name, v string) {
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[name] = v
	}
	for name, h := range all {
		if h.secret != "" {
			put(&c.SecretHeaders, name, h.secret)
		} else {
			put(&c.Headers, name, h.value)
		}
	}
}

// MarshalJSON writes the wire form.
func (c Callback) MarshalJSON() ([]byte, error) {
	return marshal(wireCallback{(*plainCallback)(&c), (*Duration)(&c.Timeout), c.headers()})
}

// UnmarshalJSON reads the wire form.
func (c *Callback) UnmarshalJSON(b []byte) error {
	w := struct {
		wireCallback
		Body json.RawMessage `json:"body"` // its numbers keep their digits
	}{wireCallback: wireCallback{plainCallback: (*plainCallback)(c), Timeout: (*Duration)(&c.Timeout)}}
	err := json.Unmarshal(b, &w)
	if w.Headers != nil {
		c.setHeaders(w.Headers)
	}
	if c.Body = nil; len(w.Body) > 0 {
		c.Body = w.Body
	}
	return err
}

type wireRetry struct {
	*plainRetry
	Backoff    *Duration `json:"backoff,omitzero"`
	MaxBackoff *Duration `json:"max_backoff,omitzero"`
	MaxAge     *Duration `json:"max_age,omitzero"`
}

func (r *Retry) wire() wireRetry {
	return wireRetry{(*plainRetry)(r), (*Duration)(&r.Backoff), (*Duration)(&r.MaxBackoff), (*Duration)(&r.MaxAge)}
}

// MarshalJSON writes the wire form.
func (r Retry) MarshalJSON() ([]byte, error) { return marshal(r.wire()) }

// UnmarshalJSON reads the wire form.
func (r *Retry) UnmarshalJSON(b []byte) error {
	w := r.wire()
	return json.Unmarshal(b, &w)
}

type wireMisfire struct {
	*plainMisfire
	Window *Duration `json:"window,omitempty"`
}

// MarshalJSON writes the wire form.
func (m Misfire) MarshalJSON() ([]byte, error) {
	return marshal(wireMisfire{(*plainMisfire)(&m), (*Duration)(m.Window)})
}

// UnmarshalJSON reads the wire form.
func (m *Misfire) UnmarshalJSON(b []byte) error {
	w := wireMisfire{(*plainMisfire)(m), (*Duration)(m.Window)}
	err := json.Unmarshal(b, &w)
	m.Window = (*time.Duration)(w.Window)
	return err
}
