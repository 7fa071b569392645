package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// calls is a receiver that knows which of several servers makes each call, and the timers
// that the servers call for: every 200 ms, half of them at_most_once.
type calls struct {
	url  string
	ids  []string
	from time.Time // the first due of all timers

	mu       sync.Mutex
	arrivals map[string][]arrival // by key
	order    []arrival            // all of them, as they came
	last     time.Time            // of those that callsOf counted
}

// arrival is a call by the server by.
type arrival struct {
	key         string
	by, attempt int
	at          time.Time
	redelivered bool
	fence       string // X-Xtimer-Fence: the shard, and a number that rises with its owners
}

func receiveCalls(t testing.TB) *calls {
	t.Helper()
	x := &calls{arrivals: map[string][]arrival{}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.url = "http://" + ln.Addr().String() + "/call"
	srv := &fasthttp.Server{Handler: x.take, NoDefaultDate: true, NoDefaultServerHeader: true}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Shutdown() })
	return x
}

// signsAs are the flags with which a server signs its calls with n+1 secrets, so that the
// receiver knows the server n.
func signsAs(t testing.TB, n int) []string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "xtimer.yaml")
	secret := "whsec_" + strings.Repeat("A", 32) + "," // 24 bytes in base64
	if err := os.WriteFile(config, []byte("apps: {bench: {webhook_secrets: ["+strings.Repeat(secret, n+1)+"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", config}
}

// create makes n timers with x.from as their first due.
func (x *calls) create(t testing.TB, s *server, n int) {
	t.Helper()
	var lines bytes.Buffer
	for range n {
		i := len(x.ids) + bytes.Count(lines.Bytes(), []byte("\n"))
		fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"200ms","start_at":%d},"misfire":{"policy":"all"},"delivery":%q,"callback":{"url":%q,"timeout":"5s"}}`+"\n",
			i, x.from.UnixMilli(), []string{"at_least_once", "at_most_once"}[i%2], x.url)
	}
	ids, err := createBatch(s.url(""), lines.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x.ids = append(x.ids, ids...)
}

func (x *calls) take(c *fasthttp.RequestCtx) {
	a := arrival{at: time.Now(), redelivered: len(c.Request.Header.Peek("X-Xtimer-Redelivered")) > 0, by: bytes.Count(c.Request.Header.Peek("webhook-signature"), []byte("v1,")) - 1}
	a.fence = string(c.Request.Header.Peek("X-Xtimer-Fence"))
	a.key = string(c.Request.Header.Peek("Idempotency-Key"))
	a.attempt, _ = strconv.Atoi(string(c.Request.Header.Peek("X-Xtimer-Attempt")))
	x.mu.Lock()
	x.arrivals[a.key] = append(x.arrivals[a.key], a)
	x.order = append(x.order, a)
	x.mu.Unlock()
}

// repeats are the calls of a task whose attempt was made before. An attempt after one that was
// not answered in time is none: on a busy machine that happens.
func repeats(as []arrival) (again []arrival) {
	for i, a := range as {
		if slices.ContainsFunc(as[:i], func(b arrival) bool { return a.attempt == b.attempt }) {
			again = append(again, a)
		}
	}
	return again
}

// callsOf counts the calls of a server since an instant.
func (x *calls) callsOf(s *server, since time.Time) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range x.order {
		if a.by == s.n && a.at.After(since) {
			n++
			x.last = later(x.last, a.at)
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isOnce reports whether a key is that of an at_most_once timer.
func (x *calls) isOnce(key string) bool {
	timer, _, _ := strings.Cut(key, "_")
	return slices.Index(x.ids, timer)%2 == 1
}

// missing wants each due of at least once called.
func (x *calls) missing(t testing.TB) {
	until := time.Now().Truncate(200 * time.Millisecond)
	var missing []string
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		missing = nil
		x.mu.Lock()
		for i, id := range x.ids {
			for due := x.from; i%2 == 0 && due.Before(until); due = due.Add(200 * time.Millisecond) {
				if key := fmt.Sprintf("%s_%d", id, due.UnixMilli()); len(x.arrivals[key]) == 0 {
					missing = append(missing, key)
				}
			}
		}
		x.mu.Unlock()
		if len(missing) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if n := len(missing); n > 0 {
		t.Errorf("%d dues were not called: %v", n, missing[:min(n, 20)])
	}
}
