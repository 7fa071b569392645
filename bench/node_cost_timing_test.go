package bench

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
)

// BenchmarkNodeCost is the processor time of a fire and of a create on one node of three, and
// how many times that of a single server over a MariaDB and a Redis of the same kind. The
// nodes fire as much as the single server does, each. Both are measured in turns, and the
// ratios of a turn count: what else the machine does slows both.
func BenchmarkNodeCost(b *testing.B) {
	const turns = 5
	var fires, creates, perFire, perCreate []float64
	for turn := range turns {
		aloneFire, aloneCreate := costOf(b, turn, 1)
		fire, create := costOf(b, turn, 3)
		b.Logf("turn %d: a fire %.1f us alone, %.1f us on a node; a create %.1f and %.1f us", turn+1, aloneFire, fire, aloneCreate, create)
		fires, creates = append(fires, fire/aloneFire), append(creates, create/aloneCreate)
		perFire, perCreate = append(perFire, fire), append(perCreate, create)
	}
	b.ReportMetric(median(perFire), "cpu-us/fire")
	b.ReportMetric(median(perCreate), "cpu-us/create")
	b.ReportMetric(median(fires), "x-of-single-fire")
	b.ReportMetric(median(creates), "x-of-single-create")
}

// costOf is what a fire and a create take (us) of the processor time of so many nodes; of one:
// of a single server that is no node.
func costOf(b *testing.B, turn, nodes int) (fire, create float64) {
	t, r := startTiers(b), startReceiver(b)
	defer t.mysql.Kill()
	defer t.redis.Kill()
	r.counting = true
	var all []*process
	for i := range nodes {
		args := t.args()
		if nodes > 1 {
			args = append(args, "--cluster", "--node", fmt.Sprint("node-", i))
		}
		p := startProcess(b, args...)
		defer p.kill()
		all = append(all, p)
	}
	shared := func() bool {
		for _, p := range all {
			if n, _ := p.askMetric("xtimer_shards_owned"); nodes > 1 && int(n) < engine.Shards/nodes {
				return false
			}
		}
		return true
	}
	for deadline := time.Now().Add(time.Minute); !shared(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("the nodes do not share the shards")
		}
	}
	for i, p := range all {
		var lines bytes.Buffer
		for j := range 100 {
			fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d-%d","schedule":{"every":"100ms"},"callback":{"url":%q}}`+"\n", i, j, r.url)
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	used := func() (sum time.Duration) {
		for _, p := range all {
			sum += p.cpu()
		}
		return sum
	}
	time.Sleep(3 * time.Second)
	calls := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.calls
	}
	n, since := calls(), used()
	time.Sleep(10 * time.Second)
	fire = float64((used() - since).Microseconds()) / float64(calls()-n)
	all[0].deleteAll("bench")
	time.Sleep(2 * time.Second)

	const total = 20_000
	due, bodies := time.Now().Add(2*time.Hour), make([][]byte, total)
	for i := range bodies {
		bodies[i] = []byte(createBody(int64(turn*total+i), due.Add(time.Duration(i)*time.Millisecond)))
	}
	c := &fasthttp.HostClient{Addr: all[0].addr, MaxConns: 64}
	since = used()
	createAll(b, c, all[0].url("/v1/timers"), "application/json", bodies, 64, 1)
	return fire, float64((used() - since).Microseconds()) / total
}
