package fair

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine/flow"
)

func quotaOf(app string, fires, inFlight int) (flow.Name, *flow.Rule) {
	l := &flow.Limit{Concurrency: inFlight}
	if fires > 0 {
		l.Rate, l.Per, l.Burst = fires, time.Second, fires
	}
	return flow.Name{Kind: flow.OfQuota, App: app}, &flow.Rule{Limit: l}
}

// A quota bounds the calls in flight of its app over all targets, and holds the rest.
func TestAQuotaOfCallsInFlight(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		name, rule := quotaOf("a", 0, 3)
		q.trust("a", "t0", "t1", "t2", "t3")
		q.SetRule(name, rule)
		var calls []*call
		for i := range 12 {
			calls = append(calls, q.keyed("a", fmt.Sprint("t", i%4), "", 5))
		}
		q.push(calls...)
		q.push(q.keyed("b", "t0", "", 5))
		begun := q.look()
		if count(begun, "a", "") != 3 || count(begun, "b", "") != 1 {
			t.Fatalf("%d and %d calls", count(begun, "a", ""), count(begun, "b", ""))
		}
		if n := q.HeldItems()[flow.ByQuota]; n != 9 {
			t.Errorf("%d are held", n)
		}
		if s, _ := q.Gate(name); s.InFlight != 3 || s.Waiting != 9 || q.CallsOf("a") != 3 {
			t.Errorf("%+v, %d calls", s, q.CallsOf("a"))
		}
		var held *call
		for _, c := range calls {
			if c.waits {
				held = c
			}
		}
		time.Sleep(time.Second)
		if by, sums := q.HoldOf(&held.Item); by.By != flow.ByQuota || by.Name != "a" || q.Expected(&held.Item) != flow.Never || len(sums) != 1 || sums[0].Took != time.Second {
			t.Errorf("held by %v: %v", by, sums)
		}
		for made := 3; made < 12; {
			for _, c := range begun {
				c.end()
			}
			begun = q.look()
			made += len(begun)
			if len(begun) == 0 || len(begun) > 3 {
				t.Fatalf("%d calls begin", len(begun))
			}
			time.Sleep(time.Second)
		}
		if sums := held.Held(); len(sums) != 1 || sums[0].By != flow.ByQuota || sums[0].Took < time.Second || sums[0].Took > 3*time.Second {
			t.Errorf("held %v", sums)
		}
		q.SetRule(name, nil)
		for range 12 {
			q.push(q.keyed("a", "t0", "", 5))
		}
		if begun = append(begun, q.look()...); count(begun, "a", "") < 12 {
			t.Errorf("without the quota %d calls are in flight", len(begun))
		}
		for _, c := range begun {
			c.end()
		}
		if n := q.HeldItems(); n != [flow.Causes]int{} {
			t.Errorf("held: %v", n)
		}
	})
}

// A quota of calls a second lets so many go at once, and no more in any second.
func TestAQuotaOfCallsASecond(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		name, rule := quotaOf("a", 10, 0)
		q.SetRule(name, rule)
		for i := range 30 {
			q.push(q.keyed("a", fmt.Sprint("t", i%3), fmt.Sprint("k", i%2), 5))
		}
		at := q.within(5*time.Second, func(c *call) {
			if h := c.Held(); len(h) > 1 || len(h) == 1 && (h[0].By != flow.ByQuota || h[0].Name != "a") {
				t.Errorf("held by %v", h)
			}
			c.end()
		})
		if len(at) != 30 || at[9] != 0 {
			t.Fatalf("%d calls: %v", len(at), at)
		}
		for i := range at[10:] {
			if at[i+10]-at[i] < 1000 {
				t.Fatalf("more than 10 calls in a second: %v", at)
			}
		}
	})
}

// A mute target takes at most a quarter of the calls that a quota allows, and what else it is
// to be called for keeps no other target waiting, whether or not the quota has a rate.
func TestAMuteTargetLeavesRoomInAQuota(t *testing.T) {
	for _, fires := range []int{0, 100} {
		byHand(t, 100, 100, 100, func(q *hand) {
			name, rule := quotaOf("a", fires, 10)
			q.trust("a", "good")
			q.SetRule(name, rule)
			for range 40 {
				q.push(q.keyed("a", "mute", "", 5))
			}
			mute := q.look()
			if len(mute) != 3 {
				t.Fatalf("%d calls to the mute target", len(mute))
			}
			for range 20 {
				c := q.keyed("a", "good", "", 5)
				q.push(c)
				for _, c := range q.look() {
					c.end()
				}
				if q.look(); c.waits {
					t.Fatal("the target that answers has to wait")
				}
			}
			for _, c := range mute {
				c.end()
			}
		})
	}
}

// The lanes of an app share evenly what its quota allows, however much waits in one of them.
func TestLanesShareAQuota(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		name, rule := quotaOf("a", 0, 6)
		q.trust("a", "t0", "t1", "t2")
		q.SetRule(name, rule)
		for range 50 {
			q.push(q.keyed("a", "t0", "", 5))
		}
		first := q.look()
		if len(first) != 6 {
			t.Fatalf("%d calls", len(first))
		}
		for i := range 20 {
			q.push(q.keyed("a", fmt.Sprint("t", 1+i%2), "", 1))
		}
		for _, c := range first {
			c.end()
		}
		next := q.look()
		for _, to := range []string{"t0", "t1", "t2"} {
			if n := count(next, "a", to); n != 2 {
				t.Errorf("%d calls to %s", n, to)
			}
		}
		for _, c := range next {
			c.end()
		}
	})
}

// Calls that the quota of their app holds keep no other app waiting at the limit of a target.
func TestAQuotaDoesNotHoldOtherApps(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.trust("a", "t", "u")
		name, rule := quotaOf("a", 0, 1)
		q.SetRule(name, rule)
		q.SetRule(flow.Name{Kind: flow.OfTarget, Key: "t"}, &flow.Rule{Limit: &flow.Limit{Concurrency: 3}})
		q.push(q.keyed("a", "u", "", 5))
		u := q.look()
		q.push(q.keyed("a", "t", "", 9), q.keyed("a", "t", "", 9))
		for range 5 {
			q.push(q.keyed("b", "t", "", 5))
		}
		if begun := q.look(); len(u) != 1 || count(begun, "b", "t") != 3 || len(begun) != 3 {
			t.Errorf("%d calls, and then %d", len(u), len(begun))
		} else {
			u = append(u, begun...)
		}
		for _, c := range u {
			c.end()
		}
	})
}

// A call that skips the limits of flow keys counts at the quota, and is held by it.
func TestAForcedCallCountsAtTheQuota(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.trust("a", "t")
		name, rule := quotaOf("a", 0, 2)
		q.SetRule(name, rule)
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Concurrency: 1}})
		var forced []*call
		for range 3 {
			c := q.keyed("a", "t", "k", 5)
			c.Lane = q.ForcedLane("a", "t", "k", 0)
			forced = append(forced, c)
		}
		q.push(forced...)
		begun := q.look()
		if len(begun) != 2 || q.HeldItems()[flow.ByQuota] != 1 {
			t.Errorf("%d calls, %d held", len(begun), q.HeldItems()[flow.ByQuota])
		}
		for _, c := range begun {
			c.end()
		}
		for _, c := range q.look() {
			c.end()
		}
	})
}

// A lane has its part of the quota, and its call takes long. The target answers a call of another lane: the lane goes
// on at once.
func TestALaneGoesOnWhenItsTargetAnswers(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		name, rule := quotaOf("a", 0, 4)
		q.SetRule(name, rule)
		q.push(q.keyed("a", "t", "k1", 5))
		long := q.look()
		waits := q.keyed("a", "t", "k1", 5)
		q.push(waits)
		if len(long) != 1 || len(q.look()) != 0 {
			t.Fatal("the lane has more than its part while its target does not answer")
		}
		q.push(q.keyed("a", "t", "k2", 5))
		endAll(q.look())
		if made := q.look(); len(made) != 1 || made[0] != waits {
			t.Errorf("%d calls began when the target had answered", len(made))
		}
		endAll(long)
		waits.end()
	})
}
