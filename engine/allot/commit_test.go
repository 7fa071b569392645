package allot

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Commits take their time, always: the calls that they store are made.
func TestASlowKeyWithSlowCommits(t *testing.T) {
	for _, took := range []time.Duration{600 * time.Millisecond, 1900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			x := &among{t: t, began: time.Now(), store: newStore()}
			n := x.startAlone(flow.Limit{Rate: 100, Per: 24 * time.Hour, Burst: 100})
			time.Sleep(time.Second)
			x.store.takes(took)
			n.push("k", 200, 0)
			time.Sleep(10 * time.Second)
			if got := x.by("k", 0)[n.life]; got != 100 {
				t.Errorf("%d calls were made, want 100", got)
			}
			n.end()
		})
	}
}

// Commits of 900 ms, which others wait for: each of three nodes gets calls.
func TestManyNodesWithSlowCommits(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		l := flow.Limit{Rate: 300, Per: 24 * time.Hour, Burst: 300}
		x.delay.Store(int64(time.Millisecond))
		x.store.takes(900 * time.Millisecond)
		x.set("k", l)
		x.give("k", 1)
		time.Sleep(time.Second)
		for range 10 {
			for _, n := range x.all {
				n.push("k", 20, 0)
			}
			time.Sleep(5 * time.Second)
		}
		if by := x.by("k", 0); by[1]+by[2]+by[3] != 300 || min(by[1], by[2], by[3]) < 90 {
			t.Errorf("calls by node: %v, of 300 in the time", by)
		}
	})
}

// Commits are made, but so late that the calls would lapse: none is made then, and all of them when commits are fast
// again. A process that comes between counts them.
func TestACommitThatIsTooLate(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x := &among{t: t, began: time.Now(), store: newStore()}
			l := flow.Limit{Rate: 100, Per: 24 * time.Hour, Burst: 100}
			n := x.startAlone(l)
			time.Sleep(time.Second)
			n.push("k", 40, 0)
			time.Sleep(time.Second)
			x.store.takes(3 * time.Second)
			n.push("k", 50, 0)
			time.Sleep(time.Minute)
			want := 90
			if got := x.by("k", 0)[n.life]; got != 40 {
				t.Errorf("%d calls were made, want 40", got)
			}
			if killed {
				n.end()
				n, want = x.startAlone(l), 10
				n.push("k", 100, 0)
			}
			x.store.takes(3 * time.Millisecond)
			time.Sleep(time.Minute)
			if got := x.by("k", 0)[n.life]; got != want {
				t.Errorf("%d calls were made at last, want %d", got, want)
			}
			n.end()
		})
	}
}

// hung is a store that hangs until ctx ends, while it is away.
type hung struct{ *store }

func (s hung) PutBuckets(ctx context.Context, bs []engine.Bucket) error {
	if s.away.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.store.PutBuckets(ctx, bs)
}

func (s hung) Buckets(ctx context.Context, names []string) ([][]byte, error) {
	if s.away.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.store.Buckets(ctx, names)
}

// The table of buckets hangs for a minute at the owner, and asks end meanwhile: no call is granted to one that has ended.
func TestNoCallForAnAskThatEnded(t *testing.T) {
	withNodes(t, 3, func(t *testing.T, x *among) {
		x.all[0].asker.owner.cfg.Store = hung{x.store}
		for _, n := range x.all[1:] {
			n.asker.SendBy(func(ctx context.Context, address string, b []byte) ([]byte, error) {
				got := make(chan []byte, 1)
				go func() {
					a, _ := n.send(ctx, address, b)
					got <- a
				}()
				select {
				case a := <-got:
					return a, nil
				case <-ctx.Done(): // the owner goes on
					return nil, ctx.Err()
				}
			})
		}
		x.set("k", flow.Limit{Rate: 100, Per: 24 * time.Hour, Burst: 100})
		x.give("k", 1)
		time.Sleep(2 * time.Second)
		x.store.away.Store(true)
		x.all[1].push("k", 50, 0)
		x.all[2].push("k", 50, 0)
		time.Sleep(time.Minute)
		x.store.away.Store(false)
		time.Sleep(time.Minute)
		if by := x.by("k", 0); by[2] != 50 || by[3] != 50 {
			t.Errorf("calls by node: %v, want 50 of two", by)
		}
	})
}

// What was stored for a node that has still to ask waits for it, also when the calls of another one cannot be stored.
func TestWhatIsTakenBack(t *testing.T) {
	l := &flow.Limit{Rate: 100, Per: 24 * time.Hour, Burst: 100}
	b := &book{turn: new(uint64), takers: map[uint64]*taker{2: {}}}
	b.set(l, 0, 0)
	b.takers[2].calls, b.takers[2].until = 3, time.Hour
	b.grant(1, &keyAsk{Calls: 4}, 1, true, 0)
	stored := slices.Clone(b.takers[2].runs)
	f := b.former()
	b.takers[2].calls = 5
	b.grant(1, &keyAsk{Calls: 6}, 2, true, time.Millisecond)
	f.takeBack()
	if got := b.takers[2].runs; !slices.Equal(got, stored) || len(got) != 1 || got[0].N != 3 {
		t.Errorf("for the node that has still to ask: %+v, want %+v", got, stored)
	}
	if k := b.slots.Keep(0, 0); len(k.Calls) != 1 || k.Calls[0][1] != 7 {
		t.Errorf("calls that count: %+v, want 7", k.Calls)
	}
}
