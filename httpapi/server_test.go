package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/wire"
)

// bubble runs a server without an engine behind it on the fake clock.
func bubble(t *testing.T, cfg ServerConfig, f func(t *testing.T, n *testNode)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewServer(&scheduler.Scheduler{}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.fast.NoDefaultDate = true // its clock never stops
		n := &testNode{t: t, s: s, ln: fasthttputil.NewInmemoryListener()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, n.ln) }()
		n.stop = func() error { cancel(); return <-ended }
		defer func() {
			cancel()
			// fasthttp's pool sees that it is to end when it next looks for idle
			// workers.
			time.Sleep(time.Minute)
		}()
		f(t, n)
	})
}

func TestSlowRequestsAreCutOff(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		for _, part := range []string{
			"GET /livez HTTP/1.1\nHost: x\nX-", "POST /v1/timers HTTP/1.1\nHost: x\nContent-Length: 100\n\n{",
		} {
			c := n.raw()
			c.send(part)
			begin := time.Now()
			if got := c.receive().want(408); got.str("code") != "request_timeout" {
				t.Error(got.body)
			}
			if took := time.Since(begin); took != 5*time.Second {
				t.Errorf("cut off after %v", took)
			}
		}
	})
}

func TestPipelinedRequests(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		c := n.raw()
		c.send(strings.Repeat("GET /livez HTTP/1.1\nHost: x\n\nGET /nowhere HTTP/1.1\nHost: x\n\n", 50))
		for range 50 {
			c.receive().want(200)
			c.receive().want(404)
		}
		c.Close()
	})
}

// A request that says in two ways where its body ends is refused, and nothing
// after it on its connection is taken for a request.
func TestRequestFramedTwice(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		c := n.raw()
		c.send("POST /v1/schedules/preview HTTP/1.1\nHost: x\ncontent-length: 4\nTransfer-encoding: chunked\n\n0\n\nGET /livez HTTP/1.1\nHost: x\n\n")
		if got := c.receive().want(400); got.str("code") != "bad_framing" || got.header["Connection"] != "close" {
			t.Error(got.body, got.header)
		}
		if rest, _ := io.ReadAll(c.r); len(rest) > 0 {
			t.Errorf("%q came after it", rest)
		}
	})
}

// A header that stands behind a bare LF is another's value to some: the request is
// refused, and nothing after it on its connection is taken for a request.
func TestRequestWithABareLF(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		for _, head := range []string{
			"X: a\nContent-Length: 4\r\n", "X: a\nTransfer-Encoding: chunked\r\n", "Content-Length: 4\n", "Y: x\nX: a\r\n",
		} {
			c := n.raw()
			_, err := io.WriteString(c, "POST /v1/schedules/preview HTTP/1.1\r\nHost: x\r\n"+head+"\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := c.receive().want(400); got.str("code") != "bad_framing" || got.header["Connection"] != "close" {
				t.Errorf("%q: %s %v", head, got.body, got.header)
			}
			if rest, _ := io.ReadAll(c.r); len(rest) > 0 {
				t.Errorf("%q came after it", rest)
			}
		}
	})
}

func TestRequestsTooLarge(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		for _, c := range []struct {
			request string
			status  int
			code    string
		}{
			{"GET /livez HTTP/1.1\nHost: x\nX: " + strings.Repeat("x", 9000) + "\n\n", 431, "header_too_large"},
			{"POST /v1/timers HTTP/1.1\nHost: x\nContent-Length: 1048577\n\n", 413, "body_too_large"},
			{"POST /v1/timers/batch HTTP/1.1\nHost: x\nContent-Length: 8388609\n\n", 413, "body_too_large"},
			{"POST /v1/timers HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n100001\n" + strings.Repeat("x", 1<<20+1) + "\n0\n\n", 413, "body_too_large"},
			{"POST /v1/timers/batch HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n800001\n" + strings.Repeat("x", 8<<20+1) + "\n0\n\n", 413, "body_too_large"},
			{"\x16\x03\x01\x00\n\n", 400, "bad_request"},
			{"POST /v1/timers HTTP/1.1\nHost: x\nContent-Encoding: gzip\nContent-Length: 2\n\n{}", 415, "content_encoding"},
		} {
			r := n.raw()
			go r.Write([]byte(strings.ReplaceAll(c.request, "\n", "\r\n")))
			if got := r.receive(); got.status != c.status || got.str("code") != c.code {
				t.Errorf("%.60q: %d %s", c.request, got.status, got.body)
			} else if c.status == 413 && !(strings.Contains(got.body, "1048576 bytes") && strings.Contains(got.body, "batch 8388608")) {
				t.Errorf("%.60q: of which request? %s", c.request, got.body)
			}
			r.Close()
		}
	})
}

// A target in absolute form, as a client sends it to a proxy, is taken; nothing else that
// begins with no slash is.
func TestAbsoluteForm(t *testing.T) {
	build := func(http.RoundTripper) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) })
	}
	bubble(t, ServerConfig{Console: build}, func(t *testing.T, n *testNode) {
		for _, c := range []struct{ head, want string }{
			{"GET http://127.0.0.1:8080/livez", `200 {"status":"ok"}`},
			{"GET HTTPS://[::1]/livez?", `200 {"status":"ok"}`},
			{"GET http://x/livez#part", `200 {"status":"ok"}`},
			{"GET http://x/v1/nothing", "404 {"},
			{"GET http://x", "200 page /"},
			{"GET http://x?a=/livez", "200 page /"},
			{"POST http://x/v1/timers/batch", "400 {"}, // a body of 2 MiB
			{"GET ftp://x/livez", "400 {"},
			{"GET x/?a=://x/livez", "400 {"},
		} {
			r := n.raw()
			size, accept := 0, "application/json"
			if strings.HasPrefix(c.head, "POST") {
				size = 2 << 20
			}
			if strings.Contains(c.want, "page") {
				accept = "text/html"
			}
			go fmt.Fprintf(r, "%s HTTP/1.1\r\nHost: y\r\nAccept: %s\r\nContent-Length: %d\r\n\r\n%s", c.head, accept, size, strings.Repeat("x", size))
			if got := r.receive(); !strings.HasPrefix(fmt.Sprint(got.status, " ", got.body), c.want) {
				t.Errorf("%s: %d %s", c.head, got.status, got.body)
			}
			r.Close()
		}
		// A page's origin is compared with the target's host.
		r := n.raw()
		r.send("POST http://x/v1/schedules/preview HTTP/1.1\nHost: y\nOrigin: http://y\nContent-Length: 0\n\n")
		if got := r.receive().want(403); got.str("code") != "cross_origin" {
			t.Error(got.body)
		}
	})
}

// A client that sends all before it reads gets its 413: a close with bytes unread would
// reset the connection.
func TestTooLargeAndSentBeforeReading(t *testing.T) {
	s, err := NewServer(&scheduler.Scheduler{}, ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	defer func() { cancel(); <-ended }()
	for range 5 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		const size = 9 << 20
		_, err = io.WriteString(c, "POST /v1/timers HTTP/1.1\r\nHost: x\r\nContent-Length: "+strconv.Itoa(size)+"\r\n\r\n"+strings.Repeat("x", size))
		line, readErr := bufio.NewReader(c).ReadString('\n')
		if err != nil || readErr != nil || !strings.Contains(line, " 413 ") {
			t.Errorf("sent %v, read %q, %v", err, line, readErr)
		}
		c.Close()
	}
}

// A server that is told to end before it has begun to serve ends.
func TestServeThatIsOverBeforeItBegins(t *testing.T) {
	for range 50 {
		s, err := NewServer(&scheduler.Scheduler{}, ServerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Serve(ctx, fasthttputil.NewInmemoryListener()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHandlersThatPanic(t *testing.T) {
	var log bytes.Buffer
	bubble(t, ServerConfig{Log: textLog(&log)}, func(t *testing.T, n *testNode) {
		for i := range n.s.routes {
			if n.s.routes[i].path == "/livez" {
				n.s.routes[i].handle = func(*Server, *request) (reply, error) { panic("BUG: on purpose") }
			}
		}
		c := n.raw()
		c.send("GET /livez HTTP/1.1\nHost: x\n\n")
		if got := c.receive().want(500); got.str("code") != "internal" || strings.Contains(got.body, "purpose") {
			t.Error(got.body)
		}
		n.raw().send("GET /v1/version HTTP/1.1\nHost: x\nConnection: close\n\n")
	})
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "on purpose") {
		t.Errorf("%d errors logged: %s", n, log.String())
	}
}

func TestShutdownAnswersWhatIsInFlight(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		begun := make(chan struct{})
		for i := range n.s.routes {
			if n.s.routes[i].path == "/v1/version" {
				n.s.routes[i].handle = func(*Server, *request) (reply, error) {
					close(begun)
					time.Sleep(3 * time.Second)
					return statusReply("done"), nil
				}
			}
		}
		idle, busy := n.raw(), n.raw()
		idle.send("GET /livez HTTP/1.1\nHost: x\n\n")
		idle.receive().want(200)
		busy.send("GET /v1/version HTTP/1.1\nHost: x\n\n")
		<-begun
		begin := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- n.stop() }()
		if got := busy.receive().want(200); got.header["Connection"] != "close" {
			t.Error(got.header)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("shutdown took %v", took)
		}
		if _, err := idle.r.ReadByte(); err == nil {
			t.Error("an idle connection is still open")
		}
	})
}

// TestShutdownEndsWhatWaits: a request that waits for something that does not come, as the
// answer of a node that hangs, is answered when Grace is over.
func TestShutdownEndsWhatWaits(t *testing.T) {
	bubble(t, ServerConfig{}, func(t *testing.T, n *testNode) {
		begun := make(chan struct{})
		for i := range n.s.routes {
			if n.s.routes[i].path == "/v1/version" {
				n.s.routes[i].handle = func(_ *Server, r *request) (reply, error) {
					close(begun)
					<-r.ctx.Done()
					return reply{}, engine.ErrUnavailable
				}
			}
		}
		busy := n.raw()
		busy.send("GET /v1/version HTTP/1.1\nHost: x\n\n")
		<-begun
		begin := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- n.stop() }()
		busy.receive().want(503)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < n.s.cfg.Grace || took > n.s.cfg.Grace+time.Second {
			t.Errorf("shutdown took %v", took)
		}
	})
}

// TestShutdownClosesWhatIsLeft: a client that sends slowly does not make the end of the server
// a failure. Its connection is closed when Grace is over, and the log says so.
func TestShutdownClosesWhatIsLeft(t *testing.T) {
	var log strings.Builder
	bubble(t, ServerConfig{Log: textLog(&log)}, func(t *testing.T, n *testNode) {
		slow := n.raw()
		slow.send("POST /v1/timers/batch HTTP/1.1\nHost: x\nContent-Length: 1000\n\n{")
		synctest.Wait()
		begin := time.Now()
		if err := n.stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > n.s.cfg.Grace+2*time.Second {
			t.Errorf("shutdown took %v", took)
		}
		if _, err := slow.r.ReadByte(); err == nil || time.Since(begin) > n.s.cfg.Grace+2*time.Second {
			t.Errorf("%v after %v: the connection is open", err, time.Since(begin))
		}
		if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "connections=1") {
			t.Errorf("the log: %s", log.String())
		}
	})
}

func TestReadyUntilDraining(t *testing.T) {
	n := newNode(t)
	n.do("GET", "/livez", "").want(200)
	if got := n.do("GET", "/readyz", "").want(200); got.get("tiers", "cold") != true {
		t.Error(got.body)
	}
	n.s.SetDraining()
	if got := n.do("GET", "/readyz", "").want(503); got.str("code") != "draining" || got.header["Retry-After"] == "" || got.get("tiers", "cold") != true {
		t.Error(got.body)
	}
	n.do("GET", "/livez", "").want(200)
}

// TestNothingOfABufferIsKept sends timers of two owners through one connection:
// fasthttp reads the second into the buffer of the first.
func TestNothingOfABufferIsKept(t *testing.T) {
	n := newNode(t)
	body := func(i int) string {
		c := string(rune('a' + i))
		return fmt.Sprintf(`{"app":%q,"name":%q,"schedule":{"cron":"%d 9 * * *","time_zone":"Asia/Shanghai"},"labels":{%q:%q},`+
			`"callback":{"url":"http://%s.example/","headers":{"x-%s":%q},"body_text":%q,"success":"20%d"}}`,
			c, strings.Repeat(c, 40), i, c, c, strings.Repeat(c, 30), c, c, strings.Repeat(c, 50), i)
	}
	c := n.raw()
	for i := range 9 {
		c.send(fmt.Sprintf("POST /v1/timers HTTP/1.1\nHost: x\nIdempotency-Key: %s\nContent-Length: %d\n\n%s",
			strings.Repeat(string(rune('a'+i)), 20), len(body(i)), body(i)))
		c.receive().want(201)
	}
	for i := range 9 {
		a := string(rune('a' + i))
		got := n.do("GET", "/v1/apps/"+a+"/timers/"+strings.Repeat(a, 40), "").want(200)
		for _, want := range []string{strings.Repeat(a, 30) + ".example", strings.Repeat(a, 50), fmt.Sprintf(`"20%d"`, i), fmt.Sprintf(`"labels":{%q:%q}`, a, a), "Asia/Shanghai"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("no %s in %s", want, got.body)
			}
		}
	}
	// And of the decoder alone: its input is overwritten at once.
	buf := []byte(orderBody)
	d, want := engine.NewDefinition(), engine.NewDefinition()
	if err := wire.DecodeTimer([]byte(orderBody), &want); err != nil {
		t.Fatal(err)
	}
	if err := wire.DecodeTimer(buf, &d); err != nil {
		t.Fatal(err)
	}
	for i := range buf {
		buf[i] = 'X'
	}
	if !d.Equal(&want) {
		t.Errorf("%+v", d)
	}
}

func TestStatsAndVersion(t *testing.T) {
	n := newNode(t)
	if got := n.do("GET", "/v1/stats", "").want(200); len(got.get("due_by_minute").([]any)) != 60 {
		t.Error(got.body)
	}
	if got := n.do("GET", "/v1/version", "").want(200); got.str("version") != "v1" {
		t.Error(got.body)
	}
	n.do("POST", "/v1/admin/backup", "").want(409)
	n.s.cfg.BackupDir = t.TempDir()
	n.do("POST", "/v1/admin/backup", "").want(201)
	n.do("POST", "/v1/admin/backup", `{"dir":"/etc"}`).want(400)
}

// TestBeforeTheEngineIsOpen: the API answers while the engine recovers.
func TestBeforeTheEngineIsOpen(t *testing.T) {
	e, _ := builtEngine(t, answers(200), nil)
	n := serve(t, e, ServerConfig{})
	n.do("GET", "/livez", "").want(200)
	if got := n.do("GET", "/readyz", "").want(503); got.str("errors", 0, "detail") == "" || got.get("tiers", "cold") != false || got.get("tiers", "warm") != false {
		t.Error(got.body)
	}
	n.do("POST", "/v1/timers", hourly("a", "n", "")).want(503)
	for _, path := range []string{"/v1/timers", "/v1/timers/7", "/v1/apps/a/timers/n", "/v1/tasks", "/v1/tasks/7_8", "/v1/stats", "/v1/timers/7/upcoming"} {
		n.do("GET", path, "").want(503)
	}
	n.do("GET", "/metrics", "").want(200)
}
