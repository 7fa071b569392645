package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// bulky is a timer of the app whose body has so many bytes.
func bulky(app, name string, bytes int) string {
	return fmt.Sprintf(`{"app":%q,"name":%q,"schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x","body_text":%q}}`,
		app, name, strings.Repeat("x", bytes))
}

// pages reads a list to its end, and fails if a page is much larger than pageBytes or an
// item comes twice.
func (n *testNode) pages(path, of, key string, most int) (items int) {
	n.t.Helper()
	seen := map[any]bool{}
	for cursor := ""; ; {
		a := n.do("GET", path+cursor, "").want(200)
		if len(a.body) > pageBytes+most {
			n.t.Errorf("a page of %s has %d bytes", path, len(a.body))
		}
		for _, x := range a.get(of).([]any) {
			k := x.(map[string]any)[key]
			if seen[k] {
				n.t.Errorf("%v twice", k)
			}
			seen[k] = true
			items++
		}
		next := a.str("next_cursor")
		if next == "" {
			return items
		}
		cursor = "&cursor=" + next
	}
}

// Every page ends at some 2 MiB of what is rendered, and goes on from there.
func TestPagesAreBounded(t *testing.T) {
	var last atomic.Int64
	n := serve(t, newEngine(t, func(*engine.Call) engine.Outcome {
		last.Add(1)
		return engine.Outcome{Code: 400, Class: engine.ClassRejected, ErrorClass: "status", Sent: time.Now(), Response: []byte(strings.Repeat("\x01", 1024))}
	}, nil), ServerConfig{})
	const size = 500 << 10
	for i := range 12 {
		n.do("POST", "/v1/timers", bulky("a", fmt.Sprint(i), size)).want(201)
	}
	if got := n.pages("/v1/timers?limit=1000", "timers", "id", size+1000); got != 12 {
		t.Errorf("%d timers", got)
	}
	if got := n.pages("/v1/timers?limit=2&app=a", "timers", "id", size+1000); got != 12 {
		t.Errorf("%d timers of an app", got)
	}

	id := n.do("GET", "/v1/apps/a/timers/0", "").str("id")
	for i := range 10 {
		n.do("PATCH", "/v1/timers/"+id, fmt.Sprintf(`{"labels":{"n":"%d"}}`, i)).want(200)
	}
	for _, limit := range []int{1, 3, 8, 100} {
		if got := n.pages(fmt.Sprintf("/v1/timers/%s/versions?limit=%d", id, limit), "versions", "version", size+1000); got != 11 {
			t.Errorf("limit %d: %d versions", limit, got)
		}
	}

	const runs = 600
	small := n.do("POST", "/v1/timers", hourly("a", "small", "")).want(201).str("id")
	for range runs {
		n.do("POST", "/v1/timers/"+small+"/run", "").want(202)
	}
	until(t, func() bool { return last.Load() == runs })
	if got := n.pages("/v1/tasks?limit=1000&timer_id="+small, "tasks", "key", 10<<10); got != runs {
		t.Errorf("%d tasks", got)
	}
}

// reached serves n also on a port of loopback until the test ends.
func (n *testNode) reached() string {
	n.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := NewServer(n.e, ServerConfig{Tokens: tokens()})
	if err != nil {
		n.t.Fatal(err)
	}
	n.s = s
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- s.Serve(ctx, ln) }()
	n.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			n.t.Error(err)
		}
	})
	return ln.Addr().String()
}

// Clients that ask for the largest pages and do not read them take half the budget, and
// keep neither another app nor a change of their own from its answer; when they are gone
// so is what they held.
func TestClientsThatDoNotRead(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	n.token = "root"
	const size = 500 << 10
	for i := range 6 {
		n.do("POST", "/v1/timers", bulky("a", fmt.Sprint(i), size)).want(201)
		n.do("POST", "/v1/timers", bulky("b", fmt.Sprint(i), size)).want(201)
	}
	limit := debug.SetMemoryLimit(128 << 20) // a budget of 16 MiB
	addr := n.reached()
	debug.SetMemoryLimit(limit)
	ask := func(token, request string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		io.WriteString(c, request+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		return c
	}
	status := func(c net.Conn) string {
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(line)[1]
	}
	held := func() int64 { return n.s.answers.Held() }
	var mute []net.Conn
	for range 32 {
		mute = append(mute, ask("a-read", "GET /v1/timers?limit=1000"))
	}
	refused := 0
	for _, c := range mute {
		if status(c) == "503" {
			refused++
		}
	}
	if all := held(); refused == 0 || refused == len(mute) || all > 10<<20 || all < 4<<20 {
		t.Errorf("%d of %d refused, %d bytes held", refused, len(mute), all)
	}
	if got := status(ask("b-admin", "GET /v1/timers?limit=1000")); got != "200" {
		t.Errorf("another app: %s", got)
	}
	id := n.do("GET", "/v1/apps/a/timers/0", "").str("id")
	if got := status(ask("a-write", "POST /v1/timers/"+id+"/enable")); got != "200" {
		t.Errorf("a change: %s", got)
	}
	if got := status(ask("a-read", "HEAD /v1/stats")); got != "200" {
		t.Errorf("a small answer: %s", got)
	}
	for _, c := range mute {
		c.Close()
	}
	until(t, func() bool { return held() < 4<<20 })
}

// One verification of an app and two in all may run.
func TestVerificationsTakeTurns(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	ask := func(token string) answer {
		n.token = token
		return n.do("GET", fmt.Sprintf("/v1/admin/verify?from=%d", time.Now().Add(-time.Minute).UnixMilli()), "")
	}
	leave, err := n.s.verifying.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask("a-admin").want(429); got.str("code") != "verifying" || got.header["Retry-After"] == "" {
		t.Error(got.body)
	}
	ask("b-admin").want(200)
	var other func()
	until(t, func() bool { // the second's turn is over
		other, err = n.s.verifying.Take(t.Context(), "")
		return err == nil
	})
	ask("b-admin").want(429)
	other()
	leave()
	ask("a-admin").want(200)
}
