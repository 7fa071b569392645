package httpapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/wal"
)

// testNode is a server on a real engine, reached through memory.
type testNode struct {
	t      testing.TB
	e      *scheduler.Scheduler
	s      *Server
	ln     listener
	client *fasthttp.Client
	token  string
	stop   func() error // ends serving, and says how it ended
}

// callerFunc makes no call at all.
type callerFunc func(c *engine.Call) engine.Outcome

func (f callerFunc) Call(c *engine.Call) engine.Outcome { return f(c) }

// answers is a caller whose target answers with that status.
func answers(code int) callerFunc {
	return func(*engine.Call) engine.Outcome {
		o := engine.Outcome{Code: code, Sent: time.Now(), Took: 1500 * time.Microsecond, Response: []byte("a \xff\n\"b\"")}
		o.Phases = engine.Phases{Send: 11 * time.Microsecond, FirstByte: 1200 * time.Microsecond, Read: 289 * time.Microsecond}
		if code >= 300 {
			o.Class, o.ErrorClass = engine.ClassRejected, "status"
		}
		return o
	}
}

// builtEngine is an engine that is not opened yet.
func builtEngine(t testing.TB, call callerFunc, set *metrics.Set) (e *scheduler.Scheduler, open func()) {
	t.Helper()
	return builtEngineOn(t, call, set, func(*scheduler.Config) {})
}

// builtEngineOn is one whose parts are changed before it is built.
func builtEngineOn(t testing.TB, call callerFunc, set *metrics.Set, change func(*scheduler.Config)) (e *scheduler.Scheduler, open func()) {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	cfg := scheduler.Config{
		Cold:    local.New(local.Config{Dir: filepath.Join(dir, "cold"), StallAfter: time.Minute}),
		Warm:    newWarm(),
		Journal: wal.New(wal.Config{Dir: filepath.Join(dir, "journal"), Logger: log}),
		Caller:  call, Log: log, Metrics: set,
	}
	change(&cfg)
	e = scheduler.New(cfg)
	return e, func() {
		if err := e.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
		until(t, func() bool { return e.Ready() == nil })
	}
}

// newEngine opens and runs an engine until the test ends.
func newEngine(t testing.TB, call callerFunc, set *metrics.Set) *scheduler.Scheduler {
	t.Helper()
	e, open := builtEngine(t, call, set)
	open()
	return e
}

// listener is where a server is reached.
type listener interface {
	net.Listener
	Dial() (net.Conn, error)
}

// serve runs a server of e until the test ends.
func serve(t testing.TB, e *scheduler.Scheduler, cfg ServerConfig) *testNode {
	t.Helper()
	return serveOn(t, e, cfg, fasthttputil.NewInmemoryListener())
}

func serveOn(t testing.TB, e *scheduler.Scheduler, cfg ServerConfig, ln listener) *testNode {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := NewServer(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{t: t, e: e, s: s, ln: ln}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, n.ln) }()
	n.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		n.client.CloseIdleConnections()
		if err := n.stop(); err != nil {
			t.Error(err)
		}
	})
	n.client = &fasthttp.Client{
		Dial: func(string) (net.Conn, error) { return n.ln.Dial() }, DisablePathNormalizing: true, NoDefaultUserAgentHeader: true,
	}
	return n
}

func newNode(t testing.TB) *testNode {
	set := metrics.NewSet()
	return serve(t, newEngine(t, answers(200), set), ServerConfig{Metrics: set.WritePrometheus, Version: Version{"v1", "abc", "go"}})
}

// answer is what came back.
type answer struct {
	t      testing.TB
	status int
	header map[string]string
	body   string
}

// do makes a request; headers are pairs. One that is given twice is sent in two lines.
func (n *testNode) do(method, path, body string, headers ...string) answer {
	n.t.Helper()
	q, p := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(q)
	defer fasthttp.ReleaseResponse(p)
	q.Header.SetMethod(method)
	q.UseHostHeader = true
	q.Header.SetHost("xtimer.test")
	q.SetRequestURI("http://xtimer.test" + path)
	q.URI().DisablePathNormalizing = true
	if body != "" {
		q.SetBodyString(body)
		q.Header.SetContentType("application/json")
	}
	if n.token != "" {
		q.Header.Set("Authorization", "Bearer "+n.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if slices.Contains(headers[:i], headers[i]) {
			q.Header.Add(headers[i], headers[i+1])
		} else {
			q.Header.Set(headers[i], headers[i+1])
		}
	}
	if err := n.client.Do(q, p); err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	a := answer{t: n.t, status: p.StatusCode(), header: map[string]string{}, body: string(p.Body())}
	for k, v := range p.Header.All() {
		a.header[string(k)] = string(v)
	}
	n.hold(method, path, body, a)
	return a
}

// want fails unless the answer has the status.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// get is a value of the JSON body by its path: get("errors", 0, "field").
func (a answer) get(path ...any) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				a.t.Fatalf("no item %d in %s", p, a.body)
			}
			v = l[p]
		}
	}
	return v
}

func (a answer) str(path ...any) string {
	a.t.Helper()
	s, _ := a.get(path...).(string)
	return s
}

// until waits for something that other goroutines do.
func until(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about within a minute")
		}
	}
}

// raw speaks HTTP by hand on a connection of its own.
type raw struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (n *testNode) raw() *raw {
	c, err := n.ln.Dial()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return &raw{c, n.t, bufio.NewReader(c)}
}

func (r *raw) send(s string) {
	r.t.Helper()
	if _, err := io.WriteString(r, strings.ReplaceAll(s, "\n", "\r\n")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) receive() answer {
	r.t.Helper()
	var p fasthttp.Response
	if err := p.Read(r.r); err != nil {
		r.t.Fatal(err)
	}
	return answer{t: r.t, status: p.StatusCode(), body: string(p.Body()), header: map[string]string{"Connection": string(p.Header.Peek("Connection"))}}
}

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
