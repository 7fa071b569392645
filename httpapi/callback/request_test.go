package callback

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// onTheWire is the request of a call, as it goes on the wire to an origin.
func onTheWire(tb testing.TB, cfg Config, call *engine.Call) string {
	tb.Helper()
	cb, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	defer cb.Close()
	origin, path := splitURL(call.Timer.Callback.URL)
	t, err := cb.target(origin)
	if err != nil {
		tb.Fatal(err)
	}
	return string(cb.appendRequest(&scratch{}, call, t, path, time.Unix(1763658000, 0)))
}

func testCall(url string, change ...func(*engine.Timer)) *engine.Call {
	tm := &engine.Timer{Definition: engine.NewDefinition(), ID: 7354}
	tm.App, tm.Name = "billing", "order-1842"
	tm.Callback.URL = url
	for _, f := range change {
		f(tm)
	}
	return &engine.Call{Timer: tm, Key: engine.Key{Timer: 7354, Due: 1763658000250}, Attempt: 1}
}

func lines(s ...string) string { return strings.Join(s, "\r\n") }

func TestRequestOnTheWire(t *testing.T) {
	const url = "https://user.example:8443/a/../b%20c?x=1&y=/#part"
	full := testCall(url, func(tm *engine.Timer) {
		tm.App, tm.Name = "计费", "a b%\r\nX-Evil: 1"
		tm.Callback.Method = "PUT"
		tm.Callback.Headers = []engine.Header{
			{Name: "Authorization", Value: "Bearer t\r\nX-Evil: 2\x00"},
			{Name: "x-tab", Value: "a\tb\u00e9"},
			{Name: "X Evil", Value: "3"},
			{Name: "X-Evil:4\r\nX", Value: "4"},
			{Name: "", Value: "5"},
			{Name: "HOST", Value: "other"},
			{Name: "Content-Length", Value: "0"},
			{Name: "transfer-encoding", Value: "chunked"},
			{Name: "Connection", Value: "close"},
			{Name: "Expect", Value: "100-continue"},
			{Name: "Proxy-Authorization", Value: "x"},
			{Name: "idempotency-key", Value: "mine"},
			{Name: "X-Xtimer-Due", Value: "mine"},
			{Name: "Webhook-Id", Value: "mine"},
			{Name: "webhook_signature", Value: "mine"},
			{Name: "X_Xtimer_Task", Value: "mine"},
			{Name: "Content_Length", Value: "0"},
			{Name: "content-type", Value: "application/vnd.mine+json"},
		}
		tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = []byte(`{"n":1}`), true, engine.BodyJSON
	})
	full.Attempt, full.Redelivered, full.Fence = 12, true, 41
	identity := []string{
		"Idempotency-Key: 7354_1763658000250", "X-Xtimer-Task: 7354_1763658000250", "X-Xtimer-Timer: 7354",
		"X-Xtimer-App: billing", "X-Xtimer-Name: order-1842", "X-Xtimer-Due: 2025-11-20T17:00:00.250Z", "X-Xtimer-Attempt: 1",
	}
	plain := lines(identity...)

	for name, f := range map[string]struct {
		call *engine.Call
		want string
	}{
		"full": {full, lines(
			"PUT /a/../b%20c?x=1&y=/ HTTP/1.1", "Host: user.example:8443",
			"Authorization: Bearer t  X-Evil: 2 ", "x-tab: a\tb\u00e9", "content-type: application/vnd.mine+json",
			"User-Agent: xtimer/1.2.3", "Content-Length: 7",
			"Idempotency-Key: 7354_1763658000250", "X-Xtimer-Task: 7354_1763658000250", "X-Xtimer-Timer: 7354",
			"X-Xtimer-App: %E8%AE%A1%E8%B4%B9", "X-Xtimer-Name: a%20b%25%0D%0AX-Evil:%201",
			"X-Xtimer-Due: 2025-11-20T17:00:00.250Z", "X-Xtimer-Attempt: 12", "X-Xtimer-Redelivered: 1", fmt.Sprintf("X-Xtimer-Fence: %d.41", engine.TimerID(7354).Shard()),
			"", `{"n":1}`)},
		"envelope": {testCall("http://h?q", func(tm *engine.Timer) { tm.Callback.Headers = []engine.Header{{Name: "user-agent", Value: "me"}} }), lines(
			"POST /?q HTTP/1.1", "Host: h", "user-agent: me", "Content-Type: application/json", "Content-Length: 135", plain, "",
			`{"task":"7354_1763658000250","timer":"7354","app":"billing","name":"order-1842","due":"2025-11-20T17:00:00.250Z","attempt":1}`)},
		"get": {testCall("http://h", func(tm *engine.Timer) { tm.Callback.Method = "GET" }), lines("GET / HTTP/1.1", "Host: h", "User-Agent: xtimer/1.2.3", plain, "", "")},
		"delete": {testCall("http://h", func(tm *engine.Timer) { tm.Callback.Method = "DELETE" }), lines(
			"DELETE / HTTP/1.1", "Host: h", "User-Agent: xtimer/1.2.3", "Content-Type: application/json", "Content-Length: 125", plain, "",
			`{"task":"7354_1763658000250","timer":"7354","app":"billing","name":"order-1842","due":"2025-11-20T17:00:00.250Z","attempt":1}`)},
		"text": {testCall("http://h", func(tm *engine.Timer) {
			tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = []byte("hi"), true, engine.BodyText
		}), lines("POST / HTTP/1.1", "Host: h", "User-Agent: xtimer/1.2.3", "Content-Type: text/plain; charset=utf-8", "Content-Length: 2", plain, "", "hi")},
		"bytes, none of them": {testCall("http://h", func(tm *engine.Timer) {
			tm.Callback.HasBody, tm.Callback.BodyKind = true, engine.BodyBase64
		}), lines("POST / HTTP/1.1", "Host: h", "User-Agent: xtimer/1.2.3", "Content-Type: application/octet-stream", "Content-Length: 0", plain, "", "")},
	} {
		t.Run(name, func(t *testing.T) {
			got := onTheWire(t, Config{Version: "1.2.3"}, f.call)
			if name == "envelope" {
				_, body, _ := strings.Cut(f.want, "\r\n\r\n")
				f.want = strings.Replace(f.want, "135", strconv.Itoa(len(body)), 1)
			}
			if got != f.want {
				t.Errorf("got\n%q, want\n%q", got, f.want)
			}
		})
	}
}

// Whatever stands in a timer, a receiver reads one request with our identity
// in it, and nothing after it.
func FuzzRequestIsOne(f *testing.F) {
	f.Add("/p", "n", "X-A", "v", "body")
	f.Add("/ HTTP/1.1\r\nHost: evil\r\n\r\nGET /", "a\r\nb", "Content-Length", "3", "")
	f.Add("?x=1 HTTP/1.1", "\xff\u2028\"\\", "X-A\r\nX-B", "v\r\n\r\nGET / HTTP/1.1", "GET / HTTP/1.1\r\n\r\n")
	f.Fuzz(func(t *testing.T, path, name, header, value, body string) {
		path = strings.ReplaceAll(path, "%", "%25") // what the reader here takes offence at
		call := testCall("http://h/"+path, func(tm *engine.Timer) {
			tm.App, tm.Name = name, name
			tm.Callback.Headers = []engine.Header{{Name: header, Value: value}}
			tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = []byte(body), body != "", engine.BodyText
		})
		r := bufio.NewReader(strings.NewReader(onTheWire(t, Config{}, call)))
		req, err := http.ReadRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(req.Body)
		if err != nil || body != "" && string(got) != body {
			t.Errorf("body %q, %v", got, err)
		}
		if req.Host != "h" || len(req.Header.Values("Idempotency-Key")) != 1 || req.Header.Get("X-Xtimer-Task") != "7354_1763658000250" {
			t.Errorf("%s %v", req.Host, req.Header)
		}
		if n, _ := r.Peek(1); len(n) > 0 {
			t.Error("there is more than a request")
		}
	})
}
