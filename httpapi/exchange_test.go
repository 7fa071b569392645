package httpapi

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
	cb := newCallback(t, CallbackConfig{})
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
	cb := newCallback(t, CallbackConfig{})
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
	cb := newCallback(t, CallbackConfig{})
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
