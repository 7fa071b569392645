package bench

import (
	"regexp"
	"syscall"
	"testing"
	"time"

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
	x.missing(t)
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
	x.missing(t)
}

// TestMySQLGoesBack restores MySQL as it was 5 s before, under a server that fires: the server
// ends, and its next start repeats no call.
func TestMySQLGoesBack(t *testing.T) {
	beside(t)
	x := startTakeover(t)
	restore := x.mysql.Snapshot()
	time.Sleep(5 * time.Second)
	restore()
	x.awaitEnd(x.owner)
	x.owner.start()
	time.Sleep(2 * time.Second)
	x.missing(t)
	x.mu.Lock()
	defer x.mu.Unlock()
	again := 0
	for _, as := range x.arrivals {
		again += len(repeats(as))
	}
	if again > 0 {
		t.Errorf("%d calls came again", again)
	}
}

// takeover is a load on servers that take one another over. The first signs its calls
// with one secret, the second with two and so on, so that the receiver knows them apart.
type takeover struct {
	t    *testing.T
	args []string
	*calls
	mysql *servertest.Server
	owner *server
	all   []*server
}

type server struct {
	*process
	n int
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// startTakeover starts the first server, with 200 calls a second, half of them at_most_once.
func startTakeover(t *testing.T) *takeover {
	x := &takeover{t: t, calls: receiveCalls(t), mysql: servertest.MariaDB(t)}
	x.args = []string{"--mysql-dsn", x.mysql.DSN("xtimer"), "--redis-addr", servertest.Redis(t).Addr()}
	x.succeed()

	x.from = time.Now().Truncate(200 * time.Millisecond).Add(2 * time.Second)
	x.create(t, x.owner, 40)
	time.Sleep(time.Until(x.from.Add(3 * time.Second)))
	return x
}

var waitedFor = regexp.MustCompile(`took the timers over.*waited"?[=:]"?([0-9.a-z]+)`)

// succeed starts a server that takes over from the owner, and reports whether that one
// has handed over: within the time that the new one waits.
func (x *takeover) succeed() (handedOver bool) {
	x.t.Helper()
	n := len(x.all)
	began := time.Now()
	x.owner = &server{process: startProcess(x.t, append(signsAs(x.t, n), x.args...)...), n: n}
	x.all = append(x.all, x.owner)
	var waited time.Duration
	if m := waitedFor.FindStringSubmatch(x.owner.log.String()); m != nil {
		waited, _ = time.ParseDuration(m[1])
	}
	x.t.Logf("server %d was ready after %v, %v of them for the former one", n, round(time.Since(began)), round(waited))
	return waited < 3*time.Second
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

// judge looks at the last takeover: whether the former server called after the new one
// did, and, where it handed over, whether both called one due.
func (x *takeover) judge(handedOver bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.owner.n
	var first time.Time // of the new one
	for _, a := range x.order {
		if a.by == n && (first.IsZero() || a.at.Before(first)) {
			first = a.at
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
