package allot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// among is nodes that share keys, in a bubble.
type among struct {
	t     *testing.T
	began time.Time
	table atomic.Pointer[engine.Membership]
	cut   sync.Map // of the addresses that nobody reaches
	delay atomic.Int64
	store *store

	mu    sync.Mutex // guards all, when nodes read it, and calls
	all   []*node
	calls []made
}

// made is a call.
type made struct {
	at, ended time.Duration // ended is MaxInt64 while it is in flight
	key       string
	by        uint64
	counts    bool // towards the places: its node lived
}

type node struct {
	*among
	life  uint64
	queue *fair.Queue[*item]
	asker *Asker[*item]
	stop  context.CancelFunc
	done  chan struct{}
	dead  atomic.Bool
	added int
}

type item struct {
	fair.Item[*item]
	key   string
	took  time.Duration
	again int           // how often it is called once more …
	after time.Duration // … so much later
	close time.Duration // for how long its response asks that the key be closed
}

func withNodes(t *testing.T, n int, f func(t *testing.T, x *among)) {
	synctest.Test(t, func(t *testing.T) {
		x := &among{t: t, began: time.Now(), store: newStore()}
		x.table.Store(&engine.Membership{Moves: 1, Shards: new([engine.Shards]engine.Holding)})
		for range n {
			x.join()
		}
		f(t, x)
		for _, n := range x.all {
			if !n.dead.Load() {
				n.end()
			}
		}
	})
}

// change changes the table.
func (x *among) change(f func(m *engine.Membership)) {
	m := *x.table.Load()
	m.Nodes, m.Shards, m.Moves = slices.Clone(m.Nodes), new(*m.Shards), m.Moves+1
	f(&m)
	x.table.Store(&m)
}

// give has a life own a key.
func (x *among) give(key string, life uint64) {
	x.change(func(m *engine.Membership) {
		h := &m.Shards[Shard(name(key))]
		h.Holder, h.Fence = life, h.Fence+1
	})
}

func name(key string) flow.Name { return flow.Name{Kind: flow.OfFlow, App: "app", Key: key} }

// join adds a node.
func (x *among) join() *node {
	n := &node{among: x, life: uint64(len(x.all) + 1), done: make(chan struct{})}
	n.start(false)
	x.mu.Lock()
	x.all = append(x.all, n)
	x.mu.Unlock()
	x.change(func(m *engine.Membership) {
		m.Nodes = append(m.Nodes, engine.Node{Name: fmt.Sprint(n.life), Life: n.life, Address: fmt.Sprint(n.life), Speaks: engine.Speaks})
	})
	return n
}

// start begins to call and to ask.
func (n *node) start(alone bool) {
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	n.queue = fair.New(fair.Config[*item]{Places: 10_000, PerApp: 10_000, PerTarget: 10_000, Run: n.run, Wanting: func() { n.asker.Wake() }, OnlySlow: alone})
	n.asker = New(Config[*item]{
		Queue: n.queue, Life: n.life, Alone: alone, Owns: n.owns, Seen: n.table.Load, Store: n.store, Clock: wall, Log: slog.New(slog.DiscardHandler),
	})
	n.asker.SendBy(n.send)
	go func() {
		defer close(n.done)
		_ = n.asker.Run(ctx)
	}()
}

func (n *node) owns(shard int) (uint64, bool) {
	h := n.table.Load().Shards[shard]
	return h.Fence, h.Holder == n.life && !n.dead.Load()
}

// kill ends a node at once, and bury has the others see it.
func (n *node) kill() {
	n.dead.Store(true)
	n.stop()
	n.queue.Close()
	n.cut.Store(fmt.Sprint(n.life), true)
}

func (n *node) end() {
	n.kill()
	n.queue.Wait()
	<-n.done
}

func (n *node) bury() {
	n.change(func(m *engine.Membership) {
		m.Nodes = slices.DeleteFunc(m.Nodes, func(r engine.Node) bool { return r.Life == n.life })
	})
}

var errCut = errors.New("the link is cut")

func (x *among) send(ctx context.Context, address string, b []byte) ([]byte, error) {
	if _, is := x.cut.Load(address); is {
		<-ctx.Done()
		return nil, errCut
	}
	x.mu.Lock()
	all := x.all
	x.mu.Unlock()
	for _, n := range all {
		if fmt.Sprint(n.life) == address {
			time.Sleep(time.Duration(x.delay.Load()))
			a, err := n.asker.Answer(b)
			time.Sleep(time.Duration(x.delay.Load()))
			return a, err
		}
	}
	return nil, errCut
}

func (n *node) run(it *item) fair.Result {
	if n.dead.Load() {
		return fair.Result{}
	}
	n.mu.Lock()
	i := len(n.calls)
	n.calls = append(n.calls, made{time.Since(n.began), 1<<63 - 1, it.key, n.life, true})
	n.mu.Unlock()
	time.Sleep(it.took)
	n.mu.Lock()
	n.calls[i].ended = time.Since(n.began)
	n.mu.Unlock()
	if it.after > 0 {
		time.AfterFunc(it.after, func() {
			if it.again--; it.again < 0 {
				n.queue.Leave(&it.Item)
				return
			}
			it.Again(it, it.Lane, time.Now().UnixMilli(), 5)
			n.queue.Push(&it.Item)
		})
	}
	return fair.Result{Ended: fair.Answered, Took: it.took, Close: it.close}
}

// set puts a limit into force at all nodes.
func (x *among) set(key string, l flow.Limit) {
	for _, n := range x.all {
		n.queue.SetRule(name(key), &flow.Rule{Limit: &l, Started: true})
	}
}

// rule puts a rule of the key k into force at all nodes.
func (x *among) rule(r *flow.Rule) {
	for _, n := range x.all {
		n.queue.SetRule(name("k"), r)
	}
}

// forget has the queue forget a key: so many other lanes come that it prunes.
func (n *node) forget(key string) {
	for i := 0; ; i++ {
		if _, ok := n.queue.Gate(name(key)); !ok {
			return
		}
		if i > 1<<15 {
			n.t.Fatal("the key is not forgotten")
		}
		n.queue.Lane("other", fmt.Sprint("http://other", i), "")
	}
}

// push has calls wait that take so long.
func (n *node) push(key string, count int, took time.Duration) {
	for range count {
		n.add(&item{key: key, took: took})
	}
}

// add has a call wait.
func (n *node) add(it *item) {
	n.added++
	it.Item = fair.Item[*item]{Value: it, Lane: n.queue.Lane("app", fmt.Sprint("http://t", n.added%3), it.key), Priority: 5, Ready: time.Now().UnixMilli()}
	n.queue.Push(&it.Item)
}

// most is the greatest number of calls of a key in a half-open window.
func (x *among) most(key string, per time.Duration) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var at []time.Duration
	for _, c := range x.calls {
		if c.key == key {
			at = append(at, c.at)
		}
	}
	slices.Sort(at)
	from := 0
	for i := range at {
		for at[from] <= at[i]-per {
			from++
		}
		n = max(n, i-from+1)
	}
	return n
}

// flying is the greatest number of calls of a key in flight at once.
func (x *among) flying(key string) (most int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.calls {
		n := 0
		for _, o := range x.calls {
			if o.key == key && o.at <= c.at && c.at < o.ended && o.counts {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// by is how many calls each node has made.
func (x *among) by(key string, since time.Duration) (n map[uint64]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = map[uint64]int{}
	for _, c := range x.calls {
		if c.key == key && c.at >= since {
			n[c.by]++
		}
	}
	return n
}
