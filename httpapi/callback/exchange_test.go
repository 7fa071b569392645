package callback

import (
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// A target that sends no more, but still takes what it gets, as nginx does while it
// lingers: a kept connection that was left like that is not used; and who met its
// end learns of it at once, not at the timeout.
func TestTargetThatLingers(t *testing.T) {
	const n = 300
	p := listen(t, nil, func(s *session) {
		if s.request() && s.say(ok200) {
			s.Conn.(*net.TCPConn).CloseWrite()
			s.hold()
		}
	})
	cb := newCaller(t, Config{})
	origin, _ := splitURL(p.url)
	tg, err := cb.target(origin)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		tg.mu.Lock()
		kept := slices.Clone(tg.idle)
		tg.mu.Unlock()
		for _, cn := range kept {
			for cn.quiet() { // the end is under way
				runtime.Gosched()
			}
		}
	}
	if p.requests.Load() != n {
		t.Errorf("%d requests of %d calls", p.requests.Load(), n)
	}
	for range n { // at the same time as the end: it may come behind the look
		o := cb.Call(testCall(p.url))
		if o.Class != engine.ClassOK {
			expect(t, o, engine.ClassUnknown, wordReset)
		}
		if o.Took > 5*time.Second {
			t.Fatalf("it took %v: %+v", o.Took, o)
		}
	}
}

// A request that does not fit into the socket goes over a kept connection in
// pieces, and its answer may come before all of it is read.
func TestLargeRequestOverAKeptConnection(t *testing.T) {
	large := func(tm *engine.Timer) {
		tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = make([]byte, 16<<20), true, engine.BodyBase64
	}
	p := listen(t, nil, answering(ok200))
	cb := newCaller(t, Config{})
	for range 3 {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		o := cb.Call(testCall(p.url, large))
		expect(t, o, engine.ClassOK, "")
		if o.Phases.Dial != 0 || string(o.Response) != "ok" {
			t.Errorf("%+v", o)
		}
	}
	if p.conns.Load() != 1 || p.requests.Load() != 6 {
		t.Errorf("%d requests over %d connections", p.requests.Load(), p.conns.Load())
	}

	// One that reads no more of it than its head: the time for it ends while it is
	// written.
	over := make(chan struct{})
	defer close(over)
	slow := listen(t, nil, func(s *session) {
		if s.request() && s.say(ok200) {
			s.r.Peek(1)
			<-over
		}
	})
	expect(t, cb.Call(testCall(slow.url)), engine.ClassOK, "")
	expect(t, cb.Call(testCall(slow.url, large, timeout(2*time.Second))), engine.ClassUnknown, wordTimeout)
}

// A call is cut off a hundredth of its timeout late, and 50 ms, at most.
func TestDeadlineSlack(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	l := &link{Conn: ours}
	start := time.Now()
	for timeout, most := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 100 * time.Microsecond, time.Second: 10 * time.Millisecond, time.Hour: deadlineSlack,
	} {
		deadline := start.Add(timeout)
		if err := l.within(start, deadline); err != nil {
			t.Fatal(err)
		}
		if late := l.until.Sub(deadline); late < 0 || late > most {
			t.Errorf("a call with %v is cut off %v late, want %v at most", timeout, late, most)
		}
	}
}

// Answers of all lengths come whole, whatever of them is read first.
func TestAnswersOfAllLengths(t *testing.T) {
	var n int
	p := listen(t, nil, func(s *session) {
		for s.request() {
			body := strings.Repeat("x", n)
			if !s.say("HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(n) + "\r\n\r\n" + body) {
				return
			}
		}
	})
	cb := newCaller(t, Config{})
	for n = 900; n < 1100; n++ {
		o := cb.Call(testCall(p.url))
		expect(t, o, engine.ClassOK, "")
		if len(o.Response) != min(n, maxResponse) {
			t.Fatalf("%d of %d bytes", len(o.Response), n)
		}
	}
	if p.conns.Load() != 1 {
		t.Errorf("%d connections", p.conns.Load())
	}
}

// After an answer with a bare LF in its head, of which a reader may see another end,
// the connection is not used again.
func TestAnswerWithABareLF(t *testing.T) {
	for head, conns := range map[string]int64{
		"X: a\r\nContent-Length: 2\r\n": 1,
		"X: a\nContent-Length: 2\r\n":   2,
		"Y: b\nX: a\r\n":                2,
	} {
		p := listen(t, nil, answering("HTTP/1.1 204 No Content\r\n"+head+"\r\n"))
		cb := newCaller(t, Config{})
		for range 2 {
			expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		}
		if n := p.conns.Load(); n != conns {
			t.Errorf("%q: %d connections, want %d", head, n, conns)
		}
	}
}

// A head that ends in a bare LF is an error at once, and not at the timeout.
func TestHeadThatEndsInABareLF(t *testing.T) {
	for head, valid := range map[string]bool{
		"HTTP/1.1 204 No Content\n\r\n":              true,
		"HTTP/1.1 204 No Content\n\n":                false,
		"HTTP/1.1 204 No Content\r\n\n":              false,
		"HTTP/1.1 204 No Content\nX: a\n\n":          false,
		"HTTP/1.1 204 No Content\r\nX: a\r\n\n":      false,
		"HTTP/1.1 204 No Content\r\nX: a\n\r\n":      false,
		"HTTP/1.1 204 No Content\nX: a\r\n\r\n":      true,
		"HTTP/1.1 204 No Content\nX: a\nY:b\r\n\r\n": true,
	} {
		p := listen(t, nil, answering(head))
		begin := time.Now()
		o := newCaller(t, Config{}).Call(testCall(p.url))
		if valid {
			expect(t, o, engine.ClassOK, "")
		} else {
			expect(t, o, engine.ClassUnknown, "protocol")
		}
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("%q: the outcome is known after %v", head, took)
		}
	}
}

// A target says for how long it keeps a connection.
func TestIdleTime(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"": maxIdle, "timeout=5, max=100": maxIdle, "max=100, Timeout = 2": time.Second, "timeout=1": time.Second / 2,
		"timeout=0": 0, "timeout=900": maxIdle, "timeout=-1": maxIdle, "timeout=x": maxIdle, "timeout": maxIdle,
	} {
		if got := idleTime([]byte(said)); got != want {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
}

// A connection is not used again when its target may be about to close it: never
// longer than the target said, and by an at_most_once call, which would end as unknown,
// for a second only.
func TestConnectionThatMayBeClosed(t *testing.T) {
	saying := func(header string) string {
		return strings.Replace(ok200, "\r\n\r\n", "\r\n"+header+"\r\n\r\n", 1)
	}
	once := func(tm *engine.Timer) { tm.Delivery = engine.AtMostOnce }
	for _, x := range []struct {
		name, answer string
		opts         []func(*engine.Timer)
		idle         time.Duration
		conns        int64
	}{
		{"kept", ok200, nil, 2 * time.Second, 1},
		{"kept for too long", ok200, nil, maxIdle, 2},
		{"2 s were said", saying("Keep-Alive: timeout=2"), nil, 0, 1},
		{"2 s were said, and one has passed", saying("Keep-Alive: timeout=2"), nil, time.Second, 2},
		{"nothing is kept", saying("keep-alive: timeout=0"), nil, 0, 2},
		{"at most once, at once", ok200, []func(*engine.Timer){once}, 0, 1},
		{"at most once, a second later", ok200, []func(*engine.Timer){once}, time.Second, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := listen(t, nil, answering(x.answer))
			cb := newCaller(t, Config{})
			expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
			origin, _ := splitURL(p.url)
			tg, err := cb.target(origin)
			if err != nil {
				t.Fatal(err)
			}
			tg.mu.Lock()
			for _, cn := range tg.idle {
				cn.since = cn.since.Add(-x.idle)
			}
			tg.mu.Unlock()
			expect(t, cb.Call(testCall(p.url, x.opts...)), engine.ClassOK, "")
			if n := p.conns.Load(); n != x.conns {
				t.Errorf("%d connections, want %d", n, x.conns)
			}
		})
	}
}
