package cluster

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// moved is how many shards a life has seen go from one node to another in a way, and the
// longest gap of them.
func moved(m *Member, from, to string, how How) (n int, gap time.Duration) {
	for _, x := range m.Moves() {
		if x.From == from && x.To == to && x.How == how {
			n, gap = n+x.Shards.Len(), max(gap, x.Gap)
		}
	}
	return n, gap
}

// Each node tells which shards went where, in which way, and for how long they had no owner.
func TestMoves(t *testing.T) {
	live(t, 2, 3, func(w *world) {
		w.still()
		w.settles(10 * time.Second)
		a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
		is := func(from, to *station, how How, want int, least, most time.Duration) {
			t.Helper()
			time.Sleep(500 * ms) // it looks
			n, gap := moved(a.process.Member, from.name, to.name, how)
			if n != want || gap < least || gap > most {
				t.Errorf("%d shards went from %s to %s by %s, with a gap of %v; want %d shards", n, from.name, to.name, how, gap, want)
			}
		}
		had := w.owned(b)

		b.kill() // and starts again
		time.Sleep(ms)
		w.settles(3 * time.Second)
		is(b, b, Started, had, 0, 2*time.Second)

		b.at(func() { b.down = true })
		b.kill()
		w.settles(3 * time.Second)
		time.Sleep(500 * ms)
		here, _ := moved(a.process.Member, b.name, a.name, TakenOver)
		is(b, c, TakenOver, had-here, 1500*ms, 3*time.Second)
		if got := a.process.Taken(TakenOver); here == 0 || got != int64(here) {
			t.Errorf("%d shards were taken over, %d by the moves", got, here)
		}

		b.at(func() { b.down = false })
		w.settles(10 * time.Second)
		w.wish(b, engine.WishDrain)
		time.Sleep(10 * time.Second)
		n, _ := moved(a.process.Member, b.name, a.name, HandedOver)
		if got := a.process.Taken(HandedOver); n < 42 || got < int64(n) {
			t.Errorf("%d shards were handed over, %d by the moves", got, n)
		}

		had = w.owned(c)
		c.at(func() { c.down = true })
		w.wish(c, engine.WishEnd)
		w.wish(b, engine.WishServe)
		time.Sleep(5 * time.Second)
		n, _ = moved(a.process.Member, c.name, a.name, Evicted)
		if m, _ := moved(a.process.Member, c.name, b.name, Evicted); n+m != had {
			t.Errorf("%d shards came from a node that was evicted, which had %d", n+m, had)
		}
		all := a.process.Moves()
		for i := range all[1:] {
			if all[i].At < all[i+1].At {
				t.Error("the newest move is not the first")
			}
		}
	}, 1, 1, 1)
}

// The moves that are remembered are bounded, and moves of one kind within some seconds are one.
func TestMovesAreBounded(t *testing.T) {
	var x moves
	nodes := []engine.Node{{Name: "a", Life: 1}, {Name: "b", Life: 2}}
	shards := &[engine.Shards]engine.Holding{}
	for i := range 3 * mostMoves {
		for s := range 4 {
			shards[s] = engine.Holding{Holder: uint64(1 + i%2), Clean: true}
			x.see(time.Duration(4*i+s)*time.Second, "a", &engine.Membership{Nodes: nodes, Shards: shards, Now: int64(i)*4000 + int64(s)})
		}
	}
	if last := x.recent[len(x.recent)-1]; len(x.recent) != mostMoves || last.Shards != engine.SetOf(0, 1, 2, 3) {
		t.Errorf("%d moves, the last of %d shards", len(x.recent), last.Shards.Len())
	}
}

// A life tells for how long it could not call: because its beats were lost, or by its clock.
// While it may call nothing, it says why.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, began := memory.NewMembers(memory.NewCold()), time.Now()
		var ahead atomic.Int64
		p := &process{station: &station{world: &world{t: t, began: began, table: table, calm: true}, rate: 1}}
		p.rng = rand.New(rand.NewPCG(1, 1))
		var given []time.Duration
		m := New(Config{
			Node: engine.Node{Name: "a", Life: 1}, Members: p, Times: usual, Gain: func([]Gained) {},
			Boot: func() time.Duration { return time.Since(began) }, After: time.After,
			Wall:  func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			Cede:  func(context.Context, []int) (engine.Set, error) { time.Sleep(200 * ms); return engine.Set{}, nil },
			Given: func(took time.Duration) { p.at(func() { given = append(given, took) }) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		why := func(want Why) {
			t.Helper()
			seen := m.Seen()
			for i := range seen.Nodes {
				if n := &seen.Nodes[i]; n.Name == "a" && m.Why(n) != want {
					t.Errorf("the reason is %q, want %q", m.Why(n), want)
				}
			}
		}
		between := func(low, high time.Duration) {
			t.Helper()
			if q := m.Quiet(); q < low || q > high {
				t.Errorf("quiet for %v, want %v to %v", q, low, high)
			}
		}
		time.Sleep(10 * time.Second)
		between(0, 20*ms)
		why(WhyNothing)
		p.at(func() { p.cut[0] = time.Now().Add(5 * time.Second) })
		time.Sleep(4 * time.Second)
		why(WhyNoBeat)
		time.Sleep(10 * time.Second)
		between(3500*ms, 5*time.Second)
		why(WhyNothing)
		was := m.Quiet()

		other := engine.Node{Name: "b", Life: 2, State: engine.Serving}
		if err := table.Join(t.Context(), other, engine.Pulse{}); err != nil {
			t.Fatal(err)
		}
		beats := func(n int) {
			for range n {
				time.Sleep(usual.Beat)
				if err := table.Beat(t.Context(), other); err != nil {
					t.Error(err)
				}
			}
		}
		beats(5)
		ahead.Store(int64(5 * time.Second))
		beats(25)
		why(WhyClock)
		between(was+9*time.Second, was+10500*ms)
		p.mu.Lock()
		if len(given) == 0 || given[0] < 200*ms || given[0] > 250*ms {
			t.Errorf("shards were given within %v", given)
		}
		p.mu.Unlock()
		cancel()
		<-ended
		p.sent.Wait()
	})
}
