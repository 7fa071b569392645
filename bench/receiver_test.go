package bench

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// receiver is what xtimer calls: it notes each arrival by key.
type receiver struct {
	url string
	srv *fasthttp.Server

	mu       sync.Mutex
	arrivals map[string][]time.Time // by key, in order
	late     []time.Duration        // of first arrivals
	early    int
	last     time.Time
	sample   *bareRequest // the first request, for the bare loop
	counting bool         // only count: for the rate, a map of keys would cost too much
	calls    int
}

func startReceiver(t testing.TB) *receiver {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{url: "http://" + ln.Addr().String() + "/call", arrivals: map[string][]time.Time{}}
	r.srv = &fasthttp.Server{Handler: r.take, NoDefaultDate: true, NoDefaultServerHeader: true}
	go r.srv.Serve(ln)
	t.Cleanup(func() { r.srv.Shutdown() })
	return r
}

func (r *receiver) take(c *fasthttp.RequestCtx) {
	now := time.Now()
	due, err := time.Parse("2006-01-02T15:04:05.000Z07:00", string(c.Request.Header.Peek("X-Xtimer-Due")))
	key := string(c.Request.Header.Peek("Idempotency-Key"))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.last = now
	if r.sample == nil {
		r.sample = &bareRequest{URL: r.url, Headers: map[string]string{}, Body: bytes.Clone(c.PostBody())}
		for k, v := range c.Request.Header.All() {
			if name := string(k); name != "Host" && name != "Content-Length" {
				r.sample.Headers[name] = string(v)
			}
		}
	}
	if r.counting {
		r.late = append(r.late, now.Sub(due))
		if now.Before(due) {
			r.early++
		}
		return
	}
	if err != nil || now.Before(due) {
		r.early++
	}
	if len(r.arrivals[key]) == 0 {
		r.late = append(r.late, now.Sub(due))
	}
	r.arrivals[key] = append(r.arrivals[key], now)
}

// lateness tells quantiles of the first arrivals since the last call of reset.
func (r *receiver) lateness(qs ...float64) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.late)
	out := make([]time.Duration, len(qs))
	for i, q := range qs {
		if n := len(r.late); n > 0 {
			out[i] = r.late[min(int(q*float64(n)), n-1)]
		}
	}
	return out
}

func (r *receiver) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals, r.late, r.early, r.calls = map[string][]time.Time{}, nil, 0, 0
}
