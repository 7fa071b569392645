package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// A node that gains shards fills the warm tier for those alone: shards of a node that died, and
// of one that had them from this node, changed timers and died. The minutes are whole then, also
// if the node gains while it fills all of the hour: what is due is called.
func TestGainFillsItsShards(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		from := w.now()
		names := map[string][]int64{} // what each is due
		until := from/60_000*60_000 + 25*60_000
		var gone engine.TimerID
		for i := range 40 {
			name := fmt.Sprint("minutely-", i)
			id := ws[i%2].make(timer(name, cron(fmt.Sprint(i, " * * * * *"))))
			if names[name] = grid(from, until, 60_000, int64(i)*1000); i == 0 {
				gone = id // node a's
			}
		}
		time.Sleep(time.Minute)
		var mu sync.Mutex
		var put []engine.Entry
		b.puts.set(func(es []engine.Entry) {
			mu.Lock()
			put = append(put, es...)
			mu.Unlock()
		})
		// taken holds what was put since against the shards that b gains when a dies.
		taken := func() {
			mu.Lock()
			put = nil
			mu.Unlock()
			owned := b.node.has()
			a.kill()
			time.Sleep(8 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			per := map[int64]int{}
			for _, x := range put {
				if owned.Has(x.ID.Shard()) {
					t.Errorf("timer %d was put into the warm tier, in a shard that was the node's before", x.ID)
				}
				per[x.Due/60_000]++
			}
			if n := per[w.now()/60_000+10]; n < 10 || len(per) < 55 {
				t.Errorf("what a gain put: %d timers in a minute, of %d minutes", n, len(per))
			}
		}
		taken()

		var loads atomic.Int64
		b.warmFault.set(func(op string) error {
			if op == "Load" {
				loads.Add(1)
			}
			return nil
		})
		time.Sleep(time.Minute)
		if loads.Load() == 0 {
			t.Error("the minutes are read from the cold tier still")
		}
		a.start()
		time.Sleep(10 * time.Second)
		if n := a.node.owns(); n != 128 {
			t.Errorf("the node that came back owns %d shards", n)
		}
		onOwner(t, ws, func(n *world) error { _, err := n.Delete(t.Context(), gone, 0); return err })
		names["minutely-0"] = grid(from, w.now(), 60_000, 0)
		names["new"] = []int64{from/60_000*60_000 + 20*60_000 + 30_500}
		a.make(timer("new", at(names["new"][0])))
		taken()

		a.start()
		time.Sleep(10 * time.Second)
		var lost, slow atomic.Bool
		b.warmFault.set(func(op string) error {
			switch {
			case op == "Load" && lost.CompareAndSwap(true, false):
				slow.Store(true)
				return engine.ErrGap
			case op == "Add" && slow.Load():
				time.Sleep(3 * time.Second)
			}
			return nil
		})
		lost.Store(true)
		time.Sleep(time.Minute)
		time.Sleep(time.Duration(60_000-w.now()%60_000+4000) * time.Millisecond)
		if !slow.Load() {
			t.Error("the hour is not filled anew")
		}
		a.kill()
		time.Sleep(time.Until(time.UnixMilli(until)))
		for name, want := range names {
			seen := map[int64]bool{}
			var got []int64
			for _, c := range ofAll(ws, name) {
				if late := c.at - c.key.Due; late < 0 || late > 5000 {
					t.Errorf("%s, due %s, was called %d ms late", name, stamp(c.key.Due), late)
				}
				if !seen[c.key.Due] {
					seen[c.key.Due], got = true, append(got, c.key.Due)
				}
			}
			slices.Sort(got)
			if diff := difference(got, want); diff != "" {
				t.Errorf("%s was called for %d dues, want %d: %s", name, len(got), len(want), diff)
			}
		}
		b.settle()
	})
}

// A node that gains shards fills the warm tier for them when what they owe has been called, and rests between two pages.
func TestGainFillsSlowly(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		for i := range 20 {
			a.make(timer(fmt.Sprint("minutely-", i), cron(fmt.Sprint(i, " * * * * *"))))
		}
		time.Sleep(time.Duration(60_000-w.now()%60_000+20_000) * time.Millisecond) // the minutes until the end of the test are loaded
		const took = 20 * time.Millisecond
		var mu sync.Mutex
		var puts []time.Time
		b.puts.set(func([]engine.Entry) {
			mu.Lock()
			puts = append(puts, time.Now())
			mu.Unlock()
			time.Sleep(took)
		})
		a.kill()
		for b.node.owns() < engine.Shards {
			time.Sleep(10 * time.Millisecond)
		}
		gained := time.Now()
		time.Sleep(15 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(puts) < 6 {
			t.Fatalf("the warm tier was filled by %d pages", len(puts))
		}
		if d := puts[0].Sub(gained); d < 4900*time.Millisecond || d > 7*time.Second {
			t.Errorf("the first page was put %v after the gain", d)
		}
		for i := range len(puts) - 1 {
			if d := puts[i+1].Sub(puts[i]); d < 5*took {
				t.Errorf("page %d was put %v after the one before", i+1, d)
			}
		}
	})
}

// A node gains shards while its warm tier is away: the tier is told to be filled when it has the dues of these shards, too.
func TestGainWithoutTheWarmTier(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		const timers = 20
		for i := range timers {
			a.make(timer(fmt.Sprint("minutely-", i), cron(fmt.Sprint(i, " * * * * *"))))
		}
		time.Sleep(time.Minute)
		var away atomic.Bool
		var put atomic.Int64
		b.puts.set(func(es []engine.Entry) { put.Add(int64(len(es))) })
		b.warmFault.set(func(string) error {
			if away.Load() {
				return errors.New("away")
			}
			return nil
		})
		away.Store(true)
		for b.Tiers()["warm"] {
			time.Sleep(100 * time.Millisecond)
		}
		a.kill()
		for b.node.owns() < engine.Shards {
			time.Sleep(10 * time.Millisecond)
		}
		put.Store(0)
		away.Store(false)
		for began := time.Now(); !b.Tiers()["warm"] && time.Since(began) < time.Minute; {
			time.Sleep(10 * time.Millisecond)
		}
		if n := put.Load(); n < timers*55 {
			t.Errorf("the warm tier is told to be filled, and has got %d entries", n)
		}
	})
}

// A node that starts has no calls of its own to protect: the warm tier is filled at once.
func TestFirstGainFillsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(1)
		defer endNodes(ws)
		a := ws[0]
		startAll(ws)
		a.make(timer("minutely", cron("30 * * * * *")))
		time.Sleep(time.Minute)
		if err := a.stop(); err != nil {
			t.Fatal(err)
		}
		var first atomic.Int64
		a.puts.set(func([]engine.Entry) { first.CompareAndSwap(0, time.Now().UnixMilli()) })
		a.start()
		began := time.Now().UnixMilli()
		time.Sleep(30 * time.Second)
		if d := first.Load() - began; d < 0 || d > 1000 {
			t.Errorf("the first page was put after %d ms", d)
		}
	})
}
