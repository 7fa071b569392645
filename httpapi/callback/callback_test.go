package callback

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xtimer/engine"
)

// peer is a target that does what a test says.
type peer struct {
	url      string
	port     uint16
	conns    atomic.Int64 // accepted
	requests atomic.Int64 // read
}

// session is one connection of a peer.
type session struct {
	net.Conn
	r *bufio.Reader
	p *peer
}

// request reads one, whole; false at the end of the connection.
func (s *session) request() bool {
	req, err := http.ReadRequest(s.r)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	s.p.requests.Add(1)
	return true
}

func (s *session) say(text string) bool {
	_, err := io.WriteString(s, text)
	return err == nil
}

// hold waits until the caller hangs up.
func (s *session) hold() { io.Copy(io.Discard, s.r) }

const (
	ok200    = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	chunked  = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	claim10G = "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\nhello"
)

// answering is a peer's way of giving the same answer to each request.
func answering(text string) func(*session) {
	return func(s *session) {
		for s.request() && s.say(text) {
		}
	}
}

// listen starts a peer that handles each connection as told; with cert, over
// TLS. It ends, and waits for its handlers, with the test.
func listen(tb testing.TB, cert *tls.Certificate, handle func(*session)) *peer {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &peer{port: uint16(ln.Addr().(*net.TCPAddr).Port)}
	p.url = fmt.Sprintf("http://127.0.0.1:%d/hook", p.port)
	if cert != nil {
		p.url = fmt.Sprintf("https://127.0.0.1:%d/hook", p.port)
	}
	var mu sync.Mutex
	var open []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			p.conns.Add(1)
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				if cert != nil {
					c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*cert}})
				}
				handle(&session{Conn: c, r: bufio.NewReader(c), p: p})
			})
		}
	})
	tb.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return p
}

func newCaller(tb testing.TB, cfg Config) *Caller {
	tb.Helper()
	cb, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cb.Close)
	return cb
}

func timeout(d time.Duration) func(*engine.Timer) {
	return func(tm *engine.Timer) { tm.Callback.Timeout = d }
}

// expect fails the test if an outcome is not of the class and word.
func expect(tb testing.TB, o engine.Outcome, class engine.Class, word string) {
	tb.Helper()
	if o.Class != class || o.ErrorClass != word {
		tb.Errorf("class %d %q, want %d %q: %+v", o.Class, o.ErrorClass, class, word, o)
	}
	if sent := !o.Sent.IsZero(); sent != (class != engine.ClassNotSent) {
		tb.Errorf("sent %v: %+v", o.Sent, o)
	}
	if p := o.Phases; p.Queue+p.Dial+p.TLS+p.Send+p.FirstByte+p.Read != o.Took || min(p.Queue, p.Dial, p.TLS, p.Send, p.FirstByte, p.Read) < 0 {
		tb.Errorf("the phases of %v are %+v", o.Took, p)
	}
}

func TestOutcomeByStatus(t *testing.T) {
	for _, f := range []struct {
		status, success string
		class           engine.Class
		after           time.Duration
	}{
		{"200 OK", "2xx", engine.ClassOK, 0},
		{"299 ", "", engine.ClassOK, 0},
		{"200 OK", "201", engine.ClassRejected, 0},
		{"404 Not Found", "200,400-404", engine.ClassOK, 0},
		{"503 No", "503", engine.ClassOK, 0},
		{"301 Moved", "2xx", engine.ClassRejected, 0},
		{"400 Bad", "2xx", engine.ClassRejected, 0},
		{"408 Slow", "2xx", engine.ClassRetry, 7 * time.Second},
		{"425 Early", "2xx", engine.ClassRetry, 7 * time.Second},
		{"429 Many", "2xx", engine.ClassRetry, 7 * time.Second},
		{"500 Oops", "2xx", engine.ClassRetry, 7 * time.Second},
		{"599 Oops", "2xx", engine.ClassRetry, 7 * time.Second},
		{"600 Hm", "2xx", engine.ClassRejected, 0},
	} {
		t.Run(f.status+" "+f.success, func(t *testing.T) {
			p := listen(t, nil, answering("HTTP/1.1 "+f.status+"\r\nretry-after: 7\r\nContent-Length: 3\r\n\r\nwhy"))
			o := newCaller(t, Config{}).Call(testCall(p.url, func(tm *engine.Timer) { tm.Callback.Success = f.success }))
			word := wordStatus
			if f.class == engine.ClassOK {
				word = ""
			}
			expect(t, o, f.class, word)
			if fmt.Sprint(o.Code) != f.status[:3] || string(o.Response) != "why" || o.RetryAfter != f.after {
				t.Errorf("%+v", o)
			}
		})
	}
}

// Each of these does one thing to one call, which must end as it says, within
// its timeout.
func TestHostileReceivers(t *testing.T) {
	const short = 200 * time.Millisecond
	const unasked = "another protocol"
	asked := func(then func(*session)) func(*session) {
		return func(s *session) {
			if s.request() {
				then(s)
			}
		}
	}
	saying := func(text string) func(*session) { return asked(func(s *session) { s.say(text) }) }
	drip := func(head, part string) func(*session) {
		return asked(func(s *session) {
			for ok := s.say(head); ok; ok = s.say(part) {
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for _, f := range []struct {
		name     string
		handle   func(*session)
		timeout  time.Duration // 0: it must not matter
		class    engine.Class
		word     string
		code     int
		response string
	}{
		{"mute", (*session).hold, short, engine.ClassUnknown, wordTimeout, 0, ""},
		{"hangs up on the request", asked(func(*session) {}), 0, engine.ClassUnknown, wordReset, 0, ""},
		{"half a head", saying("HTTP/1.1 200 OK\r\nContent-"), 0, engine.ClassUnknown, wordReset, 0, ""},
		{"half a body", saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), 0, engine.ClassUnknown, wordReset, 200, "half"},
		{"half a chunk", saying(chunked + "9\r\nhalf"), 0, engine.ClassUnknown, wordReset, 200, "half"},
		{"half a trailer", saying(chunked + "2\r\nok\r\n0\r\nX-A: b\r\n"), 0, engine.ClassUnknown, wordReset, 200, "ok"},
		{"half a trailer, then mute", asked(func(s *session) { s.say(chunked + "2\r\nok\r\n0\r\nX-A: b\r\n"); s.hold() }), short, engine.ClassUnknown, wordTimeout, 200, "ok"},
		{"a trailer that may not be one", asked(func(s *session) { s.say(chunked + "2\r\nok\r\n0\r\nSet-Cookie: a=b\r\n\r\n"); s.hold() }), 0, engine.ClassOK, "", 200, "ok"},
		{"half a head, then mute", asked(func(s *session) { s.say("HTTP/1.1 200 OK\r\nX:"); s.hold() }), short, engine.ClassUnknown, wordTimeout, 0, ""},
		{"half a body, then mute", asked(func(s *session) { s.say("HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\nhalf"); s.hold() }), short, engine.ClassUnknown, wordTimeout, 500, "half"},
		{"dripping head", drip("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"), short, engine.ClassUnknown, wordTimeout, 0, ""},
		{"dripping body", drip("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", "."), short, engine.ClassUnknown, wordTimeout, 200, "*"},
		{"dripping chunks", drip(chunked, "1\r\n.\r\n"), short, engine.ClassUnknown, wordTimeout, 200, "*"},
		{"claims 10 GiB", asked(func(s *session) { s.say(claim10G); s.hold() }), short, engine.ClassUnknown, wordTimeout, 200, "hello"},
		{"claims 10 GiB in a chunk", asked(func(s *session) { s.say(chunked + "280000000\r\nhello"); s.hold() }), short, engine.ClassUnknown, wordTimeout, 200, "hello"},
		{"claims 10 GiB and hangs up", saying(claim10G), 0, engine.ClassUnknown, wordReset, 200, "hello"},
		{"sends 1 KiB of 10 GiB, after the head", asked(func(s *session) {
			s.say(strings.TrimSuffix(claim10G, "hello"))
			time.Sleep(50 * time.Millisecond)
			s.say(strings.Repeat("x", 1024))
			s.hold()
		}), 0, engine.ClassOK, "", 200, strings.Repeat("x", 1024)},
		{"sends 1 KiB of a chunk of 10 GiB, after its length", asked(func(s *session) {
			s.say(chunked + "280000000\r\n")
			time.Sleep(50 * time.Millisecond)
			s.say(strings.Repeat("x", 1024))
			s.hold()
		}), 0, engine.ClassOK, "", 200, strings.Repeat("x", 1024)},
		{"refuses with 1 MiB", asked(func(s *session) {
			s.say("HTTP/1.1 403 No\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20))
			s.hold()
		}), 0, engine.ClassRejected, wordStatus, 403, "*"},
		{"endless chunks", asked(func(s *session) {
			for ok := s.say(chunked); ok; ok = s.say("1000\r\n" + strings.Repeat("x", 4096) + "\r\n") {
			}
		}), 0, engine.ClassOK, "", 200, strings.Repeat("x", 1024)},
		{"endless until it hangs up", asked(func(s *session) {
			for ok := s.say("HTTP/1.1 200 OK\r\n\r\n"); ok; ok = s.say(strings.Repeat("x", 4096)) {
			}
		}), 0, engine.ClassOK, "", 200, strings.Repeat("x", 1024)},
		{"5 KB of headers", saying("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 5000) + "\r\nContent-Length: 0\r\n\r\n"), 0, engine.ClassOK, "", 200, ""},
		{"20 KB of headers", asked(func(s *session) { s.say("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 20000)); s.hold() }), 0, engine.ClassUnknown, wordTooLarge, 0, ""},
		{"100, 103, then the answer", saying("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok200), 0, engine.ClassOK, "", 200, "ok"},
		{"103 and no more", saying("HTTP/1.1 103 Early Hints\r\n\r\n"), 0, engine.ClassUnknown, wordReset, 103, ""},
		{"103 for ever", asked(func(s *session) {
			for s.say("HTTP/1.1 103 Early Hints\r\n\r\n") {
			}
		}), 0, engine.ClassUnknown, wordProtocol, 103, ""},
		{"switches protocols", asked(func(s *session) {
			s.say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
			s.hold()
		}), 0, engine.ClassUnknown, wordProtocol, 101, ""},
		{"garbage", asked(func(s *session) { s.say("\x00\x01\x02 220 smtp.example ESMTP\r\n\r\n"); s.hold() }), 0, engine.ClassUnknown, wordProtocol, 0, ""},
		{unasked, func(s *session) { s.say("SSH-2.0-OpenSSH_9.2\r\n\r\n"); s.hold() }, 0, engine.ClassUnknown, wordProtocol, 0, ""},
		{"a status of 000", saying("HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"), 0, engine.ClassUnknown, wordProtocol, 0, ""},
		{"garbage, and no end of it", asked(func(s *session) { s.say("220 smtp.example ESMTP\r\n"); s.hold() }), 0, engine.ClassUnknown, wordProtocol, 0, ""},
		{"a status of 9", asked(func(s *session) { s.say("HTTP/1.1 9 Nine\r\nContent-Length: 0\r\n\r\n"); s.hold() }), 0, engine.ClassUnknown, wordProtocol, -1, ""},
		{"two lengths", asked(func(s *session) {
			s.say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
			s.hold()
		}), 0, engine.ClassUnknown, wordProtocol, -1, ""},
		{"a negative length", asked(func(s *session) { s.say("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"); s.hold() }), 0, engine.ClassUnknown, wordProtocol, -1, ""},
		{"no body by status", asked(func(s *session) { s.say("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n"); s.hold() }), 0, engine.ClassOK, "", 204, ""},
		{"HTTP/1.0 until it hangs up", saying("HTTP/1.0 200 OK\r\n\r\nold"), 0, engine.ClassOK, "", 200, "old"},
		{"redirects to the metadata service", saying("HTTP/1.1 307 Go\r\nLocation: http://169.254.169.254/latest/meta-data\r\nContent-Length: 0\r\n\r\n"), 0, engine.ClassRejected, wordStatus, 307, ""},
	} {
		for _, kept := range []bool{false, true} {
			if kept && f.name == unasked {
				continue // what is said unasked ends a kept connection: TestKeptConnectionsThatWereClosed
			}
			t.Run(fmt.Sprintf("%s, kept=%v", f.name, kept), func(t *testing.T) {
				p := listen(t, nil, func(s *session) {
					if !kept || s.request() && s.say(ok200) {
						f.handle(s)
					}
				})
				cb := newCaller(t, Config{})
				if f.timeout == 0 {
					f.timeout = 30 * time.Second
				}
				var wrong string
				for range 5 { // for the machine may pause, and a short timeout pass too soon
					if kept {
						expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
					}
					o := cb.Call(testCall(p.url, timeout(f.timeout)))
					wrong = ""
					switch {
					case o.Class != f.class || o.ErrorClass != f.word || o.Sent.IsZero():
						wrong = "outcome"
					case o.Took > f.timeout+100*time.Millisecond:
						wrong = "time"
					case f.code >= 0 && o.Code != f.code:
						wrong = "code"
					case f.response != "*" && string(o.Response) != f.response || len(o.Response) > maxResponse:
						wrong = "response"
					case f.class == engine.ClassUnknown && cb.idle.Load() > 0:
						wrong = "a connection in an unknown state was kept"
					}
					if wrong == "" {
						return
					}
					wrong += fmt.Sprintf(": %+v", o)
					if f.timeout != short {
						break
					}
				}
				t.Error(wrong)
			})
		}
	}
}

// A target that refuses a large body before it was read says why.
func TestAnswerBeforeTheBodyWasRead(t *testing.T) {
	p := listen(t, nil, func(s *session) {
		s.r.Peek(1)
		s.say("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge")
		s.Conn.(*net.TCPConn).CloseWrite()
		time.Sleep(20 * time.Millisecond)
	})
	o := newCaller(t, Config{}).Call(testCall(p.url, func(tm *engine.Timer) {
		tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = make([]byte, 32<<20), true, engine.BodyBase64
	}))
	expect(t, o, engine.ClassRejected, wordStatus)
	if o.Code != 413 || string(o.Response) != "large" {
		t.Errorf("%+v", o)
	}
}

func TestClaimsCostNoMemory(t *testing.T) {
	p := listen(t, nil, func(s *session) {
		if s.request() {
			s.say(claim10G + strings.Repeat("x", 1024))
			s.hold()
		}
	})
	cb := newCaller(t, Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 200
	for range n {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	}
	runtime.ReadMemStats(&after)
	// Both ends and their connections together.
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 64<<10 {
		t.Errorf("%d bytes a call", each)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	p := listen(t, nil, answering(ok200))
	cb := newCaller(t, Config{})
	for range 100 {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	}
	if p.conns.Load() != 1 || p.requests.Load() != 100 {
		t.Errorf("%d requests over %d connections", p.requests.Load(), p.conns.Load())
	}
}

// A kept connection that the target closed costs nothing: each call arrives
// once, none fails.
func TestKeptConnectionsThatWereClosed(t *testing.T) {
	for name, bye := range map[string]string{"silently": "", "with 408": "HTTP/1.1 408 Slow\r\nConnection: close\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			p := listen(t, nil, func(s *session) {
				if s.request() && s.say(ok200) {
					s.say(bye)
					s.Close()
					closed <- struct{}{}
				}
			})
			cb := newCaller(t, Config{})
			const n = 200
			for range n {
				expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
				<-closed
			}
			if p.requests.Load() != n {
				t.Errorf("%d requests of %d calls", p.requests.Load(), n)
			}
		})
	}
}

// A target that says that it hangs up, in whatever letters and beside whatever else, and
// does so a moment later: no call is lost on the connection.
func TestTargetThatSaysItHangsUp(t *testing.T) {
	for _, header := range []string{"close", "Close", "keep-alive, close", "close\r\nConnection: x"} {
		t.Run(header, func(t *testing.T) {
			p := listen(t, nil, func(s *session) {
				if s.request() && s.say("HTTP/1.1 200 OK\r\nConnection: "+header+"\r\nContent-Length: 2\r\n\r\nok") {
					time.Sleep(5 * time.Millisecond)
				}
			})
			cb := newCaller(t, Config{})
			for range 20 {
				expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
			}
		})
	}
}

// A connection that is said to be kept is.
func TestTargetThatSaysItKeeps(t *testing.T) {
	p := listen(t, nil, answering("HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok"))
	cb := newCaller(t, Config{})
	for range 20 {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	}
	if n := p.conns.Load(); n != 1 {
		t.Errorf("%d connections for 20 calls", n)
	}
}

// What a target sends behind its answer must not answer the next request.
func TestBytesBehindAnAnswer(t *testing.T) {
	p := listen(t, nil, answering(ok200+"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"))
	cb := newCaller(t, Config{})
	for range 20 {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	}
}

func TestConnectionsOfATargetAreBounded(t *testing.T) {
	var open, most atomic.Int64
	free := make(chan struct{})
	p := listen(t, nil, func(s *session) {
		for s.request() {
			n := open.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-free
			open.Add(-1)
			if !s.say(ok200) {
				return
			}
		}
	})
	cb := newCaller(t, Config{MaxConnsPerHost: 2})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "") })
	}
	for p.requests.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	expect(t, cb.Call(testCall(p.url, timeout(50*time.Millisecond))), engine.ClassNotSent, wordTimeout)
	close(free)
	wg.Wait()
	if most.Load() > 2 || p.conns.Load() > 2 {
		t.Errorf("%d at once over %d connections", most.Load(), p.conns.Load())
	}
}

func TestSweep(t *testing.T) {
	p := listen(t, nil, answering(ok200))
	cb := newCaller(t, Config{})
	expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	origin, _ := splitURL(p.url)
	tg, err := cb.target(origin)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if unused := tg.sweep(now); unused || cb.idle.Load() != 1 {
		t.Error("swept too early")
	}
	if unused := tg.sweep(now.Add(maxIdle + time.Second)); unused || cb.idle.Load() != 0 {
		t.Error("a connection was kept too long")
	}
	if unused := tg.sweep(now.Add(forgetAfter + time.Second)); !unused || !tg.forgetUnused(now.Add(forgetAfter+time.Second)) {
		t.Error("an unused target is remembered")
	}
	// A call that still holds the forgotten target works, and keeps nothing.
	expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	if cb.idle.Load() != 0 {
		t.Error("a forgotten target keeps a connection")
	}
}

func TestNoConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + ln.Addr().String()
	ln.Close()
	p := listen(t, nil, answering(ok200))
	cb := newCaller(t, Config{Resolver: resolver(t, func() []string { return nil })})
	cb.AddOwnListener(netip.AddrPortFrom(netip.IPv4Unspecified(), p.port))
	expect(t, cb.Call(testCall(refused)), engine.ClassNotSent, wordRefused)
	expect(t, cb.Call(testCall("http://nowhere.test./")), engine.ClassNotSent, wordDNS)
	expect(t, cb.Call(testCall(p.url)), engine.ClassNotSent, wordEgress)
	expect(t, cb.Call(testCall("http://169.254.169.254/latest")), engine.ClassNotSent, wordEgress)
	expect(t, cb.Call(testCall("http://[fe80::1]/")), engine.ClassNotSent, wordEgress)
	if p.conns.Load() != 0 {
		t.Error("an own listener was dialled")
	}
	for _, url := range []string{"", "ftp://h/", "//h/", "http://", "http://u@h/", "http://h:0/", "http://h:99999/", "http://h\r\nX: y/", "http://[::1%25lo]/"} {
		if o := cb.Call(testCall(url)); o.Class != engine.ClassRejected || o.ErrorClass != wordProtocol || !o.Sent.IsZero() {
			t.Errorf("%q: %+v", url, o)
		}
	}
}

// A name that leads to an allowed address once leads to a forbidden one next
// time: what counts is what is dialled.
func TestRebinding(t *testing.T) {
	p := listen(t, nil, func(s *session) {
		if s.request() {
			s.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		}
	})
	var asked atomic.Int64
	cb := newCaller(t, Config{Resolver: resolver(t, func() []string {
		if asked.Add(1) == 1 {
			return []string{"127.0.0.1"}
		}
		return []string{"169.254.169.254", "0.0.0.0"}
	})})
	url := fmt.Sprintf("http://rebind.test.:%d/", p.port)
	expect(t, cb.Call(testCall(url)), engine.ClassOK, "")
	for range 3 {
		expect(t, cb.Call(testCall(url)), engine.ClassNotSent, wordEgress)
	}
	if p.conns.Load() != 1 {
		t.Error("0.0.0.0 was dialled")
	}
}

// resolver asks a DNS server that gives what answer says to each question of
// an IPv4 address: none is NXDOMAIN.
func resolver(tb testing.TB, answer func() []string) *net.Resolver {
	tb.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12
			for end < n && buf[end] != 0 {
				end += int(buf[end]) + 1
			}
			end += 5 // the root, type and class
			if end > n {
				continue
			}
			msg := append([]byte(nil), buf[:end]...)
			var addrs []string
			if binary.BigEndian.Uint16(msg[end-4:]) == 1 {
				if addrs = answer(); addrs == nil {
					msg[3] = 3
				}
			}
			msg[2], msg[3] = 0x81, 0x80|msg[3]&3
			binary.BigEndian.PutUint16(msg[6:], uint16(len(addrs)))
			binary.BigEndian.PutUint32(msg[8:], 0)
			for _, a := range addrs {
				msg = append(msg, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				msg = append(msg, netip.MustParseAddr(a).AsSlice()...)
			}
			pc.WriteTo(msg, from)
		}
	})
	tb.Cleanup(func() { pc.Close(); wg.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestTLS(t *testing.T) {
	ca := newCA(t)
	day := 24 * time.Hour
	good := ca.issue(t, "127.0.0.1", day)
	for _, f := range []struct {
		name string
		cert *tls.Certificate
		word string
	}{
		{"good", good, ""},
		{"expired", ca.issue(t, "127.0.0.1", -day), wordTLS},
		{"another host", ca.issue(t, "127.0.0.2", day), wordTLS},
		{"another authority", newCA(t).issue(t, "127.0.0.1", day), wordTLS},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := listen(t, f.cert, answering(ok200))
			cb := newCaller(t, Config{RootCAs: ca.pool})
			class := engine.ClassOK
			if f.word != "" {
				class = engine.ClassNotSent
			}
			for range 3 {
				expect(t, cb.Call(testCall(p.url)), class, f.word)
			}
			if f.word == "" && p.conns.Load() != 1 {
				t.Errorf("%d connections", p.conns.Load())
			}
			if f.word != "" && p.requests.Load() > 0 {
				t.Error("it was sent")
			}
		})
	}
	t.Run("without our authority", func(t *testing.T) {
		p := listen(t, good, answering(ok200))
		expect(t, newCaller(t, Config{}).Call(testCall(p.url)), engine.ClassNotSent, wordTLS)
	})
	t.Run("not TLS", func(t *testing.T) {
		p := listen(t, nil, func(s *session) { s.say("HTTP/1.1 400 Bad\r\n\r\n") })
		expect(t, newCaller(t, Config{}).Call(testCall("https"+p.url[4:])), engine.ClassNotSent, wordTLS)
	})
	t.Run("closed while kept", func(t *testing.T) {
		closed := make(chan struct{})
		p := listen(t, good, func(s *session) {
			if s.request() && s.say(ok200) {
				s.Close()
				closed <- struct{}{}
			}
		})
		cb := newCaller(t, Config{RootCAs: ca.pool})
		for range 20 {
			expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
			<-closed
		}
	})
	t.Run("mute", func(t *testing.T) {
		p := listen(t, nil, (*session).hold)
		cb := newCaller(t, Config{})
		var o engine.Outcome
		for range 3 {
			if o = cb.Call(testCall("https"+p.url[4:], timeout(200*time.Millisecond))); o.Took <= 300*time.Millisecond {
				break
			}
		}
		expect(t, o, engine.ClassNotSent, wordTimeout)
		if o.Took > 300*time.Millisecond {
			t.Errorf("took %v", o.Took)
		}
	})
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newCA(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key, pool}
}

func (a *authority) issue(tb testing.TB, ip string, valid time.Duration) *tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(valid),
		IPAddresses: []net.IP{net.ParseIP(ip)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Sent is when the request is handed to the socket: what it takes to connect
// comes before it.
func TestSent(t *testing.T) {
	ca := newCA(t)
	var ready atomic.Int64
	p := listen(t, ca.issue(t, "127.0.0.1", time.Hour), func(s *session) {
		time.Sleep(30 * time.Millisecond)
		ready.Store(time.Now().UnixNano())
		answering(ok200)(s)
	})
	cb := newCaller(t, Config{RootCAs: ca.pool})
	start := time.Now()
	o := cb.Call(testCall(p.url))
	expect(t, o, engine.ClassOK, "")
	if o.Sent.UnixNano() < ready.Load() || o.Sent.After(start.Add(o.Took)) || o.Took < 30*time.Millisecond {
		t.Errorf("start %v, ready %v: %+v", start, time.Unix(0, ready.Load()), o)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("calls", func(t *testing.T) {
		mute := listen(t, nil, (*session).hold)
		p := listen(t, nil, answering(ok200))
		cb := newCaller(t, Config{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
				// On a busy machine even to connect may take longer.
				if o := cb.Call(testCall(mute.url, timeout(50*time.Millisecond))); o.ErrorClass != wordTimeout {
					t.Errorf("%+v", o)
				}
			})
		}
		wg.Wait()
		cb.Close()
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		if n := cb.idle.Load(); n != 0 {
			t.Errorf("%d connections are kept after Close", n)
		}
	})
}
