package allot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// kept is what keepers store.
type kept struct {
	mu   sync.Mutex
	of   map[flow.Name]flow.Kept
	away bool
}

func (s *kept) load(n flow.Name) (flow.Kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, is := s.of[n]
	return k, is
}

func (s *kept) save(_ context.Context, kept map[flow.Name]flow.Kept) error {
	time.Sleep(3 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("the store is away")
	}
	maps.Copy(s.of, kept)
	return nil
}

// startAlone is a process that is alone.
func (x *among) startAlone(s *kept, l flow.Limit) *node {
	n := &node{among: x, life: uint64(len(x.all) + 1), done: make(chan struct{})}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	var k *Keeper[*item]
	n.queue = fair.New(fair.Config[*item]{Places: 10_000, PerApp: 10_000, PerTarget: 10_000, Run: n.run, Wanting: func() { k.Wake() }, OnlySlow: true})
	k = NewKeeper(KeeperConfig[*item]{Queue: n.queue, Load: s.load, Save: s.save, Wall: func() int64 { return time.Now().UnixMilli() }, Log: slog.New(slog.DiscardHandler)})
	x.all = append(x.all, n)
	n.queue.SetRule(name("k"), &flow.Rule{Limit: &l, Started: true})
	go func() {
		defer close(n.done)
		_ = k.Run(ctx)
	}()
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
				x, s := &among{t: t, began: time.Now()}, &kept{of: map[flow.Name]flow.Kept{}}
				rng := rand.New(rand.NewPCG(uint64(l.Rate), 1))
				for range 6 {
					n := x.startAlone(s, l)
					n.push("k", 2*l.Rate, time.Millisecond)
					time.Sleep(2*time.Minute + time.Duration(rng.Int64N(int64(l.Per))))
					n.end()
				}
				n := x.startAlone(s, l)
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
				if _, is := s.of[name("k")]; is != l.IsSlow() {
					t.Errorf("stored: %v", is)
				}
			})
		})
	}
}

// It is told when the next call of a slow key may be made.
func TestASlowKeyTellsWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, s := &among{t: t, began: time.Now()}, &kept{of: map[flow.Name]flow.Kept{}}
		n := x.startAlone(s, flow.Limit{Rate: 1, Per: time.Hour, Burst: 1})
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
		x, s := &among{t: t, began: time.Now()}, &kept{of: map[flow.Name]flow.Kept{}, away: true}
		n := x.startAlone(s, flow.Limit{Rate: 600, Per: 10 * time.Minute, Burst: 1})
		n.push("k", 60, time.Millisecond)
		time.Sleep(5 * time.Minute)
		if got := x.by("k", 0)[n.life]; got != 0 {
			t.Errorf("%d calls were made that are not stored", got)
		}
		s.mu.Lock()
		s.away = false
		s.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if got := x.by("k", 0)[n.life]; got != 60 {
			t.Errorf("%d calls were made, want 60", got)
		}
		n.end()
	})
}
