package allot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/tier/memory"
)

// store has the buckets of all nodes.
type store struct {
	*memory.Cold
	took atomic.Int64 // of each call, ns
	away atomic.Bool
}

var errAway = errors.New("the store is away")

func newStore() *store {
	s := &store{Cold: memory.NewCold()}
	s.takes(3 * time.Millisecond)
	return s
}

func (s *store) takes(d time.Duration) { s.took.Store(int64(d)) }

func (s *store) PutBuckets(ctx context.Context, bs []engine.Bucket) error {
	time.Sleep(time.Duration(s.took.Load()))
	if s.away.Load() {
		return errAway
	}
	return s.Cold.PutBuckets(ctx, bs)
}

func (s *store) Buckets(ctx context.Context, names []string) ([][]byte, error) {
	bodies, err := s.Cold.Buckets(ctx, names)
	time.Sleep(time.Duration(s.took.Load())) // what comes meanwhile was not read
	if s.away.Load() {
		return nil, errAway
	}
	return bodies, err
}

// wall is the clock of the store.
func wall() (earliest, latest int64, ok bool) {
	now := time.Now().UnixMilli()
	return now - 300, now + 400, true
}

// startAlone is a process that is alone.
func (x *among) startAlone(l flow.Limit) *node {
	n := &node{among: x, life: uint64(len(x.all) + 1), done: make(chan struct{})}
	seen := &engine.Membership{Moves: 1, Nodes: []engine.Node{{Life: n.life, Speaks: engine.Speaks}}, Shards: new([engine.Shards]engine.Holding)}
	for i := range seen.Shards {
		seen.Shards[i] = engine.Holding{Holder: n.life, Fence: n.life}
	}
	x.table.Store(seen)
	n.start(true)
	x.all = append(x.all, n)
	n.queue.SetRule(name("k"), &flow.Rule{Limit: &l, Started: true})
	return n
}

// The rate of a key holds across kills, also for times that are longer than a start waits; and
// what it allows is called.
func TestASlowKeyAcrossKills(t *testing.T) {
	for _, l := range []flow.Limit{
		{Rate: 10, Per: 10 * time.Minute, Burst: 1},
		{Rate: 10, Per: 10 * time.Minute, Burst: 10},
		{Rate: 1, Per: 24 * time.Hour, Burst: 1},
		{Rate: 100, Per: 24 * time.Hour, Burst: 100},
		{Rate: 100, Per: 24 * time.Hour, Burst: 7, Concurrency: 2},
		{Rate: 2000, Per: 61 * time.Second, Burst: 1, Concurrency: 50},
		{Rate: 30, Per: 30 * time.Second, Burst: 5}, // which is not slow
	} {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &among{t: t, began: time.Now(), store: newStore()}
				rng := rand.New(rand.NewPCG(uint64(l.Rate), 1))
				for range 6 {
					n := x.startAlone(l)
					n.push("k", 2*l.Rate, time.Millisecond)
					time.Sleep(2*time.Minute + time.Duration(rng.Int64N(int64(l.Per))))
					n.end()
				}
				n := x.startAlone(l)
				n.push("k", 4*l.Rate, time.Millisecond)
				since := time.Since(x.began)
				time.Sleep(3*l.Per + 2*time.Minute)
				n.end()
				if n := x.most("k", l.Per); n > l.Rate {
					t.Errorf("%d calls in a window of %v, of %d", n, l.Per, l.Rate)
				}
				if got := x.by("k", since)[n.life]; float64(got) < 0.9*float64(2*l.Rate) {
					t.Errorf("%d calls in three times %v, of %d each", got, l.Per, l.Rate)
				}
				if b, err := x.store.Cold.Buckets(t.Context(), []string{bucketName(name("k"))}); err != nil || (b[0] != nil) != l.IsSlow() {
					t.Errorf("stored: %s, %v", b[0], err)
				}
			})
		})
	}
}

// It is told when the next call of a slow key may be made.
func TestASlowKeyTellsWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &among{t: t, began: time.Now(), store: newStore()}
		n := x.startAlone(flow.Limit{Rate: 1, Per: time.Hour, Burst: 1})
		n.push("k", 3, time.Millisecond)
		time.Sleep(5 * time.Minute)
		g, _ := n.queue.Gate(name("k"))
		e := n.queue.EstimateOf("app", "k")
		for _, next := range []time.Duration{g.Next, e.Next} {
			if next < 60*time.Minute || next > 61*time.Minute {
				t.Errorf("the next call is told for %v, want an hour after the first", next)
			}
		}
		n.end()
	})
}

// While the store is away, no call of a slow key is made; after that they are.
func TestASlowKeyWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &among{t: t, began: time.Now(), store: newStore()}
		x.store.away.Store(true)
		n := x.startAlone(flow.Limit{Rate: 600, Per: 10 * time.Minute, Burst: 1})
		n.push("k", 60, time.Millisecond)
		time.Sleep(5 * time.Minute)
		if got := x.by("k", 0)[n.life]; got != 0 {
			t.Errorf("%d calls were made that are not stored", got)
		}
		x.store.away.Store(false)
		time.Sleep(2 * time.Minute)
		if got := x.by("k", 0)[n.life]; got != 60 {
			t.Errorf("%d calls were made, want 60", got)
		}
		n.end()
	})
}

// The owner of a slow key changes again and again: it gives the key away, is killed, is stopped while it
// stores, or does not reach the store. The rate holds over all owners, and what it allows is called.
func TestASlowKeyHasManyOwners(t *testing.T) {
	for seed, l := range []flow.Limit{
		{Rate: 10, Per: 10 * time.Minute, Burst: 1},
		{Rate: 10, Per: 10 * time.Minute, Burst: 10},
		{Rate: 1, Per: 2 * time.Minute, Burst: 1},
		{Rate: 100, Per: 5 * time.Minute, Burst: 7, Concurrency: 3},
		{Rate: 3, Per: 12 * time.Minute, Burst: 3},
		{Rate: 300, Per: 2 * time.Minute, Burst: 100, Concurrency: 20, HoldTask: true},
	} {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 2))
			upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
			withNodes(t, 3, func(t *testing.T, x *among) {
				x.delay.Store(rng.Int64N(20e6))
				x.set("k", l)
				x.give("k", 1)
				const times = 5
				for _, n := range x.all {
					for range (times + 1) * l.Rate {
						n.add(&item{key: "k", took: time.Millisecond, after: time.Millisecond}) // it leaves its place then
					}
				}
				began := time.Now()
				for until := began.Add(times * l.Per); time.Now().Before(until); {
					time.Sleep(upTo(l.Per / 4))
					switch rng.IntN(4) {
					case 0: // the store takes so long that the owner is another meanwhile
						x.store.takes(upTo(3 * time.Second))
					case 1:
						x.store.away.Store(true)
					case 2:
						x.cut.Store(fmt.Sprint(1+rng.IntN(3)), true)
					}
					x.give("k", uint64(1+rng.IntN(3)))
					time.Sleep(upTo(3 * time.Second))
					x.store.away.Store(false)
					x.store.takes(3 * time.Millisecond)
					x.cut.Clear()
				}
				x.all[1].kill()
				time.Sleep(2 * time.Second)
				x.all[1].bury()
				x.give("k", 3)
				since := time.Since(x.began)
				time.Sleep(l.Per)
				if n := x.most("k", l.Per); n > l.Rate {
					t.Errorf("%d calls in a window of %v, of %d", n, l.Per, l.Rate)
				}
				by := x.by("k", 0)
				if sum := by[1] + by[2] + by[3]; sum < times*l.Rate*6/10 {
					t.Errorf("calls by node: %v, of %d in the time", by, (times+1)*l.Rate)
				}
				if by := x.by("k", since); by[1]+by[3] < max(1, l.Rate/2) {
					t.Errorf("calls after the takeover: %v", by)
				}
			})
		})
	}
}

// The key goes to another node while a call is being stored, and that node has read before: the
// call is not granted, and the other one is.
func TestASlowKeyGoesWhileACallIsStored(t *testing.T) {
	withNodes(t, 2, func(t *testing.T, x *among) {
		x.set("k", flow.Limit{Rate: 1, Per: time.Hour, Burst: 1})
		x.give("k", 1)
		time.Sleep(time.Second)
		x.store.takes(300 * time.Millisecond)
		answers := make(chan answer, 1)
		go func() {
			answers <- x.all[0].asker.owner.answer(t.Context(), &ask{Life: 2, Number: 1, Keys: []keyAsk{{Kind: flow.OfFlow, App: "app", Key: "k", Calls: 1}}})
		}()
		time.Sleep(310 * time.Millisecond) // it was read, and is being stored
		x.give("k", 2)
		time.Sleep(looks + 10*time.Millisecond)
		for _, n := range x.all {
			n.push("k", 1, 0)
		}
		if a := <-answers; !a.Keys[0].Elsewhere {
			t.Errorf("the former owner granted %+v", a.Keys)
		}
		time.Sleep(10 * time.Minute)
		if by := x.by("k", 0); by[1]+by[2] != 1 {
			t.Errorf("calls by node: %v", by)
		}
	})
}

// A call that cannot be stored is not made, and can be granted when it can be stored.
func TestASlowKeyGetsBackWhatWasNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &among{t: t, began: time.Now(), store: newStore()}
		n := x.startAlone(flow.Limit{Rate: 2, Per: 24 * time.Hour, Burst: 2})
		for made := range 2 {
			x.store.away.Store(made > 0)
			n.push("k", 1, 0)
			time.Sleep(5 * time.Minute)
			if got := x.by("k", 0)[n.life]; got != 1 {
				t.Errorf("%d calls were made, want 1", got)
			}
		}
		x.store.away.Store(false)
		time.Sleep(time.Minute)
		if got := x.by("k", 0)[n.life]; got != 2 {
			t.Errorf("%d calls were made, want 2", got)
		}
		n.end()
	})
}
