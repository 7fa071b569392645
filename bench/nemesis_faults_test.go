package bench

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fault is what is done to a node, or (all) to a server that all nodes share.
type fault struct {
	name  string
	all   bool
	alone bool // no other fault comes at the same time
	lasts time.Duration
	begin func(x *nemesis, s *server)
	end   func(x *nemesis, s *server) // nil: links heal, and nodes are started, by themselves
	// repeats is how many calls may come again: of 100 a second and a node, those of the last
	// 50 ms, and those in flight.
	repeats  int
	noMirror bool // what a node has finished is not in Redis: a death at the same time repeats more
	goesBack bool // what MySQL has committed is lost
	asks     bool // its end needs MySQL, as a request or the end of a process does: it comes when the links are healed
}

// ofADeath is how many calls may come again after a death. A busy machine mirrors later.
const ofADeath = 25

// ofALostMirror is how many more: those of the last 2.5 s.
const ofALostMirror = 250

var faults = []fault{
	{name: "killed", lasts: 0, begin: killNode, repeats: ofADeath},
	{name: "killed, away for 5 s", lasts: 5 * time.Second, begin: killNode, repeats: ofADeath},
	{name: "stopped for 0.5 s", lasts: 500 * time.Millisecond, begin: freeze, end: thaw},
	{name: "stopped for 1.5 s", lasts: 1500 * time.Millisecond, begin: freeze, end: thaw, repeats: ofADeath},
	{name: "stopped for 3.6 s", lasts: 3600 * time.Millisecond, begin: freeze, end: thaw, repeats: ofADeath},
	{name: "stopped for 12 s", lasts: 12 * time.Second, begin: freeze, end: thaw, repeats: ofADeath},
	{name: "SIGTERM", lasts: time.Second, begin: func(x *nemesis, s *server) { s.signal(syscall.SIGTERM) }, end: func(x *nemesis, s *server) {
		if code := s.awaitEnd(); code != 0 {
			x.t.Errorf("node %d ended with %d", s.n, code)
		}
	}, asks: true},
	{name: "SIGTERM, and killed while it gives its shards", lasts: time.Second, begin: func(x *nemesis, s *server) {
		s.signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
		s.kill()
	}, repeats: ofADeath},
	{name: "all nodes are killed", all: true, alone: true, begin: func(x *nemesis, s *server) {
		for _, s := range x.all {
			s.kill()
		}
	}, repeats: 3 * ofADeath},
	{name: "drained", lasts: 5 * time.Second, begin: administer("POST", "drain"), end: administer("DELETE", "drain"), asks: true},
	{name: "evicted", lasts: 2 * time.Second, begin: administer("POST", "evict"), repeats: ofADeath},
	{name: "another process has its name", alone: true, lasts: 3 * time.Second, begin: func(x *nemesis, s *server) { x.double(s, false) }, end: refused},
	{name: "a copy of it is started", alone: true, lasts: 3 * time.Second, begin: func(x *nemesis, s *server) { x.double(s, true) }, end: refused},
	{name: "a node cannot reach MySQL", lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.links[s.n].mysql.Cut() }, repeats: ofADeath},
	{name: "a node's link to MySQL hangs", lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.links[s.n].mysql.Hang() }, repeats: ofADeath},
	{name: "a node's answers of MySQL are lost", lasts: 4 * time.Second, begin: func(x *nemesis, s *server) { x.links[s.n].mysql.SwallowReplies(true) }, repeats: ofADeath},
	{name: "a node cannot reach Redis", lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.links[s.n].redis.Cut() }, noMirror: true},
	{name: "a node's link to Redis hangs", lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.links[s.n].redis.Hang() }, noMirror: true},
	{name: "a node cannot be reached", lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.links[s.n].node.Hang() }},
	{name: "MySQL is killed", all: true, lasts: 2 * time.Second, begin: func(x *nemesis, s *server) { x.mysql.Kill() }, end: startMySQL, repeats: ofADeath},
	{name: "MySQL is stopped for 5 s", all: true, lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.mysql.Pause() }, end: func(x *nemesis, s *server) { x.mysql.Resume() }, repeats: ofADeath},
	{name: "MySQL is slow", all: true, lasts: 6 * time.Second, begin: func(x *nemesis, s *server) {
		for _, l := range x.links {
			l.mysql.Delay(150 * time.Millisecond)
		}
	}, repeats: ofADeath},
	{name: "MySQL is too slow for beats", all: true, lasts: 6 * time.Second, begin: func(x *nemesis, s *server) {
		for _, l := range x.links {
			l.mysql.Delay(700 * time.Millisecond)
		}
	}, repeats: ofADeath},
	{name: "the fences are locked", all: true, alone: true, begin: func(x *nemesis, s *server) {
		x.mysql.Do("USE xtimer; BEGIN; SELECT COUNT(*) FROM fences FOR UPDATE; DO SLEEP(3); ROLLBACK;")
	}, repeats: ofADeath},
	{name: "Redis is emptied", all: true, begin: func(x *nemesis, s *server) { x.redis.Do("FLUSHALL") }, noMirror: true},
	{name: "Redis is killed", all: true, lasts: 3 * time.Second, begin: func(x *nemesis, s *server) { x.redis.Kill() }, end: func(x *nemesis, s *server) { x.redis.Start() }, noMirror: true},
	{name: "Redis is stopped for 5 s", all: true, lasts: 5 * time.Second, begin: func(x *nemesis, s *server) { x.redis.Pause() }, end: func(x *nemesis, s *server) { x.redis.Resume() }, noMirror: true},
	{name: "Redis goes back", all: true, alone: true, lasts: 5 * time.Second, begin: func(x *nemesis, s *server) {
		x.restore = x.redis.Snapshot()
	}, end: func(x *nemesis, s *server) { x.restore() }, noMirror: true},
	{name: "MySQL goes back", all: true, alone: true, goesBack: true, lasts: 8 * time.Second, begin: func(x *nemesis, s *server) {
		x.restore = x.mysql.Snapshot()
	}, end: func(x *nemesis, s *server) { x.restore() }, repeats: ofADeath},
}

func killNode(_ *nemesis, s *server) { s.kill() }
func freeze(_ *nemesis, s *server)   { s.signal(syscall.SIGSTOP) }
func thaw(_ *nemesis, s *server)     { s.signal(syscall.SIGCONT) }

func startMySQL(x *nemesis, _ *server) { x.mysql.Start() }

// administer asks a node that nothing strikes to have the node give its shards away (drain), or to end it (evict).
// Where the database is slow the answer is 503, and a node that has ended gives none: a drain is asked for again then, so
// that each ends.
func administer(method, what string) func(*nemesis, *server) {
	return func(x *nemesis, s *server) {
		for again := time.Now().Add(20 * time.Second); ; time.Sleep(time.Second) {
			q, _ := http.NewRequest(method, x.spared.url(fmt.Sprintf("/v1/cluster/nodes/node-%d/%s", s.n, what)), nil)
			r, err := client.Do(q)
			answered := err == nil && r.StatusCode != http.StatusServiceUnavailable
			switch {
			case err != nil:
				x.t.Logf("the %s: %v", what, err)
			case r.StatusCode/100 != 2:
				x.t.Logf("the %s got %d", what, r.StatusCode)
			}
			if err == nil {
				r.Body.Close()
			}
			if what != "drain" || answered || time.Now().After(again) {
				return
			}
			x.revive(x.spared)
		}
	}
}

// double starts another process under the name of a node: with a data directory of its own, or
// with a copy of the node's, as of a cloned volume. The node stands still while its files are copied: else the copy
// may lack the end of the journal, and is refused for that.
func (x *nemesis) double(s *server, copied bool) {
	x.t.Helper()
	x.twin = newProcess(x.t, binary, s.args...)
	if copied {
		s.signal(syscall.SIGSTOP)
		err := os.CopyFS(x.twin.dir, os.DirFS(s.dir))
		s.signal(syscall.SIGCONT)
		if err != nil {
			x.t.Fatalf("cannot copy the data of node %d: %v", s.n, err)
		}
	}
	x.twin.launch()
}

// refused wants that the other process has ended, and has said why; the node goes on.
func refused(x *nemesis, s *server) {
	x.t.Helper()
	select {
	case <-x.twin.done:
	case <-time.After(20 * time.Second):
	}
	x.twin.kill()
	if log := x.twin.log.String(); !strings.Contains(log, "has another process that beats") {
		x.t.Errorf("a second process has the name of node %d, and says:\n%s", s.n, log)
	}
	select {
	case <-s.done:
		x.t.Errorf("node %d has ended beside a second process of its name", s.n)
	default:
	}
}

func (x *nemesis) fault(name string) *fault {
	for i := range faults {
		if faults[i].name == name {
			return &faults[i]
		}
	}
	x.t.Fatalf("there is no fault %q", name)
	return nil
}

// TestFaultsAreListed: RELIABILITY.md says of which failure each fault is a trial.
func TestFaultsAreListed(t *testing.T) {
	b, err := os.ReadFile("RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Failures of a cluster, each as a trial\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i := range faults {
		if !strings.Contains(section, "`"+faults[i].name+"`") {
			t.Errorf("the page does not name the fault %q", faults[i].name)
		}
	}
}
