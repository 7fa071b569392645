package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/tier/servertest"
)

// TestTakeover starts a second server over the MySQL and the Redis of a first one that
// fires, and then a third: the former ends, no due is missing, and where it could hand
// over, as a machine that is not too busy lets it, none is called by both.
//
// XTIMER_TAKEOVERS is how often, also of a stopped one.
func TestTakeover(t *testing.T) {
	beside(t)
	x := startTakeover(t)
	for range setting("XTIMER_TAKEOVERS", 2) {
		former := x.owner
		handedOver := x.succeed()
		x.awaitEnd(former)
		time.Sleep(time.Second)
		x.judge(handedOver)
	}
	x.missing()
}

// TestTakeoverOfStopped takes a server over that was stopped with SIGSTOP. When it goes
// on it makes no call.
func TestTakeoverOfStopped(t *testing.T) {
	beside(t)
	x := startTakeover(t)
	for range setting("XTIMER_TAKEOVERS", 1) {
		former := x.owner
		// All is due at full fifths of a second: halfway no call lies between the last look
		// at the ownership and its first byte.
		time.Sleep(100*time.Millisecond - time.Duration(time.Now().UnixNano())%(200*time.Millisecond) + 200*time.Millisecond)
		former.signal(syscall.SIGSTOP)
		stopped := time.Now()
		x.succeed()
		time.Sleep(max(time.Second, 3600*time.Millisecond-time.Since(stopped)))
		former.signal(syscall.SIGCONT)
		resumed := time.Now()
		x.awaitEnd(former)
		time.Sleep(time.Second)
		if n := x.callsOf(former, resumed); n > 0 {
			t.Errorf("%d calls by the former server after it went on, the last %v later", n, x.last.Sub(resumed))
		}
		x.judge(false)
	}
	x.missing()
}

// takeover is a load on servers that take one another over. The first signs its calls
// with one secret, the second with two and so on, so that the receiver knows them apart.
type takeover struct {
	t     *testing.T
	args  []string
	url   string
	owner *server
	all   []*server
	ids   []string
	from  time.Time // the first due of all timers

	mu       sync.Mutex
	arrivals map[string][]arrival // by key
	last     time.Time            // of those that callsOf counted
}

type server struct {
	*process
	n int
}

// arrival is a call by the server n.
type arrival struct {
	by int
	at time.Time
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// startTakeover starts the first server, with 200 calls a second, half of them at_most_once.
func startTakeover(t *testing.T) *takeover {
	x := &takeover{t: t, arrivals: map[string][]arrival{}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.url = "http://" + ln.Addr().String() + "/call"
	srv := &fasthttp.Server{Handler: x.take, NoDefaultDate: true, NoDefaultServerHeader: true}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Shutdown() })
	x.args = []string{"--mysql-dsn", servertest.MariaDB(t).DSN("xtimer"), "--redis-addr", servertest.Redis(t).Addr()}
	x.succeed()

	x.from = time.Now().Truncate(200 * time.Millisecond).Add(2 * time.Second)
	var lines bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"200ms","start_at":%d},"misfire":{"policy":"all"},"delivery":%q,"callback":{"url":%q,"timeout":"5s"}}`+"\n",
			i, x.from.UnixMilli(), []string{"at_least_once", "at_most_once"}[i%2], x.url)
	}
	if x.ids, err = createBatch(x.owner.url(""), lines.Bytes()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(x.from.Add(3 * time.Second)))
	return x
}

var waitedFor = regexp.MustCompile(`took the timers over.*waited"?[=:]"?([0-9.a-z]+)`)

// succeed starts a server that takes over from the owner, and reports whether that one
// has handed over: within the time that the new one waits.
func (x *takeover) succeed() (handedOver bool) {
	x.t.Helper()
	n := len(x.all)
	config := filepath.Join(x.t.TempDir(), "xtimer.yaml")
	secret := "whsec_" + strings.Repeat("A", 32) + "," // 24 bytes in base64
	if err := os.WriteFile(config, []byte("apps: {bench: {webhook_secrets: ["+strings.Repeat(secret, n+1)+"]}}\n"), 0o600); err != nil {
		x.t.Fatal(err)
	}
	began := time.Now()
	x.owner = &server{process: startProcess(x.t, append([]string{"--config", config}, x.args...)...), n: n}
	x.all = append(x.all, x.owner)
	var waited time.Duration
	if m := waitedFor.FindStringSubmatch(x.owner.log.String()); m != nil {
		waited, _ = time.ParseDuration(m[1])
	}
	x.t.Logf("server %d was ready after %v, %v of them for the former one", n, round(time.Since(began)), round(waited))
	return waited < 3*time.Second
}

func (x *takeover) take(c *fasthttp.RequestCtx) {
	a := arrival{at: time.Now(), by: bytes.Count(c.Request.Header.Peek("webhook-signature"), []byte("v1,")) - 1}
	key := string(c.Request.Header.Peek("Idempotency-Key"))
	x.mu.Lock()
	x.arrivals[key] = append(x.arrivals[key], a)
	x.mu.Unlock()
}

// awaitEnd waits until a former server has ended, by itself and with an error.
func (x *takeover) awaitEnd(s *server) {
	x.t.Helper()
	select {
	case <-s.done:
		if code := s.cmd.ProcessState.ExitCode(); code != 1 {
			x.t.Errorf("server %d ended with %d", s.n, code)
		}
	case <-time.After(30 * time.Second):
		x.t.Fatalf("server %d has not ended", s.n)
	}
}

// callsOf counts the calls of a server since an instant.
func (x *takeover) callsOf(s *server, since time.Time) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, as := range x.arrivals {
		for _, a := range as {
			if a.by == s.n && a.at.After(since) {
				n++
				x.last = later(x.last, a.at)
			}
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// judge looks at the last takeover: whether the former server called after the new one
// did, and, where it handed over, whether both called one due.
func (x *takeover) judge(handedOver bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.owner.n
	var first time.Time // of the new one
	for _, as := range x.arrivals {
		for _, a := range as {
			if a.by == n && (first.IsZero() || a.at.Before(first)) {
				first = a.at
			}
		}
	}
	after, both, once := 0, 0, 0
	for key, as := range x.arrivals {
		by := map[int]bool{}
		for _, a := range as {
			by[a.by] = true
			if a.by == n-1 && a.at.After(first) {
				after++
			}
		}
		if by[n] && by[n-1] {
			if both++; x.isOnce(key) {
				once++
			}
		}
	}
	x.t.Logf("%d: %d dues called by both, %d of them at_most_once; %d calls by the former server after the first of the new one", n, both, once, after)
	if after > 0 || handedOver && both > 0 {
		x.t.Error("the promises do not hold")
	}
}

// isOnce reports whether a key is that of an at_most_once timer.
func (x *takeover) isOnce(key string) bool {
	timer, _, _ := strings.Cut(key, "_")
	return slices.Index(x.ids, timer)%2 == 1
}

// missing wants each due of at least once called.
func (x *takeover) missing() {
	until := time.Now().Truncate(200 * time.Millisecond)
	var missing int
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		missing = 0
		x.mu.Lock()
		for i, id := range x.ids {
			for due := x.from; i%2 == 0 && due.Before(until); due = due.Add(200 * time.Millisecond) {
				if len(x.arrivals[fmt.Sprintf("%s_%d", id, due.UnixMilli())]) == 0 {
					missing++
				}
			}
		}
		x.mu.Unlock()
		if missing == 0 || time.Now().After(deadline) {
			break
		}
	}
	if missing > 0 {
		x.t.Errorf("%d dues were not called", missing)
	}
}
