package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// TestNemesis strikes three nodes, their MariaDB and their Redis with one fault after another,
// while 300 calls a second are due and an owner creates and deletes one-shots at any node.
// Each link is a proxy:
//
//	node ──► MariaDB    node ──► Redis    node ──► node
//
// A fault ends; within 10 s each node has its part of the shards again, and calls are on time.
// At the end all calls are judged: see nemesis.judge.
//
// XTIMER_NEMESIS is how long (1h), XTIMER_SEED draws; XTIMER_FAULT is the only fault that
// comes, by its name. Without the first, each fault of a few comes once, and only the figures
// that a busy machine does not change are judged.
func TestNemesis(t *testing.T) {
	besideAsCluster(t)
	seed := seedOf(t)
	length, err := time.ParseDuration(os.Getenv("XTIMER_NEMESIS"))
	x := startNemesis(t, seed)
	if x.timed = err == nil; !x.timed {
		for _, name := range []string{"a node cannot reach MySQL", "a node cannot be reached", "MySQL is killed"} {
			x.strike(x.all[0], x.fault(name))
		}
	}
	r, only := draw(seed, 0), os.Getenv("XTIMER_FAULT")
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		if only != "" {
			x.strike(x.all[r.IntN(len(x.all))], x.fault(only))
		} else {
			x.strikeAny(r)
		}
	}
	x.judge()
}

// nemesis is three nodes, with all that can be done to them.
type nemesis struct {
	*nodes
	mysql, redis *servertest.Server
	links        []links
	owner        *shotOwner
	restore      func()   // puts the snapshot of MySQL or Redis back
	twin         *process // the last one that had the name of a node
	spared       *server  // no fault of now is on this node
	struck       []*struck
	timed        bool // how long things take is judged, too
}

// links are the ways of a node to MySQL and to Redis, and of the other nodes to it.
type links struct{ mysql, redis, node *servertest.Proxy }

func (l links) heal() {
	l.mysql.Heal()
	l.redis.Heal()
	l.node.Heal()
}

func startNemesis(t *testing.T, seed uint64) *nemesis {
	t.Helper()
	x := &nemesis{nodes: &nodes{t: t, calls: receiveCalls(t)}, mysql: servertest.MariaDB(t), redis: servertest.Redis(t)}
	dsn := x.mysql.DSN("xtimer")
	for i := range 3 {
		p := newProcess(t, binary)
		l := links{servertest.NewProxy(t, x.mysql.Addr()), servertest.NewProxy(t, x.redis.Addr()), servertest.NewProxy(t, p.addr)}
		p.args = append(signsAs(t, i), "--cluster", "--node", fmt.Sprint("node-", i), "--advertise", l.node.Addr(),
			"--mysql-dsn", strings.Replace(dsn, x.mysql.Addr(), l.mysql.Addr(), 1), "--redis-addr", l.redis.Addr())
		p.start()
		x.all, x.links = append(x.all, &server{process: p, n: i}), append(x.links, l)
	}
	x.balance()
	x.from = time.Now().Truncate(200 * time.Millisecond).Add(3 * time.Second)
	for _, s := range x.all {
		x.create(t, s, 20)
	}
	time.Sleep(time.Until(x.from.Add(2 * time.Second)))
	x.owner = startShots(x.nodes, seed)
	return x
}

// strikeAny strikes any node with any fault, and another node at the same time in one of four.
func (x *nemesis) strikeAny(r *rand.Rand) {
	n, f := r.IntN(len(x.all)), &faults[r.IntN(len(faults))]
	if r.IntN(4) > 0 || f.alone {
		x.strike(x.all[n], f)
		return
	}
	second := &faults[r.IntN(len(faults))]
	if second.alone || second.all && f.all {
		x.strike(x.all[n], f)
		return
	}
	x.strike(x.all[n], f, pair{x.all[(n+1)%len(x.all)], second})
}

type pair struct {
	on    *server
	fault *fault
}

// struck is a fault that came, or two at the same time.
type struck struct {
	names        string
	from, healed time.Time
	repeats      int // that are allowed
	came         int // that came
	goesBack     bool
	late         time.Duration
}

// strike strikes a node, and another one, and heals both.
func (x *nemesis) strike(n *server, f *fault, more ...pair) {
	x.t.Helper()
	s := &struck{from: time.Now()}
	pairs, noMirror := append([]pair{{n, f}}, more...), false
	x.spared = x.all[(n.n+2)%len(x.all)] // the second of a pair is on the next node
	// The shortest begins last, for the begin of others takes its time, and ends first.
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.fault.lasts, a.fault.lasts) })
	for _, p := range pairs {
		noMirror = noMirror || p.fault.noMirror
		s.names += fmt.Sprintf("%s (node %d) ", p.fault.name, p.on.n)
		s.repeats += p.fault.repeats
		s.goesBack = s.goesBack || p.fault.goesBack
		p.fault.begin(x, p.on)
	}
	if noMirror && s.repeats > 0 {
		s.repeats += ofALostMirror
	}
	begun := time.Now()
	for _, p := range slices.Backward(pairs) {
		time.Sleep(time.Until(begun.Add(p.fault.lasts)))
		if p.fault.end != nil && !p.fault.asks {
			p.fault.end(x, p.on)
		}
	}
	for _, l := range x.links {
		l.heal()
	}
	for _, p := range pairs {
		if p.fault.asks {
			p.fault.end(x, p.on)
		}
	}
	s.healed = time.Now()
	x.struck = append(x.struck, s)
	var took time.Duration // until the shards were shared for good
	for since := took; since < healing || took > since-time.Second; since = time.Since(s.healed) {
		if x.revive(x.all...); !x.isBalanced() {
			took = since
		}
		if since > time.Minute {
			x.t.Fatalf("%s: the nodes own %d shards", s.names, x.owned())
		}
		time.Sleep(100 * time.Millisecond)
	}
	x.t.Logf("%sfor %v; healed within %v", s.names, round(s.healed.Sub(s.from)), round(took))
	if took > healing && x.timed {
		x.t.Errorf("the nodes have their shards %v after the fault was over", round(took))
	}
}

// healing is how long after a fault all is as before.
const healing = 10 * time.Second

// revive starts those nodes that have ended, as a supervisor does.
func (x *nemesis) revive(of ...*server) {
	x.t.Helper()
	for _, s := range of {
		if s.cmd == nil {
			s.launch()
			continue
		}
		select {
		case <-s.done:
			x.t.Logf("node %d has ended with %d", s.n, s.cmd.ProcessState.ExitCode())
			s.launch()
		default:
		}
	}
}
