package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xtimer/cmd/xtimer/exit"
	"xtimer/engine"
	"xtimer/tier/servertest"
)

// TestNodeIsKilled kills one of three nodes: the other nodes make the calls of its timers.
//
// XTIMER_NODE_FAULTS is how often; then the first calls must come within 3 s too.
func TestNodeIsKilled(t *testing.T) {
	besideAsCluster(t)
	x := startNodes(t, 3)
	for i := range setting("XTIMER_NODE_FAULTS", 2) {
		n := x.all[i%len(x.all)]
		of := x.timersOf(n)
		killed := time.Now()
		n.kill()
		x.taken("kill", n, of, killed)
		n.start()
		x.balance()
	}
	x.judge()
}

// TestNodeIsStopped stops one of three nodes with SIGSTOP. Its timers are called by the other
// nodes, and by the stopped one no more.
func TestNodeIsStopped(t *testing.T) {
	besideAsCluster(t)
	x := startNodes(t, 3)
	for i := range setting("XTIMER_NODE_FAULTS", 1) {
		n := x.all[i%len(x.all)]
		of := x.timersOf(n)
		// All is due at full fifths of a second: halfway no call lies between the last look
		// at the lease and its first byte.
		time.Sleep(100*time.Millisecond - time.Duration(time.Now().UnixNano())%(200*time.Millisecond) + 200*time.Millisecond)
		stopped := time.Now()
		n.signal(syscall.SIGSTOP)
		x.taken("stop", n, of, stopped)
		n.signal(syscall.SIGCONT)
		resumed := time.Now()
		select {
		case <-n.done:
			if code := n.cmd.ProcessState.ExitCode(); code != exit.StatusTakenOver {
				t.Errorf("the stopped node ended with %d", code)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the stopped node has not ended")
		}
		if c := x.callsOf(n, resumed); c > 0 {
			t.Errorf("%d calls by the stopped node after it went on, the last %v later", c, x.last.Sub(resumed))
		}
		n.start()
		x.balance()
	}
	x.judge()
}

// TestNodesRoll restarts each of three nodes with SIGTERM: the node gives its shards to the
// others, and gets its part back. Nothing is called twice, and nothing more than a second late.
func TestNodesRoll(t *testing.T) {
	besideAsCluster(t)
	x := startNodes(t, 3)
	from := time.Now()
	for range setting("XTIMER_NODE_FAULTS", 1) {
		for _, n := range x.all {
			ended := time.Now()
			if code := n.terminate(); code != 0 {
				t.Errorf("node %d ended with %d", n.n, code)
			}
			t.Logf("node %d ended %v after SIGTERM", n.n, round(time.Since(ended)))
			n.start()
			x.balance()
		}
	}
	time.Sleep(time.Second)
	again, late := x.judge(), x.latest(from)
	t.Logf("the latest call was %v late", round(late))
	if again > 0 {
		t.Errorf("%d calls came again", again)
	}
	if setting("XTIMER_NODE_FAULTS", 0) > 0 && late > time.Second {
		t.Errorf("a call was %v late", late)
	}
}

// TestNodesDelete deletes timers at any of three nodes while they fire: after the answer
// "cancelled" no call of the timer arrives, from any node, and after "in_flight" none of a
// later due. A call in flight may arrive seconds later, if the receiver has no processor.
//
// XTIMER_NODE_DELETES is how many, 200 at a time.
func TestNodesDelete(t *testing.T) {
	besideAsCluster(t)
	x := startNodes(t, 3)
	var took []time.Duration
	for range max(setting("XTIMER_NODE_DELETES", 200)/200, 1) {
		from := len(x.ids)
		for _, s := range x.all {
			x.create(t, s, 67)
		}
		ids := x.ids[from:]
		time.Sleep(time.Second)
		answered := make([]time.Time, len(ids))
		running := make([]bool, len(ids)) // a call had begun before the delete was answered
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < len(ids); i += 8 {
					began := time.Now()
					q, _ := http.NewRequest(http.MethodDelete, x.all[(i*7+w)%3].url("/v1/timers/"+ids[i]), nil)
					r, err := client.Do(q)
					if err != nil {
						t.Error(err)
						return
					}
					answered[i] = time.Now()
					answer, _ := io.ReadAll(r.Body)
					r.Body.Close()
					if r.StatusCode != 200 {
						t.Errorf("a delete got %d %s", r.StatusCode, answer)
					}
					running[i] = bytes.Contains(answer, []byte(`"in_flight"`))
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		x.mu.Lock()
		for key, as := range x.arrivals {
			timer, due, _ := strings.Cut(key, "_")
			i := slices.Index(ids, timer)
			if i < 0 || answered[i].IsZero() {
				continue
			}
			ms, _ := strconv.ParseInt(due, 10, 64)
			for _, a := range as {
				if a.at.After(answered[i]) && (!running[i] || time.UnixMilli(ms).After(answered[i])) {
					t.Errorf("%s was called by %d, %v after the answer to its delete, in flight then: %v", key, a.by, a.at.Sub(answered[i]), running[i])
				}
			}
		}
		x.mu.Unlock()
		x.ids = x.ids[:from]
	}
	slices.Sort(took)
	t.Logf("%d deletes at any node: p50 %v, p99 %v, max %v", len(took), round(took[len(took)/2]), round(took[len(took)*99/100]), round(took[len(took)-1]))
}

// nodes are servers that share a MariaDB and a Redis, with 60 timers between them.
type nodes struct {
	t *testing.T
	*calls
	all []*server
}

func startNodes(t *testing.T, n int) *nodes {
	t.Helper()
	x := &nodes{t: t, calls: receiveCalls(t)}
	tiers := []string{"--mysql-dsn", servertest.MariaDB(t).DSN("xtimer"), "--redis-addr", servertest.Redis(t).Addr()}
	for i := range n {
		args := append(signsAs(t, i), append(tiers, "--cluster", "--node", fmt.Sprint("node-", i))...)
		x.all = append(x.all, &server{process: startProcess(t, args...), n: i})
	}
	x.balance()
	x.from = time.Now().Truncate(200 * time.Millisecond).Add(3 * time.Second)
	for _, s := range x.all {
		x.create(t, s, 20)
	}
	time.Sleep(time.Until(x.from.Add(2 * time.Second)))
	return x
}

// balance waits until each node has its part of the shards.
func (x *nodes) balance() {
	x.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if x.isBalanced() {
			return
		}
	}
	x.t.Fatalf("the nodes own %d shards", x.owned())
}

func (x *nodes) isBalanced() bool {
	sum, least := 0, engine.Shards
	for _, n := range x.owned() {
		sum, least = sum+n, min(least, n)
	}
	return sum == engine.Shards && least >= engine.Shards/len(x.all)
}

// owned is how many shards each node has.
func (x *nodes) owned() (owned []int) {
	for _, s := range x.all {
		n, _ := s.askMetric("xtimer_shards_owned")
		owned = append(owned, int(n))
	}
	return owned
}

// timersOf are those of which a node has made the last call.
func (x *nodes) timersOf(n *server) map[string]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := map[string]bool{}
	for _, a := range x.order {
		timer, _, _ := strings.Cut(a.key, "_")
		of[timer] = a.by == n.n
	}
	return of
}

// taken waits until another node has called each timer of a node that was struck, for 20 s at
// most, and tells how long that took and how late the other timers were meanwhile.
func (x *nodes) taken(how string, n *server, of map[string]bool, struck time.Time) {
	x.t.Helper()
	first := map[string]time.Duration{}
	late, seen := time.Duration(0), 0
	for deadline := struck.Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		x.mu.Lock()
		for ; seen < len(x.order); seen++ {
			a := x.order[seen]
			timer, due, _ := strings.Cut(a.key, "_")
			ms, _ := strconv.ParseInt(due, 10, 64)
			switch d := a.at.Sub(struck); {
			case d < 0 || a.by == n.n:
			case !of[timer]:
				late = max(late, a.at.Sub(time.UnixMilli(ms)))
			case first[timer] == 0 || d < first[timer]:
				first[timer] = d
			}
		}
		x.mu.Unlock()
		waits := 0
		for timer, is := range of {
			if is && first[timer] == 0 {
				waits++
			}
		}
		if waits == 0 {
			break
		}
	}
	firsts := []time.Duration{0}
	for timer, is := range of {
		if is {
			firsts = append(firsts, first[timer])
			if first[timer] == 0 {
				x.t.Errorf("timer %s was not called for 20 s after the %s", timer, how)
			}
		}
	}
	most := slices.Max(firsts)
	x.t.Logf("%s of node %d: the other nodes called its %d timers again within %v; the others' calls were at most %v late", how, n.n, len(firsts)-1, round(most), round(late))
	if setting("XTIMER_NODE_FAULTS", 0) > 0 && most > 3*time.Second {
		x.t.Errorf("the first call came %v after the %s", most, how)
	}
}

// judge looks at all calls: none is missing or early, what comes again is marked, and what is
// at_most_once is called once. It returns how many calls came again.
func (x *nodes) judge() (again int) {
	x.t.Helper()
	x.missing(x.t)
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, as := range x.arrivals {
		_, due, _ := strings.Cut(key, "_")
		ms, _ := strconv.ParseInt(due, 10, 64)
		if as[0].at.Before(time.UnixMilli(ms)) {
			x.t.Errorf("%s was called %v early", key, time.UnixMilli(ms).Sub(as[0].at))
		}
		if len(as) > 1 && x.isOnce(key) {
			x.t.Errorf("%s is at most once, and was called by %d and by %d", key, as[0].by, as[1].by)
		}
		for _, a := range repeats(as) {
			if again++; !a.redelivered {
				x.t.Errorf("%s came again by %d after %d, unmarked", key, a.by, as[0].by)
			}
		}
	}
	x.t.Logf("%d dues were called, %d calls came again", len(x.arrivals), again)
	return again
}

// latest is how late the latest call is of those that were due since an instant.
func (x *nodes) latest(from time.Time) (late time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, as := range x.arrivals {
		_, due, _ := strings.Cut(key, "_")
		ms, _ := strconv.ParseInt(due, 10, 64)
		if at := time.UnixMilli(ms); at.After(from) {
			late = max(late, as[0].at.Sub(at))
		}
	}
	return late
}
