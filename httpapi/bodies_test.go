package httpapi

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/access"
)

// announce opens a connection that announces a batch of 8 MiB and sends its beginning.
func announce(t *testing.T, n *testNode, token string) net.Conn {
	t.Helper()
	c, err := n.ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	auth := ""
	if token != "" {
		auth = "Authorization: Bearer " + token + "\r\n"
	}
	fmt.Fprintf(c, "POST /v1/timers/batch HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", auth, 8<<20)
	return c
}

// status is that of the answer on a connection; 0: none comes for a while.
func status(t *testing.T, c net.Conn, wait time.Duration) int {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(wait))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

// The bodies that arrive have a budget, one app has half of it, and what has ended counts
// no more, however it ended. Without a token nothing is made room for.
func TestBodiesAreBounded(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20)) // a budget of 32 MiB
	tokens := []access.Token{
		{App: "a", Token: "token-of-a", Role: access.RoleWrite}, {App: "b", Token: "token-of-b", Role: access.RoleWrite},
	}
	n := serve(t, newEngine(t, nil, nil), ServerConfig{Tokens: tokens, ReadTimeout: time.Minute})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		if got := status(t, announce(t, n, ""), 20*time.Second); got != 401 {
			t.Fatalf("a batch without a token: %d", got)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes for bodies that nobody may send", grown)
	}
	holds := func(n *testNode, bodies int) {
		t.Helper()
		until(t, func() bool { is, _ := n.s.bodies.Held(); return int(is) == bodies })
	}
	var held []net.Conn
	for i := range 2 {
		held = append(held, announce(t, n, "token-of-a"))
		holds(n, i+1)
	}
	for range 2 {
		if got := status(t, announce(t, n, "token-of-a"), 20*time.Second); got != 503 {
			t.Errorf("a batch of an app that has half of the budget: %d", got)
		}
	}
	held = append(held, announce(t, n, "token-of-b")) // another app has room
	holds(n, 3)
	for i, c := range held { // they break off
		c.Close()
		holds(n, 2-i)
	}
	hasty := serve(t, newEngine(t, nil, nil), ServerConfig{Tokens: tokens, ReadTimeout: 500 * time.Millisecond})
	if got := status(t, announce(t, hasty, "token-of-a"), 20*time.Second); got != 408 {
		t.Errorf("a batch that does not come: %d", got)
	}
	holds(hasty, 0)
	body := `{"timers":[` + strings.Repeat(" ", 1<<20) + `]}`
	for range 40 { // an empty one; each gives back what it took
		n.do("POST", "/v1/timers/batch", body, "Authorization", "Bearer token-of-a").want(400)
	}
	if _, bytes := n.s.bodies.Held(); bytes != 0 {
		t.Errorf("%d bytes count of bodies that are gone", bytes)
	}
}

// TestExpectTooLarge: who asks before it sends a body that is too large gets 413, and no
// 100 before it; a body that fits gets its 100.
func TestExpectTooLarge(t *testing.T) {
	n := newNode(t)
	for size, want := range map[int]string{2 << 20: "HTTP/1.1 413 ", 100: "HTTP/1.1 100 "} {
		c, err := n.ln.Dial()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/timers HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%d bytes: %q, %v", size, line, err)
		}
		c.Close()
	}
}

// TestGuessesByLargeBodies: once unknown tokens have come from an address, the answer to the
// head of a large body tells a good token from an unknown one no more than that to a small
// body does. Whoever had a good token there before goes on.
func TestGuessesByLargeBodies(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := serveOn(t, newEngine(t, nil, nil), ServerConfig{Tokens: tokens()}, tcp{ln})
	ask := func(token, expect, body string, announced int) (line string) {
		t.Helper()
		c, err := n.ln.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(900 * time.Millisecond))
		fmt.Fprintf(c, "POST /v1/timers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s", token, expect, announced, body)
		line, _ = bufio.NewReader(c).ReadString('\n')
		return strings.TrimSpace(line)
	}
	const first, large = "b-admin", 70_000
	body := strings.Repeat(" ", large)
	if got := ask(first, "", body, large); !strings.Contains(got, " 400 ") {
		t.Errorf("a good token: %q", got)
	}
	for i := range 10 {
		if got := ask(fmt.Sprint("guess", i), "", "", large); !strings.Contains(got, " 401 ") {
			t.Errorf("guess %d: %q", i, got)
		}
	}
	for expect, good := range map[string][]string{"": {"a-read", "a-write"}, "Expect: 100-continue\r\n": {"a-admin", "all-read"}} {
		looked, begin := 0, time.Now()
		for i := range 50 {
			if got := ask(fmt.Sprint("more", i), expect, "", large); !strings.Contains(got, " 429 ") {
				looked++
			}
		}
		if most := 5 + int(time.Since(begin)/time.Second); looked > most {
			t.Errorf("%q: %d of 50 tokens were looked at in %v", expect, looked, time.Since(begin))
		}
		for _, token := range good {
			until(t, func() bool { return strings.Contains(ask("x", "", "{}", 2), " 401 ") })
			begin := time.Now() // the address waits for a second
			if got := ask(token, expect, "", large); !strings.Contains(got, " 429 ") && time.Since(begin) < time.Second {
				t.Errorf("%q: a good token that is new to the address: %q", expect, got)
			}
		}
	}
	if got := ask(first, "", body, large); !strings.Contains(got, " 400 ") {
		t.Errorf("a token that was good there before: %q", got)
	}
	if bodies, bytes := n.s.bodies.Held(); bodies != 0 || bytes != 0 {
		t.Errorf("%d bodies with %d bytes are held", bodies, bytes)
	}
}
