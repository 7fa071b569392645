package callback

import (
	"bufio"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 3 ": 3 * time.Second, "-1": 0, "1.5": 0, "soon": 0,
		"99999999999999999999999": 365 * 24 * time.Hour, "9999999999": 365 * 24 * time.Hour,
		"Fri, 20 Nov 2026 17:00:30 GMT":   30*time.Second + 2*time.Millisecond,
		"Friday, 20-Nov-26 17:00:30 GMT":  30*time.Second + 2*time.Millisecond,
		"Fri Nov 20 17:00:30 2026":        30*time.Second + 2*time.Millisecond,
		"Fri, 20 Nov 2026 16:59:30 GMT":   0,
		"Fri, 20 Nov 2026 17:00:30 +0200": 0,
	} {
		if got := retryAfter([]byte(in), now); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// saying is a connection over which a target says something, and hangs up.
type saying struct {
	net.Conn
	io.Reader
}

func (s saying) Read(b []byte) (int, error) { return s.Reader.Read(b) }

// FuzzReadAnswer: whatever a target answers, it is an outcome within its bounds, or
// an error that leaves it unknown; the answer before it makes no difference.
func FuzzReadAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 503 no\r\nRetry-After: 7\r\n\r\nbusy",
		"HTTP/1.1 429 x\r\nRetry-After: Fri, 20 Nov 2099 17:00:00 GMT\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 408 x\r\nretry-after:  18446744073709551616\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nx", "HTTP/1.1 999 ?\nConnection: close\n\n", "HTTP/1.1 101 S\r\n\r\n",
		"HTTP/1.1 503 x\r\nRetry-After: 31536001\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 302 F\r\nContent-Length: -1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
	} {
		f.Add("HTTP/1.1 500 x\r\nRetry-After: 3\r\nContent-Length: 1\r\n\r\n!", text, "")
		f.Add(text, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200,429")
	}
	f.Fuzz(func(t *testing.T, before, text, success string) {
		read := func(s *scratch, text string) (engine.Outcome, bool, error) {
			s.resp.Reset()
			return readAnswer(&link{Conn: saying{Reader: strings.NewReader(text)}}, s, success, nil)
		}
		fresh, used := &scratch{answer: bufio.NewReaderSize(nil, maxHead)}, &scratch{answer: bufio.NewReaderSize(nil, maxHead)}
		o, keep, err := read(fresh, text)
		switch {
		case len(o.Response) > maxResponse:
			t.Fatalf("%d bytes are kept", len(o.Response))
		case o.RetryAfter < 0 || o.RetryAfter > 365*24*time.Hour || o.RetryAfter > 0 && o.Class != engine.ClassRetry:
			t.Fatalf("to be tried again after %v: %+v", o.RetryAfter, o)
		case err != nil && (keep || o.Class != engine.ClassUnknown):
			t.Fatalf("kept: %t, %+v, %v", keep, o, err)
		case err == nil && (o.Class == engine.ClassUnknown || o.Code < 101 || o.Code > 999):
			t.Fatalf("%+v", o)
		case err == nil && (o.ErrorClass == "") != (o.Class == engine.ClassOK):
			t.Fatalf("%+v", o)
		case err != nil && word(err) == "":
			t.Fatalf("no word for %v", err)
		}
		_, _, _ = read(used, before)
		again, keepAgain, errAgain := read(used, text)
		again.RetryAfter = o.RetryAfter // a date's goes by the clock
		if !reflect.DeepEqual(o, again) || keep != keepAgain || (err == nil) != (errAgain == nil) {
			t.Fatalf("%+v, %t, %v; after another answer %+v, %t, %v", o, keep, err, again, keepAgain, errAgain)
		}
	})
}
