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
	n := serve(t, newEngine(t, nil, nil), ServerConfig{Tokens: []access.Token{
		{App: "a", Token: "token-of-a", Role: access.RoleWrite}, {App: "b", Token: "token-of-b", Role: access.RoleWrite},
	}, ReadTimeout: time.Second})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		if got := status(t, announce(t, n, ""), 5*time.Second); got != 401 {
			t.Fatalf("a batch without a token: %d", got)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes for bodies that nobody may send", grown)
	}
	var held []net.Conn
	refused := 0
	for range 4 {
		c := announce(t, n, "token-of-a")
		if status(t, c, 50*time.Millisecond) == 503 {
			refused++
		} else {
			held = append(held, c)
		}
	}
	if refused != 2 {
		t.Errorf("%d of 4 batches of an app were refused, want 2", refused)
	}
	other := announce(t, n, "token-of-b")
	if got := status(t, other, 50*time.Millisecond); got != 0 {
		t.Errorf("a batch of another app: %d", got)
	}
	other.Close()                                              // breaks off
	if got := status(t, held[0], 20*time.Second); got != 408 { // takes too long
		t.Errorf("a batch that does not come: %d", got)
	}
	held[1].Close()
	until(t, func() bool { bodies, _ := n.s.bodies.Held(); return bodies == 0 })
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
