package client

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzCall: whatever the headers of a call say, it is refused, or is what they
// say; without the secret, none is verified.
func FuzzCall(f *testing.F) {
	f.Add("7354_1763658000250", "2", "a", "n%20%C3%A9", "1763658000", "v1,AAAA", []byte("body"))
	f.Add("7354_", "", "%", "%zz", "x", "", []byte{})
	f.Add("0_-1", "-1", "", "\xff", "-9223372036854775808", "v1, v2,=", []byte(nil))
	f.Add("18446744073709551616_1", "1", "a", "b", "9223372036854775807", "v1,"+strings.Repeat("A", 43)+"=", []byte("\x00"))
	keys := [][]byte{bytes.Repeat([]byte{7}, 24)}
	f.Fuzz(func(t *testing.T, key, attempt, app, name, stamp, signature string, body []byte) {
		h := http.Header{
			"X-Xtimer-Task": {key}, "X-Xtimer-Attempt": {attempt}, "X-Xtimer-App": {app}, "X-Xtimer-Name": {name},
			"Webhook-Id": {key}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature},
		}
		if _, err := verify(keys, h, body, time.Unix(1763658000, 0)); err == nil {
			t.Fatalf("%q was never signed", signature)
		}
		c, err := parseCall(h, body)
		if err != nil {
			return
		}
		if n, err := strconv.Atoi(attempt); err != nil || n != c.Attempt || n < 1 {
			t.Fatalf("attempt %q is read as %d", attempt, c.Attempt)
		}
		if c.Key != key || c.TimerID+"_"+strconv.FormatInt(c.Due.UnixMilli(), 10) != key {
			t.Fatalf("%q is read as %s due %v", key, c.TimerID, c.Due)
		}
		for escaped, text := range map[string]string{app: c.App, name: c.Name} {
			if again, err := url.PathUnescape(url.PathEscape(text)); err != nil || again != text || !strings.Contains(escaped, "%") && text != escaped {
				t.Fatalf("%q is read as %q", escaped, text)
			}
		}
	})
}

// FuzzDefinition: a definition that is read is written as the same again.
func FuzzDefinition(f *testing.F) {
	f.Add(`{"app":"a","name":"n","schedule":{"every":90000,"at":1763658000250,"delay":0,"start_at":"2026-11-20T17:00:00.250001+02:00","jitter":"1h0m0.5s"},` +
		`"callback":{"url":"u","headers":{"a":"b"},"body":{"n":12345678901234567890,"s":"<"},"timeout":"1.5s"},"retry":{"jitter":0,"max_age":"24h"},"misfire":{"window":"0s"},"priority":0}`)
	f.Add(`{"schedule":{"delay":null,"every":"-1s"},"callback":{"body":null,"body_text":"","body_base64":""},"retry":{"multiplier":1e300}}`)
	f.Add(`{"schedule":{"every":9223372036854,"at":253402300799999}}`)
	f.Add(`{"schedule":{"at":-62135596800000}}`)
	f.Add(`{"schedule":{"at":700000000000000}}`)
	f.Add(`{"schedule":{"start_at":"9999-12-31T23:59:59-23:59","end_at":"9999-12-31T23:59:59.9999Z"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var d, again Definition
		if json.Unmarshal([]byte(text), &d) != nil {
			return
		}
		b, err := json.Marshal(d)
		if last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC); err != nil && (d.Schedule.At.After(last) || d.Schedule.StartAt.After(last) || d.Schedule.EndAt.After(last)) {
			return // rounded up, the year would have five digits
		}
		if err != nil {
			t.Fatalf("it was read, and cannot be written: %v", err)
		}
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		c, err := json.Marshal(again)
		if err != nil || !bytes.Equal(b, c) {
			t.Fatalf("%s\nis written again as\n%s, %v", b, c, err)
		}
	})
}

// bodyTransport answers with a body.
type bodyTransport struct {
	status int
	header http.Header
	body   string
}

func (b bodyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: b.status, Header: b.header, Body: io.NopCloser(strings.NewReader(b.body)), Request: r}, nil
}

// FuzzAnswer: whatever a server answers, or something that stands before it,
// becomes an error or a value, and no more than that was sent.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "", "event: task\ndata: {\"key\":\"7_1\",\ndata: \"status\":\"dead\"}\n\nid: 7-7_1\n\nevent: gap\ndata: {\"from\":\"2026-11-24T00:00:00.000Z\",\"count\":3}\n\n: beat\n\n")
	f.Add(200, "", "{\"finding\":\"gap\",\"count\":1,\"due\":1763658000250}\n\n{\"verdict\":\"failed\",\"found\":{\"gap\":1}}\n")
	f.Add(429, "7", `{"status":429,"code":"too_many","detail":"x","errors":[{"field":"a","detail":"b"}]}`)
	f.Add(503, "Fri, 31 Dec 9999 23:59:59 GMT", "<html>")
	f.Add(200, "-1", "event: task\ndata: x\n\n{}")
	f.Fuzz(func(t *testing.T, status int, later, body string) {
		if status < 100 || status > 599 {
			return
		}
		h := http.Header{"Retry-After": {later}}
		c, err := New("http://h", WithHTTPClient(&http.Client{Transport: bodyTransport{status, h, body}}))
		if err != nil {
			t.Fatal(err)
		}
		if e := errorOf(&answer{status, h, []byte(body)}); e.Status != status || e.RetryAfter < 0 || e.Error() == "" {
			t.Fatalf("%+v", e)
		}
		findings := 0
		if v, err := c.Verify(t.Context(), Verification{}, func(*Finding) { findings++ }); (err == nil) != (v != nil && status == 200) || findings > strings.Count(body, "finding") && findings > strings.Count(body, "\n")+1 {
			t.Fatalf("%+v, %d findings, %v", v, findings, err)
		}
		tasks := 0
		s := stream{c: c, yield: func(Task, error) bool { tasks++; return true }}
		if err := s.read(t.Context()); err == nil || tasks > strings.Count(body, "\n") {
			t.Fatalf("the stream did not end, or %d tasks are in it", tasks)
		}
	})
}

// FuzzSpan: a duration is written as one that is read as the same.
func FuzzSpan(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 60e9, 3600e9, 36000e9, 36e12 + 6e10, 1<<63 - 1, -1 << 63} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		b, err := json.Marshal(Schedule{Every: time.Duration(n), Delay: (*time.Duration)(&n)})
		var s Schedule
		if err2 := json.Unmarshal(b, &s); err != nil || err2 != nil || !reflect.DeepEqual(s, Schedule{Every: time.Duration(n), Delay: (*time.Duration)(&n)}) {
			t.Fatalf("%v: %s, %v, %v", time.Duration(n), b, err, err2)
		}
	})
}
