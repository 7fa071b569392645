package servertest

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// recorder is a test that notes how it failed.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// lines tells what is read from a connection, and "EOF" at its end.
func lines(c net.Conn) <-chan string {
	ch := make(chan string, 16)
	go func() {
		for s := bufio.NewScanner(c); s.Scan(); {
			ch <- strings.TrimSpace(s.Text())
		}
		ch <- "EOF"
	}()
	return ch
}

func next(t *testing.T, ch <-chan string) string {
	t.Helper()
	select {
	case s := <-ch:
		return s
	case <-time.After(patience):
		t.Fatal("no answer")
		return ""
	}
}

// dial connects through the proxy; say sends a line.
func dial(t *testing.T, addr string) (say func(string), answers <-chan string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(s string) { fmt.Fprintf(c, "%s\r\n", s) }, lines(c)
}

func silent(t *testing.T, answers <-chan string) {
	t.Helper()
	select {
	case s := <-answers:
		t.Fatalf("%q came through", s)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestProxy(t *testing.T) {
	s := Redis(t)
	p := NewProxy(t, s.Addr())
	addr := p.Addr()
	say, answers := dial(t, addr)
	ask := func(q, want string) {
		t.Helper()
		say(q)
		if got := next(t, answers); got != want {
			t.Fatalf("%s: %q, want %q", q, got, want)
		}
	}
	ask("PING", "+PONG")

	p.Delay(30 * time.Millisecond)
	asked := time.Now()
	ask("PING", "+PONG")
	if took := time.Since(asked); took < 60*time.Millisecond {
		t.Errorf("an answer after %v with 30 ms each way", took)
	}

	p.Hang()
	say("SET a 1")
	silent(t, answers)
	_, others := dial(t, addr)
	silent(t, others)
	if got := strings.TrimSpace(s.Do("GET a")); got != "" {
		t.Errorf("a request passed while it hung: %q", got)
	}
	p.Heal()
	if got := next(t, answers); got != "+OK" {
		t.Errorf("%q after Heal", got)
	}

	p.Cut()
	if got := next(t, answers); got != "EOF" {
		t.Errorf("%q after Cut", got)
	}
	if got := next(t, others); got != "EOF" {
		t.Errorf("%q after Cut", got)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a connection was accepted after Cut")
	}
	p.Heal()
	say, answers = dial(t, addr)
	ask("PING", "+PONG")

	_, idle := dial(t, addr)
	p.SwallowReplies(true)
	say("SET a 2")
	for deadline := time.Now().Add(patience); strings.TrimSpace(s.Do("GET a")) != "2"; {
		if time.Now().After(deadline) {
			t.Fatal("the request did not pass")
		}
	}
	silent(t, answers)
	p.SwallowReplies(false)
	if got := next(t, answers); got != "EOF" {
		t.Errorf("%q in a connection that lost an answer", got)
	}
	silent(t, idle) // it lost nothing and stands
	say, answers = dial(t, addr)
	ask("PING", "+PONG")
}

// TestProxyEndsWhileItHangs: the end of a test waits for no Heal.
func TestProxyEndsWhileItHangs(t *testing.T) {
	s := Redis(t)
	t.Run("hanging", func(t *testing.T) {
		p := NewProxy(t, s.Addr())
		p.Hang()
		dial(t, p.Addr())
		dial(t, p.Addr())
	})
}

// TestProxyWithoutTarget closes what it accepted.
func TestProxyWithoutTarget(t *testing.T) {
	s := Redis(t)
	p := NewProxy(t, s.Addr())
	s.Kill()
	_, answers := dial(t, p.Addr())
	if got := next(t, answers); got != "EOF" {
		t.Errorf("%q", got)
	}
	s.Start()
	say, answers := dial(t, p.Addr())
	say("PING")
	if got := next(t, answers); got != "+PONG" {
		t.Errorf("%q", got)
	}
}
