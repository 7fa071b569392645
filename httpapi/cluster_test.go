package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/cluster"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/nodes"
	"xtimer/tier/memory"
)

// testCluster is some nodes over one cold tier. Shard s is held by node s mod n.
type testCluster struct {
	t     testing.TB
	cold  *memory.Cold
	table *memory.Members
	began time.Time
	call  callerFunc
	cfg   ServerConfig
	n     []*clusterNode
}

// clusterNode is one of them.
type clusterNode struct {
	*testNode
	of      *testCluster
	row     engine.Node
	address string
	// told replaces what the node knows of the owner of a shard.
	mu   sync.Mutex
	told func(shard int) (nodes.Node, bool)
	cut  bool // it reaches no other node

	slowest time.Duration // of its beats
	ahead   atomic.Int64  // by how much the time that it goes by is ahead of its wall clock, in ns
}

// tcp is a listener on loopback.
type tcp struct{ net.Listener }

func (l tcp) Dial() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }

// newCluster runs n nodes until the test ends.
func newCluster(t testing.TB, n int, call callerFunc, cfg ServerConfig) *testCluster {
	t.Helper()
	c := &testCluster{t: t, cold: memory.NewCold(), began: time.Now(), call: call, cfg: cfg}
	c.table = memory.NewMembers(c.cold)
	parts := make([]engine.Set, n)
	for s := range engine.Shards {
		parts[s%n] = parts[s%n].Union(engine.SetOf(s))
	}
	var all sync.WaitGroup
	for i := range n {
		x, open := c.build(1000)
		former := x.row
		former.Life--
		if err := errors.Join(c.table.Join(t.Context(), former, engine.Pulse{}), c.table.Take(t.Context(), former.Life, parts[i])); err != nil {
			t.Fatal(err)
		}
		all.Go(open)
	}
	all.Wait()
	for i, x := range c.n {
		until(t, func() bool { return x.e.Owned() == parts[i] })
	}
	return c
}

// idle is a further node, for which the plan has no shards.
func (c *testCluster) idle() *clusterNode {
	x, open := c.build(1)
	open()
	until(c.t, func() bool { return slices.ContainsFunc(x.Nodes(), func(n nodes.Node) bool { return n.Own }) })
	return x
}

// build makes a node that is not opened yet.
func (c *testCluster) build(weight int) (x *clusterNode, open func()) {
	i := len(c.n)
	x = &clusterNode{of: c, row: engine.Node{
		Name: fmt.Sprint("node-", i), Life: uint64(i+1) * 1000, Weight: weight, Journal: [16]byte{byte(i + 1)}, State: engine.Serving,
	}}
	c.n = append(c.n, x)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	x.address = ln.Addr().String()
	x.row.Address, x.row.Speaks = x.address, engine.Speaks
	cfg := c.cfg
	cfg.Cluster = x
	e, open := builtEngineOn(c.t, c.call, nil, func(s *scheduler.Config) {
		s.Cold, s.Node = c.cold, x.row.Name
		s.Cluster = &cluster.Config{
			Node: x.row, Members: c.table, Times: cluster.TimesOf(1800 * time.Millisecond),
			Boot: func() time.Duration { return time.Since(c.began) }, After: time.After,
		}
	})
	x.testNode = serveOn(c.t, e, cfg, tcp{ln})
	return x, open
}

// look reads the table.
func (n *clusterNode) look() (all []nodes.Node, holders *[engine.Shards]engine.Holding) {
	seen, err := n.of.table.Look(context.Background(), 0)
	if err != nil {
		panic(err)
	}
	for _, row := range seen.Nodes {
		if row.Life == 0 {
			continue
		}
		x := nodes.Node{Name: row.Name, Own: row.Name == n.row.Name, Life: row.Life, State: row.State, Wish: row.Wish, Weight: row.Weight}
		for _, o := range n.of.n {
			if o.row.Name == row.Name {
				x.Address = o.address
			}
			if n.isCut() {
				x.Address = nowhere
			}
		}
		for _, h := range seen.Shards {
			if h.Holder == row.Life {
				x.Shards++
			}
		}
		all = append(all, x)
	}
	return all, seen.Shards
}

// Owner is nodes.Cluster's.
func (n *clusterNode) Owner(shard int) (nodes.Node, bool) {
	n.mu.Lock()
	told := n.told
	n.mu.Unlock()
	if told != nil {
		return told(shard)
	}
	return n.holder(shard)
}

// holder is the owner of a shard by the table.
func (n *clusterNode) holder(shard int) (nodes.Node, bool) {
	all, holders := n.look()
	for _, x := range all {
		if x.Life == holders[shard].Holder {
			return x, true
		}
	}
	return nodes.Node{}, false
}

// nowhere is an address where nobody listens.
const nowhere = "127.0.0.1:1"

func (n *clusterNode) isCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

func (n *clusterNode) setCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

// tell has the node know something else of the owners.
func (n *clusterNode) tell(told func(shard int) (nodes.Node, bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = told
}

// count is a number of an answer.
func (a answer) count(path ...any) int {
	a.t.Helper()
	n, ok := a.get(path...).(float64)
	if !ok {
		a.t.Errorf("no number %v in %s", path, a.body)
	}
	return int(n)
}

// Nodes is nodes.Cluster's.
func (n *clusterNode) Nodes() []nodes.Node {
	all, _ := n.look()
	return all
}

// Moves is nodes.Cluster's.
func (n *clusterNode) Moves() []cluster.Move { return n.e.Life().Moves() }

// Times is nodes.Cluster's.
func (n *clusterNode) Times() cluster.Times { return n.e.Life().Times() }

// SlowestBeat is nodes.Cluster's.
func (n *clusterNode) SlowestBeat() (time.Duration, bool) {
	return n.slowest, n.slowest > 800*time.Millisecond
}

// Ask is nodes.Cluster's.
func (n *clusterNode) Ask(ctx context.Context, life uint64, w engine.Wish) error {
	return n.of.table.Wish(ctx, life, w)
}

var testSecret = make([]byte, nodes.SecretSize)

// Secret is nodes.Cluster's.
func (n *clusterNode) Secret() []byte { return testSecret }

// Now is nodes.Cluster's.
func (n *clusterNode) Now() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }

// timer makes a timer at the node.
func (n *clusterNode) timer(app, name, more string) (id string) {
	n.t.Helper()
	id = n.do("POST", "/v1/timers", hourly(app, name, more)).want(201).str("id")
	parsed, err := engine.ParseTimerID(id)
	if err != nil || !n.e.Owned().Has(parsed.Shard()) {
		n.t.Fatalf("timer %s is not the node's: %v", id, err)
	}
	return id
}
