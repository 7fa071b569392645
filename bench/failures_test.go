package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/bench/target"
)

// refuser answers each call, or each batch of calls, with 400, which is final, and counts the
// tasks.
type refuser struct {
	url string

	mu    sync.Mutex // guards what follows
	tasks int
	last  time.Time
}

func startRefuser(t testing.TB) *refuser {
	t.Helper()
	r := &refuser{}
	r.url = serveHandler(t, func(c *fasthttp.RequestCtx) {
		n, err := strconv.Atoi(string(c.Request.Header.Peek("X-Xtimer-Tasks")))
		if err != nil {
			n = 1
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tasks, r.last = r.tasks+n, time.Now()
		c.SetStatusCode(400)
	})
	return r
}

// serveHandler serves a handler on loopback until the test ends.
func serveHandler(t testing.TB, handle fasthttp.RequestHandler) (url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &fasthttp.Server{Handler: handle, NoDefaultDate: true, NoDefaultServerHeader: true}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Shutdown() })
	return "http://" + ln.Addr().String() + "/call"
}

// inbox is a channel of alerts: it takes messages, and keeps when they came and how many
// incidents they are about.
type inbox struct {
	url string

	mu    sync.Mutex // guards what follows
	at    []time.Time
	about int
}

func startInbox(t testing.TB) *inbox {
	t.Helper()
	x := &inbox{}
	x.url = serveHandler(t, func(c *fasthttp.RequestCtx) {
		var m struct{ Count int }
		if json.Unmarshal(c.PostBody(), &m) != nil {
			c.SetStatusCode(400)
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.at, x.about = append(x.at, time.Now()), x.about+max(m.Count, 1)
	})
	return x
}

// storm is what came of failures at once, and of a healthy app beside them.
type storm struct {
	took  time.Duration // until the last failure
	spent time.Duration // processor time of the server until then
	p99   time.Duration // of the lateness of the healthy app
	calls int           // to it
}

// failures is a server whose timers fail, and one whose timers do not.
type failures struct {
	t       *testing.T
	p       *process
	healthy traffic
	n, dues int // how many fail in a storm, and how often each timer does
}

// storm lets timers of an app fail, and returns when all calls were made.
func (f *failures) storm(app string) (s storm) {
	f.t.Helper()
	r, timers := startRefuser(f.t), f.n/f.dues
	from := time.Now().Add(time.Second + time.Duration(timers)*400*time.Microsecond).Truncate(time.Millisecond)
	for made := 0; made < timers; {
		var lines bytes.Buffer
		for range min(1000, timers-made) {
			made++
			fmt.Fprintf(&lines, `{"app":%q,"name":"t%d","labels":{"team":"a"},"schedule":{"every":"1s","jitter":"999ms","start_at":%d,"end_at":%d},"callback":{"url":%q,"batch":{"max":500}}}`+"\n",
				app, made, from.UnixMilli(), from.UnixMilli()+int64(f.dues)*1000-500, r.url)
		}
		if _, err := createBatch(f.p.url(""), lines.Bytes()); err != nil {
			f.t.Fatal(err)
		}
	}
	if time.Now().After(from) {
		f.t.Log("creating took longer than the lead: the first calls were late")
	}
	time.Sleep(time.Until(from))
	f.healthy.target.Reset()
	spent := f.p.cpu()
	for deadline := from.Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		tasks, last := r.tasks, r.last
		r.mu.Unlock()
		if tasks >= f.n || time.Now().After(deadline) {
			if s.took = last.Sub(from); tasks != f.n {
				f.t.Fatalf("%d calls of %s were made, want %d", tasks, app, f.n)
			}
			s.spent = f.p.cpu() - spent
			break
		}
	}
	f.healthy.target.Look(func(l *target.Log) {
		s.p99, s.calls = l.Late(.99), l.Total
		if l.Early > 0 {
			f.t.Errorf("%d calls were early", l.Early)
		}
	})
	return s
}

// ask asks the API, and decodes the answer.
func (f *failures) ask(method, path, body string, out any) {
	f.t.Helper()
	q, err := http.NewRequest(method, f.p.url(path), strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := client.Do(q)
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode/100 != 2 {
		f.t.Fatalf("%s %s: %d %s, %v", method, path, r.StatusCode, b, err)
	}
	if err := json.Unmarshal(b, out); err != nil {
		f.t.Fatal(err)
	}
}

// counted is how many incidents an app has, and how many failures they count.
func (f *failures) counted(app string) (incidents, count int) {
	f.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Incidents  []struct{ Count int }
			NextCursor string `json:"next_cursor"`
		}
		f.ask("GET", "/v1/alerts/incidents?limit=1000&app="+app+cursor, "", &page)
		for _, i := range page.Incidents {
			incidents, count = incidents+1, count+i.Count
		}
		if page.NextCursor == "" {
			return incidents, count
		}
		cursor = "&cursor=" + page.NextCursor
	}
}

// noisy is a storm of an app that has a rule of alerts and two channels, one of which hangs. It
// returns when each failure is counted in an incident, and checks what was told.
func (f *failures) noisy(app string) storm {
	f.t.Helper()
	told := startInbox(f.t)
	var done struct{}
	for name, url := range map[string]string{"ops": told.url, "stuck": listenMute(f.t).URL} {
		f.ask("PUT", "/v1/apps/"+app+"/alerts/channels/"+name, fmt.Sprintf(`{"kind":"webhook","url":%q,"per_minute":18}`, url), &done)
	}
	f.ask("PUT", "/v1/apps/"+app+"/alerts/rules/r", `{"on":["failed"],"match":{"label":"team=a"},"channels":["stuck","ops"],"repeat":"0s"}`, &done)
	s, ended := f.storm(app), time.Now()
	incidents, count := f.counted(app)
	for pause := 100 * time.Millisecond; count < f.n && time.Since(ended) < 2*time.Minute; pause = min(2*pause, 2*time.Second) {
		time.Sleep(pause)
		incidents, count = f.counted(app)
	}
	if count != f.n {
		f.t.Errorf("%d failures are counted, want %d", count, f.n)
	}
	counted := time.Since(ended)
	if f.n >= full {
		time.Sleep(65 * time.Second) // the digest of the first minute
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	f.t.Logf("counted after %v more, in %d incidents; %d messages about %d of them; %d MB resident",
		round(counted), incidents, len(told.at), told.about, f.p.rss()>>20)
	for i := 18; i < len(told.at); i++ {
		if told.at[i].Sub(told.at[i-18]) < 59*time.Second { // the way to the channel may differ
			f.t.Errorf("19 messages came in %v", told.at[i].Sub(told.at[i-18]))
		}
	}
	if len(told.at) == 0 || f.n >= full && told.about != incidents {
		f.t.Errorf("%d of %d incidents were told", told.about, incidents)
	}
	return s
}

// full is how many failures make a long trial.
const full = 100_000

// TestFailures lets the timers of an app fail at once beside a healthy app: without rules of
// alerts, and with a rule that tells two channels, one of which hangs. Each failure is counted in
// an incident, no minute has more messages than the channel takes, and the healthy app and the
// failing one are called about as they are without alerts: by how much they differ is logged, and
// says something on a machine that does nothing else.
//
// XTIMER_FAILURES is how many failures there are, of a long trial within 10 s. A long trial also
// waits until each incident was told, and has pairs of storms, without alerts and with, in turns: the
// first storm of all is not counted, for it finds an empty store.
func TestFailures(t *testing.T) {
	beside(t)
	f := failures{t: t, n: setting("XTIMER_FAILURES", 6000), p: startProcess(t), dues: 2}
	pairs := 1
	f.healthy = traffic{app: "healthy", target: listen(t, 0), rate: 100}
	if f.n >= full {
		f.dues, pairs, f.healthy.rate = 10, 5, 1000
	}
	f.n -= f.n % f.dues
	f.healthy.create(t, f.p, 200*time.Millisecond)
	if f.n >= full {
		first := f.storm("first")
		t.Logf("first: %v, the healthy app: p99 %v", round(first.took), round(first.p99))
	}
	var took, spent, late []float64
	for i := range pairs {
		var without, with storm
		own := startPulse()
		for j := range 2 {
			if i%2 == j {
				without = f.storm(fmt.Sprint("calm-", i))
			} else {
				with = f.noisy(fmt.Sprint("noisy-", i))
			}
		}
		t.Logf("%d failures in %v without alerts, %v with; %v and %v of processor time; the healthy app: p99 %v of %d calls, and %v of %d",
			f.n, round(without.took), round(with.took), round(without.spent), round(with.spent), round(without.p99), without.calls, round(with.p99), with.calls)
		if bar := without.took*3/2 + 5*time.Second; with.took > bar {
			t.Errorf("the failing app took %v with alerts, %v without", with.took, without.took)
		}
		took = append(took, with.took.Seconds()/without.took.Seconds())
		spent = append(spent, with.spent.Seconds()/without.spent.Seconds())
		late = append(late, with.p99.Seconds()/without.p99.Seconds())
		onTime(t, "the healthy app beside alerts", with.p99, 2*without.p99+2*time.Second, own.end())
	}
	t.Logf("with alerts to without, medians: %.3f of the time, %.3f of the processor time, %.3f of the healthy app's p99", median(took), median(spent), median(late))
}
