package console

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/engine/object"
	"xtimer/engine/scheduler"
	"xtimer/httpapi"
	"xtimer/httpapi/access"
	"xtimer/httpapi/client"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// node is a server with its console on loopback, until the test ends.
type node struct {
	t   testing.TB
	url string
	api *client.Client // with every right
}

const evil = `<script>document.title="pwned";window.pwned=1</script><img src=x onerror="window.pwned=1">'"`

// target answers by the path of the URL that is called, without a socket.
type target struct{}

func (target) Call(c *engine.Call) engine.Outcome {
	o := engine.Outcome{Sent: time.Now(), Code: 200, Took: 1500 * time.Microsecond, Response: []byte(`{"ok":true}`)}
	o.Phases = engine.Phases{Send: 20 * time.Microsecond, FirstByte: 1200 * time.Microsecond, Read: 30 * time.Microsecond}
	if c.Attempt == 1 {
		o.Phases.Dial, o.Phases.TLS = 110*time.Microsecond, 140*time.Microsecond
	}
	switch u := c.Timer.Callback.URL; {
	case strings.HasSuffix(u, "/bad"):
		o.Class, o.Code, o.ErrorClass, o.Response = engine.ClassRetry, 503, "status", []byte(evil)
	case strings.HasSuffix(u, "/no"):
		o.Class, o.Code, o.ErrorClass, o.Response = engine.ClassRejected, 404, "status", []byte(evil)
	}
	return o
}

// sent is what becomes of a message, by the URL of the channel.
func sent(_ context.Context, d *alert.Delivery) alert.Result {
	if strings.HasSuffix(d.Channel.URL.Value, "/refuses") {
		return alert.Result{Final: true, Status: 200, Error: "the answer has the code 19021", Answer: `{"code":19021,"msg":"` + evil + `"}`}
	}
	return alert.Result{Delivered: true, Status: 200, Answer: "ok"}
}

// The tokens of a server that wants some.
var tokens = []access.Token{
	{App: "*", Role: access.RoleAdmin, Token: "all-admin"},
	{App: "shop", Role: access.RoleWrite, Token: "shop-write"},
	{App: "shop", Role: access.RoleRead, Token: "shop-read"},
	{App: "*", Role: access.RoleRead, Token: "all-read"},
}

func serve(t testing.TB, tokens ...access.Token) *node {
	t.Helper()
	return serveCalling(t, target{}, tokens...)
}

func serveCalling(t testing.TB, caller engine.Caller, tokens ...access.Token) *node {
	t.Helper()
	return serveAs(t, caller, Config{}, tokens...)
}

// several answers what the API answers, but as one of two nodes.
type several struct {
	http.RoundTripper
	cluster client.Cluster
}

func (s *several) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/v1/cluster") {
		return s.RoundTripper.RoundTrip(r)
	}
	return fakeAPI(func(r *http.Request) (int, any) {
		if r.Method != http.MethodGet {
			return 200, s.cluster.Nodes[0]
		}
		return 200, s.cluster
	}).RoundTrip(r)
}

// twoNodes are nodes of which one has a script for a name.
func twoNodes() client.Cluster {
	c := client.Cluster{Node: "a", Cluster: true, LeaseMS: 1800, SlowestBeatMS: 812, LeaseTooShort: true, Nodes: []client.Node{
		{Name: "a", Address: "10.0.0.1:8080", State: "serving", Weight: 1, Shards: 128, BeatAgeMS: 120},
		{Name: "b" + evil, Address: "10.0.0.2:8080", State: "draining", Wish: "drain", Reason: "drain", Weight: 2, Shards: 127, BeatAgeMS: 900},
	}}
	c.Moves = []client.Move{
		{At: time.Now(), How: "takeover", From: "c" + evil, To: "a", GapMS: 2100, Shards: []int{1, 2, 3}},
		{At: time.Now(), How: "start", To: "a", GapMS: 200, Shards: []int{4}},
	}
	for i := range 256 {
		c.Shards = append(c.Shards, c.Nodes[i%2].Name)
	}
	c.Shards[7] = ""
	return c
}

// serveAs serves a console with a configuration. With Cluster, the API answers as one of two nodes.
func serveAs(t testing.TB, caller engine.Caller, cfg Config, tokens ...access.Token) *node {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	cold := local.New(local.Config{Dir: filepath.Join(dir, "cold"), StallAfter: time.Minute})
	objects := object.New(cold, time.Now, log)
	a := alert.New(alert.Config{Objects: objects, Cold: cold, Log: log, Metrics: metrics.NewSet(), Send: sent})
	e := scheduler.New(scheduler.Config{
		Cold: cold, Objects: objects, Ended: a.Ended, First: a.First,
		Warm:    memory.NewWarm(),
		Journal: wal.New(wal.Config{Dir: filepath.Join(dir, "journal"), Logger: log}),
		Caller:  caller, Log: log,
	})
	s, err := httpapi.NewServer(e, httpapi.ServerConfig{
		Alerts: a, Tokens: tokens, BackupDir: t.TempDir(), Version: httpapi.Version{Version: "v1", Commit: "abc", Go: "go"}, Log: log,
		Settings: []httpapi.Setting{{Name: "listen", Value: "127.0.0.1:0", From: "flag"}},
		Console: func(api http.RoundTripper) http.Handler {
			if cfg.API, cfg.NoRedis, cfg.Log = api, true, log; cfg.Cluster {
				cfg.API = &several{api, twoNodes()}
			}
			return New(cfg)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- a.Run(ctx) }()
	go func() { ended <- e.Run(ctx) }()
	go func() { ended <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, <-ended); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	n := &node{t: t, url: "http://" + ln.Addr().String()}
	token := ""
	if len(tokens) > 0 {
		token = tokens[0].Token
	}
	if n.api, err = client.New(n.url, client.WithToken(token)); err != nil {
		t.Fatal(err)
	}
	n.until(func() bool { return e.Ready() == nil })
	return n
}

// until waits for something that others do, on a machine that may be busy.
func (n *node) until(done func() bool) {
	n.t.Helper()
	for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatal("it did not come about within 60 s")
		}
	}
}

// timer makes one that is due in an hour.
func (n *node) timer(app, name, path string) *client.Timer {
	n.t.Helper()
	r, err := n.api.Create(n.t.Context(), client.Definition{
		App: app, Name: name, Schedule: client.Schedule{Every: time.Hour},
		Callback: client.Callback{URL: "http://target.test" + path},
		Retry:    client.Retry{MaxAttempts: 2, Backoff: time.Millisecond},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return &r.Timer
}

// run runs a timer now, and waits until its task has a final status.
func (n *node) run(id string) *client.Task {
	n.t.Helper()
	key, err := n.api.Run(n.t.Context(), id)
	if err != nil {
		n.t.Fatal(err)
	}
	var t *client.Task
	n.until(func() bool {
		if t, err = n.api.Task(n.t.Context(), key); err != nil {
			n.t.Fatal(err)
		}
		return !t.Ended.IsZero()
	})
	return t
}

// visitor is a browser without scripts.
type visitor struct {
	*node
	http *http.Client
}

func (n *node) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return &visitor{n, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn is a visitor with a token.
func (n *node) signedIn(token string) *visitor {
	n.t.Helper()
	v := n.visitor()
	if a := v.post("/sign-in", url.Values{"token": {token}}); a.status != http.StatusSeeOther {
		n.t.Fatalf("signing in: %d %s", a.status, a.body)
	}
	return v
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (v *visitor) do(method, path, body string, headers ...string) answer {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	p, err := v.http.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer p.Body.Close()
	b, err := io.ReadAll(p.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer{p.StatusCode, p.Header, string(b)}
}

func (v *visitor) get(path string, headers ...string) answer {
	v.t.Helper()
	return v.do(http.MethodGet, path, "", headers...)
}

var csrfInput = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf is the token of the forms on the visitor's pages.
func (v *visitor) csrf() string {
	v.t.Helper()
	a := v.get("/")
	if a.status == http.StatusSeeOther {
		a = v.get("/sign-in")
	}
	m := csrfInput.FindStringSubmatch(a.body)
	if m == nil {
		v.t.Fatalf("no form on the page: %d %s", a.status, a.body)
	}
	return m[1]
}

// post sends a form as a page of ours does.
func (v *visitor) post(path string, form url.Values) answer {
	v.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set("csrf", v.csrf())
	return v.do(http.MethodPost, path, form.Encode(), "Sec-Fetch-Site", "same-origin")
}
