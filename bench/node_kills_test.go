package bench

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/tier/servertest"
)

// TestNodeKills kills one of three nodes again and again at 1,000 fires a second, of calls that
// take 20 ms. It asks for the bars of a kill: the other nodes call the timers of the dead one
// within 3 s, in the median of the kills within 2.3 s; at p99 their own calls are no later than 1.2 times
// what they are without a kill; what is called again was in flight or had ended in the last
// 50 ms, and is marked.
//
// XTIMER_NODE_KILLS is how often; without it the trial is skipped.
func TestNodeKills(t *testing.T) {
	kills := setting("XTIMER_NODE_KILLS", 0)
	if kills == 0 {
		t.Skip("XTIMER_NODE_KILLS is not set")
	}
	x := &killTrial{t: t, nodes: &nodes{t: t, calls: &calls{}}}
	x.begin(200)
	began := x.used(nil)
	time.Sleep(quietFor)
	quiet := x.lateness(x.from, time.Now(), nil)
	t.Logf("without a kill: %s", percentiles(quiet))
	x.idle = x.used(nil).since(began).times(afterKill.Seconds() / quietFor.Seconds())
	burst := x.burst(5)
	t.Logf("beside a burst of calls of another app: %s", percentiles(burst))
	for i := range kills {
		x.strike(x.all[i%len(x.all)])
	}
	x.end(quiet)
}

const (
	quietFor  = 60 * time.Second
	killPace  = 200 * time.Millisecond // of the timers
	callTakes = 20 * time.Millisecond
	mirrored  = 50 * time.Millisecond // how old a result may be that is not mirrored
	takenIn   = 3 * time.Second
	afterKill = takenIn + time.Second
)

// killTrial is the nodes, and each call in the order in which they came.
type killTrial struct {
	*nodes
	t        *testing.T
	receiver net.Addr
	servers  [2]*servertest.Server // MariaDB and Redis
	idle     processorTime         // without a kill, for as long as is looked at after a kill
	costs    processorTime         // after all kills
	mu       sync.Mutex
	log      []killCall
	died     []death
}

type killCall struct {
	timer       int // by the order of their names
	due         int64
	at          time.Time
	by          int
	redelivered bool
}

// death is a kill: of a node, at an instant, and the timers that the node called for before.
type death struct {
	by int
	at time.Time
	of map[int]bool
}

// processorTime is that of MariaDB, of Redis and of the nodes.
type processorTime [3]time.Duration

// used is the processor time so far, without that of a node that does not run.
func (x *killTrial) used(dead *server) (p processorTime) {
	p[0], p[1] = x.servers[0].CPU(), x.servers[1].CPU()
	for _, n := range x.all {
		if n != dead {
			p[2] += n.cpu()
		}
	}
	return p
}

func (p processorTime) since(o processorTime) processorTime {
	return processorTime{p[0] - o[0], p[1] - o[1], p[2] - o[2]}
}

func (p processorTime) times(f float64) processorTime {
	for i := range p {
		p[i] = time.Duration(float64(p[i]) * f)
	}
	return p
}

func (p processorTime) String() string {
	return fmt.Sprintf("MariaDB %.2f s, Redis %.2f s, nodes %.2f s", p[0].Seconds(), p[1].Seconds(), p[2].Seconds())
}

// begin starts three nodes, and makes so many timers, each of which is due 5 times a second.
func (x *killTrial) begin(timers int) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		x.t.Fatal(err)
	}
	x.receiver = ln.Addr()
	srv := &fasthttp.Server{Handler: x.take, NoDefaultDate: true, NoDefaultServerHeader: true}
	go srv.Serve(ln)
	x.t.Cleanup(func() { srv.Shutdown() })
	x.servers = [2]*servertest.Server{servertest.MariaDB(x.t), servertest.Redis(x.t)}
	tiers := []string{"--mysql-dsn", x.servers[0].DSN("xtimer"), "--redis-addr", x.servers[1].Addr()}
	for i := range 3 {
		args := append(signsAs(x.t, i), append(tiers, "--cluster", "--node", fmt.Sprint("node-", i))...)
		x.all = append(x.all, &server{process: startProcess(x.t, args...), n: i})
	}
	x.balance()
	x.from = time.Now().Truncate(killPace).Add(5 * time.Second)
	for n, s := range x.all {
		var lines bytes.Buffer
		for i := n; i < timers; i += len(x.all) {
			fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"200ms","start_at":%d},"misfire":{"policy":"all"},"delivery":%q,"callback":{"url":"http://%s/%d","timeout":"5s"}}`+"\n",
				i, x.first(i), []string{"at_least_once", "at_most_once"}[i%2], ln.Addr(), i)
		}
		ids, err := createBatch(s.url(""), lines.Bytes())
		if err != nil {
			x.t.Fatal(err)
		}
		x.ids = append(x.ids, ids...)
	}
	time.Sleep(time.Until(x.from.Add(2 * time.Second)))
}

// first is the first due of a timer: the dues of all are spread evenly.
func (x *killTrial) first(timer int) int64 {
	return x.from.UnixMilli() + int64(timer)%killPace.Milliseconds()
}

// burst has the nodes make as many calls at once, again and again, as a kill leaves them to
// make, of timers of another app. It returns the lateness of all others in the 3 s after each:
// as a kill, but no node was killed.
func (x *killTrial) burst(times int) (late []time.Duration) {
	const calls = 2 * 1000 / 3 // of a third of the timers, in 2 s
	for i := range times {
		at := time.Now().Add(3 * time.Second).Truncate(time.Second)
		for n, s := range x.all {
			var lines bytes.Buffer
			for j := n; j < calls; j += len(x.all) {
				fmt.Fprintf(&lines, `{"app":"burst","name":"burst-%d-%d","schedule":{"at":%d},"delivery":%q,"callback":{"url":"http://%s/burst","timeout":"5s"}}`+"\n",
					i, j, at.UnixMilli(), []string{"at_least_once", "at_most_once"}[j/3%2], x.receiver)
			}
			if _, err := createBatch(s.url(""), lines.Bytes()); err != nil {
				x.t.Fatal(err)
			}
		}
		time.Sleep(time.Until(at.Add(takenIn + time.Second)))
		late = append(late, x.lateness(at, at.Add(takenIn), nil)...)
	}
	slices.Sort(late)
	return late
}

func (x *killTrial) take(c *fasthttp.RequestCtx) {
	if string(c.Path()) == "/burst" {
		time.Sleep(callTakes)
		return
	}
	a := killCall{at: time.Now(), redelivered: len(c.Request.Header.Peek("X-Xtimer-Redelivered")) > 0, by: bytes.Count(c.Request.Header.Peek("webhook-signature"), []byte("v1,")) - 1}
	_, due, _ := strings.Cut(string(c.Request.Header.Peek("Idempotency-Key")), "_")
	a.due, _ = strconv.ParseInt(due, 10, 64)
	a.timer, _ = strconv.Atoi(strings.TrimPrefix(string(c.Path()), "/"))
	x.mu.Lock()
	x.log = append(x.log, a)
	x.mu.Unlock()
	time.Sleep(callTakes)
}

// since is the calls that came from an instant on.
func (x *killTrial) since(from time.Time) []killCall {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := len(x.log)
	for i > 0 && !x.log[i-1].at.Before(from) {
		i--
	}
	return x.log[i:len(x.log):len(x.log)]
}

// strike kills a node, starts it again when its timers are others', and waits until it has its
// part of the shards again.
func (x *killTrial) strike(n *server) {
	d := death{by: n.n, of: map[int]bool{}}
	for _, c := range x.since(time.Now().Add(-2 * killPace)) {
		d.of[c.timer] = c.by == n.n
	}
	before := x.used(n)
	d.at = time.Now()
	n.kill()
	x.died = append(x.died, d)
	time.Sleep(afterKill)
	for i, cost := range x.used(n).since(before) {
		x.costs[i] += cost
	}
	n.start()
	x.balance()
	time.Sleep(time.Second)
}

// lateness is that of the first calls of the dues in a span, of some timers; nil: of all.
func (x *killTrial) lateness(from, to time.Time, of func(timer int) bool) (late []time.Duration) {
	seen := map[[2]int64]bool{}
	for _, c := range x.since(from) {
		due, key := time.UnixMilli(c.due), [2]int64{int64(c.timer), c.due}
		if !due.Before(from) && due.Before(to) && !seen[key] && (of == nil || of(c.timer)) {
			seen[key] = true
			late = append(late, c.at.Sub(due))
		}
	}
	slices.Sort(late)
	return late
}

// rank is a quantile of durations in order.
func rank(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return of[min(int(q*float64(len(of))), len(of)-1)]
}

func percentiles(of []time.Duration) string {
	return fmt.Sprintf("p50 %v, p99 %v, max %v of %d", round(rank(of, .5)), round(rank(of, .99)), round(rank(of, 1)), len(of))
}

// end judges the kills.
func (x *killTrial) end(quiet []time.Duration) {
	t := x.t
	until := time.Now().Add(-2 * time.Second)
	time.Sleep(3 * time.Second)
	var firsts, beside, before []time.Duration
	for i, d := range x.died {
		first := x.firstCalls(&d)
		firsts = append(firsts, rank(first, 1))
		others := func(timer int) bool { return !d.of[timer] }
		beside = append(beside, x.lateness(d.at, d.at.Add(takenIn), others)...)
		before = append(before, x.lateness(d.at.Add(-time.Second), d.at.Add(-callTakes), others)...)
		if last := rank(first, 1); last > takenIn || len(first) == 0 {
			t.Errorf("kill %d, of node %d: the others called its %d timers within %v", i, d.by, len(first), round(last))
		}
	}
	repeats := x.repeats(until)
	slices.Sort(firsts)
	slices.Sort(beside)
	slices.Sort(before)
	t.Logf("%d kills: the others called the timers of the dead node within %s", len(x.died), percentiles(firsts))
	t.Logf("the calls of the others: without a kill %s; in the second before a kill %s; in the 3 s after a kill %s", percentiles(quiet), percentiles(before), percentiles(beside))
	for from := time.Duration(0); from < takenIn; from += takenIn / 6 {
		var part []time.Duration
		for _, d := range x.died {
			part = append(part, x.lateness(d.at.Add(from), d.at.Add(from+takenIn/6), func(timer int) bool { return !d.of[timer] })...)
		}
		slices.Sort(part)
		t.Logf("the calls of the others from %v after a kill: %s", from, percentiles(part))
	}
	t.Logf("processor time in the %v after a kill: %v; without a kill, of all nodes: %v", afterKill, x.costs.times(1/float64(len(x.died))), x.idle)
	t.Logf("called again by one kill: at most %d, in all %d of %d calls", slices.Max(repeats), sum(repeats), len(x.log))
	if p50 := rank(firsts, .5); p50 > 2300*time.Millisecond {
		t.Errorf("the median of the first calls is %v", round(p50))
	}
	if is, bar := rank(beside, .99), 6*max(rank(quiet, .99), rank(before, .99))/5; is > bar {
		t.Errorf("p99 of the others is %v, of at most %v", round(is), round(bar))
	}
}

func sum(of []int) (n int) {
	for _, x := range of {
		n += x
	}
	return n
}

// firstCalls is how long after a death another node called for each timer of the dead one.
func (x *killTrial) firstCalls(d *death) (first []time.Duration) {
	seen := map[int]bool{}
	for _, c := range x.since(d.at) {
		if d.of[c.timer] && c.by != d.by && !seen[c.timer] {
			seen[c.timer] = true
			first = append(first, c.at.Sub(d.at))
		}
	}
	for timer, is := range d.of {
		if is && !seen[timer] {
			x.t.Errorf("timer %d of node %d was not called after the kill", timer, d.by)
		}
	}
	slices.Sort(first)
	return first
}

// repeats is how many calls came again by each kill. Each due up to an instant is called once,
// and more often only by a kill.
func (x *killTrial) repeats(until time.Time) []int {
	byKey := map[[2]int64][]killCall{}
	for _, c := range x.since(time.Time{}) {
		key := [2]int64{int64(c.timer), c.due}
		byKey[key] = append(byKey[key], c)
	}
	for timer := range x.ids {
		for due := x.first(timer); due < until.UnixMilli(); due += killPace.Milliseconds() {
			if timer%2 == 0 && len(byKey[[2]int64{int64(timer), due}]) == 0 {
				x.t.Errorf("timer %d was not called for its due %d", timer, due)
			}
		}
	}
	again := make([]int, len(x.died))
	for key, cs := range byKey {
		if cs[0].at.Before(time.UnixMilli(key[1])) {
			x.t.Errorf("timer %d was called early for its due %d", key[0], key[1])
		}
		for _, c := range cs[1:] {
			i := slices.IndexFunc(x.died, func(d death) bool {
				return d.by == cs[0].by && cs[0].at.Before(d.at.Add(callTakes)) && c.at.After(d.at) && c.at.Sub(d.at) < 2*takenIn
			})
			if i < 0 || !c.redelivered || key[0]%2 == 1 {
				x.t.Errorf("timer %d, due %d: called by node %d, and again %v later by node %d, marked %v, after kill %d", key[0], key[1], cs[0].by, c.at.Sub(cs[0].at), c.by, c.redelivered, i)
				continue
			}
			again[i]++
		}
	}
	for i, d := range x.died {
		may := 0 // in flight, or ended in the last 50 ms
		for _, c := range x.since(d.at.Add(-callTakes - mirrored)) {
			if c.by == d.by && c.at.Before(d.at.Add(callTakes)) {
				may++
			}
		}
		if again[i] > may {
			x.t.Errorf("kill %d: %d calls came again, of at most %d", i, again[i], may)
		}
	}
	return again
}
