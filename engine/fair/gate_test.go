package fair

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"xtimer/engine/flow"
)

func flowName(app, key string) flow.Name { return flow.Name{Kind: flow.OfFlow, App: app, Key: key} }

// keyed is a call of a lane with flow keys.
func (q *hand) keyed(app, to, keys string, priority uint8) *call {
	c := &call{app: app, to: to, done: make(chan Result, 1)}
	c.Item = Item[*call]{Value: c, Lane: q.Lane(app, to, keys), Priority: priority, Ready: time.Now().UnixMilli()}
	return c
}

// made are the calls that began within a time, ended at once, by when they began (ms).
func (q *hand) within(d time.Duration, end func(*call)) (at []int64) {
	began := time.Now()
	for time.Since(began) < d {
		for _, c := range q.look() {
			at = append(at, time.Since(began).Milliseconds())
			end(c)
		}
		time.Sleep(time.Millisecond)
	}
	return at
}

func TestARateIsKeptEvenlyAndNoCallIsLate(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}})
		for i := range 30 {
			q.push(q.keyed("a", fmt.Sprint("t", i%3), "k", 5))
		}
		other := q.keyed("b", "t0", "k", 5) // the key of another app
		q.push(other)
		free := q.keyed("a", "t0", "", 5)
		q.push(free)
		at := q.within(5*time.Second, (*call).end)
		if len(at) != 32 {
			t.Fatalf("%d calls: %v", len(at), at)
		}
		for i, ms := range at[2:] {
			if ms != int64(100*i) {
				t.Fatalf("call %d after %d ms: %v", i, ms, at)
			}
		}
		if waiting, _ := q.Load(); waiting != 0 {
			t.Errorf("%d wait", waiting)
		}
		if n := q.HeldItems(); n != [flow.Causes]int{} {
			t.Errorf("held: %v", n)
		}
	})
}

func TestPriorityOrdersWithinAKey(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 1, Per: time.Second, Burst: 1}})
		first := q.keyed("a", "t0", "k", 5)
		q.push(first)
		low, high, middle := q.keyed("a", "t0", "k", 1), q.keyed("a", "t1", "k", 9), q.keyed("a", "t2", "k k2", 5)
		q.push(low, middle, high)
		var order []*call
		q.within(4*time.Second, func(c *call) { order = append(order, c); c.end() })
		if !slices.Equal(order, []*call{first, high, middle, low}) {
			t.Errorf("%d calls, in another order", len(order))
		}
	})
}

func TestAllKeysAdmit(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flowName("a", "user-*"), &flow.Rule{Limit: &flow.Limit{Rate: 1, Per: time.Second, Burst: 1}})
		q.SetRule(flowName("a", "all"), &flow.Rule{Limit: &flow.Limit{Concurrency: 2}})
		for i := range 9 {
			q.push(q.keyed("a", "t", fmt.Sprintf("user-%d all", i%3), 5))
		}
		var flying []*call
		q.within(900*time.Millisecond, func(c *call) { flying = append(flying, c) })
		if len(flying) != 2 {
			t.Fatalf("%d calls with 2 places", len(flying))
		}
		if n := q.HeldItems(); n[flow.ByFlow] != 7 {
			t.Errorf("held: %v", n)
		}
		for _, c := range flying {
			c.end()
		}
		if at := q.within(5*time.Second, (*call).end); len(at) != 7 || at[6] < 1000 {
			t.Errorf("%v", at)
		}
	})
}

func TestAnAppIsPausedAndResumed(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		paused := flow.Name{Kind: flow.OfApp, App: "a"}
		q.push(q.call("a", "t", 5, 0))
		q.look()[0].end()
		q.SetRule(paused, &flow.Rule{Paused: flow.Never})
		a, b := q.call("a", "t", 5, 0), q.call("b", "t", 5, 0)
		q.push(a, b)
		if made := q.look(); len(made) != 1 || made[0] != b {
			t.Fatalf("%d calls while app a is paused", len(made))
		}
		b.end()
		time.Sleep(10 * time.Second)
		if by, sums := q.HoldOf(&a.Item); by.By != flow.ByPause || by.Name != "a" || len(sums) != 1 || sums[0].Took != 10*time.Second {
			t.Errorf("held by %+v: %+v", by, sums)
		}
		q.SetRule(paused, nil)
		if made := q.look(); len(made) != 1 {
			t.Fatalf("%d calls after the pause", len(made))
		}
		if got := a.Held(); len(got) != 1 || got[0] != (HoldSum{flow.ByPause, "a", 10 * time.Second}) {
			t.Errorf("%+v", got)
		}
		a.end()
		q.SetRule(paused, &flow.Rule{Paused: q.Now() + time.Minute})
		c := q.call("a", "t", 5, 0)
		q.push(c)
		time.Sleep(time.Minute - 1)
		if len(q.look()) != 0 {
			t.Error("a call in the pause")
		}
		time.Sleep(time.Nanosecond)
		if len(q.look()) != 1 {
			t.Error("no call after the pause")
		}
		c.end()
	})
}

func TestATargetCoolsDown(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flow.Name{Kind: flow.OfTarget, Key: "t"}, &flow.Rule{Limit: &flow.Limit{Cooldown: true}})
		a, b := q.call("a", "t", 5, 0), q.call("b", "t", 5, 0)
		q.push(a)
		q.look()
		a.done <- Result{Ended: Answered, Bad: true, Close: 7 * time.Second}
		synctest.Wait()
		q.push(b)
		if at := q.within(9*time.Second, (*call).end); !slices.Equal(at, []int64{7000}) {
			t.Errorf("calls at %v", at)
		}
		if got := b.Held(); len(got) != 1 || got[0].By != flow.ByCooldown || got[0].Name != "t" {
			t.Errorf("%+v", got)
		}
	})
}

// The limit of a target is that of all apps together, however their URLs spell the target. A
// lane to another target has no gate, and goes on.
func TestATargetIsOneForAllApps(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		name := flow.Name{Kind: flow.OfTarget, Key: flow.TargetOf("https://Partner")}
		q.SetRule(name, &flow.Rule{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}})
		for i := range 30 {
			q.push(q.keyed([]string{"a", "b", "c"}[i%3], []string{"https://partner", "HTTPS://PARTNER:443", "https://u@partner:0443"}[i%3], []string{"", "k"}[i%2], 5))
		}
		other := q.call("a", "https://partner:444", 5, 0)
		q.push(other)
		begun := q.look()
		if len(begun) != 2 || other.waits || other.Lane.IsGated() {
			t.Error("the limit of a target holds calls to another")
		}
		for _, c := range begun {
			c.end()
		}
		if s, _ := q.Gate(name); s.Waiting != 29 {
			t.Errorf("%+v", s)
		}
		at := q.within(3*time.Second, (*call).end)
		for i := range at {
			if i >= 10 && at[i]-at[i-10] < 1000 {
				t.Fatalf("more than 10 calls in a second: %v", at)
			}
		}
		if len(at) != 29 {
			t.Errorf("%d calls: %v", len(at), at)
		}
	})
}

// No limit holds a forced item, and its call does not count; a pause of the key does, and then
// no limit keeps it waiting behind others.
func TestAForcedItemSkipsLimits(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		limit := &flow.Limit{Rate: 1, Per: time.Minute, Burst: 1, Concurrency: 1, HoldTask: true}
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: limit, Paused: time.Second})
		forced := func() *call {
			c := q.keyed("a", "t", "k", 0)
			c.Lane = q.ForcedLane("a", "t", "k", 0)
			return c
		}
		plain, other, first, second := q.keyed("a", "t", "k", 9), q.keyed("a", "t", "k", 9), forced(), forced()
		q.push(plain, other, first)
		if len(q.look()) != 0 {
			t.Fatal("a call in a pause")
		}
		time.Sleep(time.Second)
		if begun := q.look(); len(begun) != 2 || first.waits || plain.waits {
			t.Fatalf("%d calls after the pause; forced waits %v, the first of the others %v", len(begun), first.waits, plain.waits)
		}
		q.push(second)
		if begun := q.look(); len(begun) != 1 || second.waits {
			t.Fatal("a limit holds a forced item")
		}
		if s, _ := q.Gate(flowName("a", "k")); s.InFlight != 1 {
			t.Errorf("%d calls count", s.InFlight)
		}
		for _, c := range []*call{plain, first, second} {
			c.end()
		}
		q.Remove(&other.Item)
	})
}

// A task that is to be tried again goes before those that wait for its place.
func TestATaskKeepsItsPlaceUntilItLeaves(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Concurrency: 1, HoldTask: true}})
		a, b := q.keyed("a", "t", "k", 5), q.keyed("a", "u", "k", 5)
		q.push(a, b)
		if made := q.look(); len(made) != 1 || made[0] != a || !a.Keeps() {
			t.Fatalf("%d calls", len(made))
		}
		a.end()
		if len(q.look()) != 0 {
			t.Fatal("another task has the place")
		}
		c := q.keyed("a", "t", "k", 9)
		q.push(c)
		a.Again(a, a.Lane, 0, 5)
		q.push(a)
		if made := q.look(); len(made) != 1 || made[0] != a {
			t.Fatalf("%d calls, and not the one of the task", len(made))
		}
		a.end()
		synctest.Wait()
		q.Leave(&a.Item)
		if made := q.look(); len(made) != 1 || made[0] != c {
			t.Fatalf("%d calls after its end", len(made))
		}
		c.end()
		synctest.Wait()
		q.Remove(&c.Item)
		q.Leave(&c.Item)
		if made := q.look(); len(made) != 1 || made[0] != b {
			t.Fatalf("%d calls at last", len(made))
		}
		b.end()
	})
}

// What has no gates, pays for none, and lanes find their gates anew when rules change.
func TestRulesComeAndGo(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		l := q.Lane("a", "t", "x y")
		if l.held != nil || l.IsGated() {
			t.Error("a lane without rules has gates")
		}
		q.SetRule(flowName("a", "x"), &flow.Rule{Limit: &flow.Limit{Concurrency: 1}})
		if !l.IsGated() || len(l.held.gates) != 1 {
			t.Error("no gate")
		}
		a, b := q.keyed("a", "t", "x y", 5), q.keyed("a", "t", "x y", 5)
		q.push(a, b)
		if len(q.look()) != 1 {
			t.Error("not one call")
		}
		q.SetRule(flowName("a", "x"), nil)
		if l.IsGated() || len(q.look()) != 1 {
			t.Error("held by a rule that is gone")
		}
		a.end()
		b.end()
		synctest.Wait()
		if g := q.gates[flowName("a", "x")]; g == nil || !g.IsIdle(q.now()) || g.users != 0 {
			t.Errorf("%+v", g)
		}
		q.mu.Lock()
		q.prune()
		q.mu.Unlock()
		if len(q.gates) != 0 {
			t.Error("the gate stays")
		}
	})
}

// Random rules, keys, priorities and ends: no window has more calls than the rate, no
// more are in flight than there are places, and nothing waits for ever.
func TestGatesKeepTheirRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type limit struct{ rate, places int }
		limits := map[string]limit{}
		for i := range 3 {
			limits[fmt.Sprint("k", i)] = limit{rapid.IntRange(0, 20).Draw(rt, "rate"), rapid.IntRange(0, 3).Draw(rt, "places")}
		}
		seed := rapid.SliceOfN(rapid.IntRange(0, 1000), 60, 60).Draw(rt, "draws")
		byHand(t, 8, 6, 8, func(q *hand) {
			for key, l := range limits {
				fl := &flow.Limit{Rate: l.rate, Per: time.Second, Burst: 1, Concurrency: l.places}
				if *fl != (flow.Limit{Per: time.Second, Burst: 1}) {
					q.SetRule(flowName("a", key), &flow.Rule{Limit: fl})
				}
			}
			keysOf := []string{"", "k0", "k1", "k2", "k0 k1", "k1 k2", "k0 k1 k2"}
			calls := map[string][]time.Duration{}
			flying := map[string]int{}
			began, done := time.Now(), 0
			var open []*call
			step := func(n int) {
				for _, c := range q.look() {
					for _, name := range c.Lane.name.gates(c.Lane.target.key)[2:] {
						calls[name.Key] = append(calls[name.Key], c.began.Sub(began))
						if flying[name.Key]++; limits[name.Key].places > 0 && flying[name.Key] > limits[name.Key].places {
							rt.Fatalf("%d calls of %s in flight", flying[name.Key], name.Key)
						}
					}
					open = append(open, c)
				}
				if len(open) > 0 && n%3 == 0 {
					c := open[n%len(open)]
					open = slices.DeleteFunc(open, func(x *call) bool { return x == c })
					for _, name := range c.Lane.name.gates(c.Lane.target.key)[2:] {
						flying[name.Key]--
					}
					done++
					c.end()
				}
				time.Sleep(time.Duration(n%50) * time.Millisecond)
			}
			for _, n := range seed {
				q.push(q.keyed("a", fmt.Sprint("t", n%3), keysOf[n%7], uint8(n%10)))
				step(n)
			}
			for i := 0; done < len(seed); i++ {
				if step(i * 3); i > 5000 {
					rt.Fatalf("%d of %d calls after %v", done, len(seed), time.Since(began))
				}
			}
			for key, at := range calls {
				slices.Sort(at)
				for i := range at {
					if r := limits[key].rate; r > 0 && i >= r && at[i]-at[i-r] < time.Second {
						rt.Fatalf("%s: more than %d calls in a second", key, r)
					}
				}
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, g := range q.gates {
				if g.stands != 0 || !g.lanes.empty() {
					rt.Fatalf("gate %v: %d stand, %d are held", g.name, g.stands, len(g.lanes.entries))
				}
			}
			if q.held != [flow.Causes]int{} {
				rt.Fatalf("held: %v", q.held)
			}
		})
	})
}

// A pause of all apps holds the calls of each, and a target that does not answer has no other
// app wait when the pause ends by itself.
func TestAllAppsArePausedAndResumed(t *testing.T) {
	byHand(t, 8, 8, 8, func(q *hand) {
		all := flow.Name{Kind: flow.OfApp, App: flow.EachApp}
		var mute []*call
		for range 8 {
			mute = append(mute, q.call("a", "mute", 5, 0))
		}
		q.push(mute...)
		flying := q.look() // as many as a target may have that never answered
		q.SetRule(all, &flow.Rule{Paused: q.Now() + time.Minute})
		b, c := q.call("b", "t", 5, 0), q.call("c", "u", 5, 0)
		q.push(b, c)
		time.Sleep(time.Minute - 1)
		if made := q.look(); len(made) != 0 {
			t.Fatalf("%d calls in the pause", len(made))
		}
		if by, _ := q.HoldOf(&b.Item); by.By != flow.ByPause || by.Name != "*" {
			t.Errorf("held by %+v", by)
		}
		time.Sleep(time.Nanosecond)
		if made := q.look(); !slices.Contains(made, b) || !slices.Contains(made, c) {
			t.Errorf("%d calls after the pause, %d in flight before", len(made), len(flying))
		}
		q.SetRule(all, &flow.Rule{Paused: flow.Never})
		d := q.call("d", "v", 5, 0)
		q.push(d)
		if made := q.look(); len(made) != 0 {
			t.Fatalf("%d calls in the second pause", len(made))
		}
		q.SetRule(all, nil)
		if made := q.look(); !slices.Contains(made, d) {
			t.Error("no call after the second pause")
		}
		for _, x := range append(mute, b, c, d) {
			if !x.waits {
				x.end()
			}
		}
	})
}

// TestManyLanesAreLetOut: a pause of all apps that holds more lanes than are let out at once
// ends for all of them, by its time or by a rule, some at a time.
func TestManyLanesAreLetOut(t *testing.T) {
	const lanes = 10*atOnce + 7
	for _, byTime := range []bool{true, false} {
		byHand(t, 2*lanes, 2*lanes, 2*lanes, func(q *hand) {
			all := flow.Name{Kind: flow.OfApp, App: flow.EachApp}
			end := q.Now() + 100*time.Millisecond
			for i := range lanes / 2 {
				q.push(q.keyed(fmt.Sprint("a", i%3), fmt.Sprint("t", i), "", 5))
			}
			before := len(q.within(10*time.Millisecond, (*call).end))
			q.SetRule(all, &flow.Rule{Paused: end})
			for i := range lanes {
				q.push(q.keyed(fmt.Sprint("a", i%3), fmt.Sprint("t", i), "", 5))
			}
			if n := q.HeldItems()[flow.ByPause]; n != lanes {
				t.Errorf("%d calls are held, want %d", n, lanes)
			}
			first := 0
			if byTime {
				time.Sleep(end - q.Now())
				for _, c := range q.look() {
					first++
					defer c.end()
				}
				if n := q.HeldItems()[flow.ByPause]; first != atOnce || n != lanes-atOnce {
					t.Errorf("at the end of the pause %d calls begin, and %d are held; want %d and %d", first, n, atOnce, lanes-atOnce)
				}
			} else {
				q.SetRule(all, nil)
			}
			after := first + len(q.within(10*time.Millisecond, (*call).end))
			if before != lanes/2 || after != lanes {
				t.Errorf("%d and %d calls, want %d and %d", before, after, lanes/2, lanes)
			}
		})
	}
}

// A breaker that opens is counted until a call succeeds, or the limit has none any more.
func TestOpenBreakersAreCounted(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		limit := flow.Limit{Breaker: flow.Breaker{Share: 0.5, Of: 2, Within: time.Minute, Open: time.Second, MaxOpen: time.Minute}}
		for _, end := range []func(k flow.Name){
			func(k flow.Name) {
				time.Sleep(2 * time.Second)
				for _, c := range q.look() { // the one that is tried
					if q.OpenBreakers() != 1 {
						t.Error("a breaker that is tried is not counted")
					}
					c.end()
				}
				q.look()
			},
			func(k flow.Name) { q.SetRule(k, &flow.Rule{Limit: &flow.Limit{Concurrency: 5}}) },
			func(k flow.Name) { q.SetRule(k, nil) },
		} {
			k := flowName("a", "k")
			q.SetRule(k, &flow.Rule{Limit: &limit})
			for range 2 {
				q.push(q.keyed("a", "t", "k", 5))
				for _, c := range q.look() {
					c.done <- Result{Ended: Answered, Bad: true}
				}
				q.look()
			}
			if names := q.Broken(); len(names) != 1 || names[0] != k || q.OpenBreakers() != 1 {
				t.Errorf("%v are open, %d", names, q.OpenBreakers())
			}
			q.push(q.keyed("a", "t", "k", 5))
			if end(k); q.OpenBreakers() != 0 || len(q.Broken()) != 0 {
				t.Errorf("%d are open", q.OpenBreakers())
			}
			for _, c := range q.look() {
				c.end()
			}
			q.look()
			q.SetRule(k, nil)
		}
	})
}

// For how long a response has closed a key counts as long as its limit does, and until somebody opens the key; a
// pause, a cooldown of the rule and another limit do not change that.
func TestACooldownEnds(t *testing.T) {
	k := flowName("a", "k")
	limit := func(cooldown bool) *flow.Limit {
		return &flow.Limit{Rate: 1000, Per: time.Second, Burst: 1, Cooldown: cooldown}
	}
	for _, rule := range []*flow.Rule{{Limit: limit(true), Opened: 1}, {Limit: limit(false)}, {Paused: 1}, nil} {
		byHand(t, 100, 100, 100, func(q *hand) {
			q.SetRule(k, &flow.Rule{Limit: limit(true)})
			q.push(q.keyed("a", "t", "k", 5))
			q.look()[0].done <- Result{Ended: Answered, Close: 3 * time.Minute}
			q.push(q.keyed("a", "t", "k", 5))
			calls := func(d time.Duration) int { return len(q.within(d, (*call).end)) }
			n := calls(time.Second)
			q.SetRule(k, &flow.Rule{Limit: limit(true), Cooldown: q.Now() + time.Second})
			n += calls(2 * time.Second)
			q.SetRule(k, &flow.Rule{Limit: limit(true), Paused: q.Now() + time.Second})
			n += calls(2 * time.Second)
			q.SetRule(k, &flow.Rule{Limit: &flow.Limit{Rate: 2000, Per: time.Second, Burst: 1, Cooldown: true}})
			n += calls(time.Second)
			if s, _ := q.Gate(k); n != 0 || s.Closed < 2*time.Minute {
				t.Errorf("%d calls while a response has closed the key; closed until %v", n, s.Closed)
			}
			q.SetRule(k, rule)
			n = calls(time.Second)
			if s, _ := q.Gate(k); n != 1 || s.Closed != 0 {
				t.Errorf("%d calls under %+v; closed until %v", n, rule, s.Closed)
			}
		})
	}
}

// A breaker that opens while the rate holds lanes has held their items for as long as it was open: max_age of a task
// stands still meanwhile.
func TestABreakerThatOpensHasHeld(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		k := flowName("a", "k")
		breaker := flow.Breaker{Share: 1, Of: 2, Within: time.Minute, Open: 10 * time.Second, MaxOpen: time.Minute}
		q.SetRule(k, &flow.Rule{Limit: &flow.Limit{Rate: 2, Per: time.Second, Burst: 1, Breaker: breaker}})
		for i := range 6 {
			q.push(q.keyed("a", fmt.Sprint("t", i%3), "k", 5))
		}
		bad := 2
		held := map[string]time.Duration{}
		q.within(20*time.Second, func(c *call) {
			if bad--; bad >= 0 {
				c.done <- Result{Ended: Answered, Bad: true}
				return
			}
			for _, h := range c.Item.Held() {
				held[fmt.Sprint(h.By, " ", c.to)] += h.Took.Round(time.Second)
			}
			c.end()
		})
		if held["breaker t2"] != 20*time.Second || held["breaker t0"]+held["breaker t1"] != 20*time.Second || held["flow t2"] > 5*time.Second {
			t.Errorf("the breaker was open for 10 s, while two calls to t2 and two to the other targets waited; held: %v", held)
		}
	})
}

// What is a row while its lane is paused, and comes when the rate of a key holds the lane, was held by the pause.
func TestRowsOfAPauseWereHeldByIt(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		app := flow.Name{Kind: flow.OfApp, App: "a"}
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 1, Per: time.Second, Burst: 1}})
		q.SetRule(app, &flow.Rule{Paused: flow.Never})
		for range 100 {
			q.push(q.keyed("a", "t", "k", 5))
		}
		time.Sleep(time.Hour)
		q.SetRule(app, nil)
		time.Sleep(5 * time.Second)
		for _, c := range q.look() {
			c.end()
		}
		for row, want := range map[time.Duration]time.Duration{time.Hour: time.Hour - 5*time.Second, 2 * time.Hour: time.Hour, 5 * time.Second: 0} {
			rows := map[flow.By]time.Duration{}
			for _, s := range q.Causes(q.Lane("a", "t", "k"), row) {
				rows[s.By] += s.Took
			}
			if rows[flow.ByPause].Round(time.Second) != want || rows[flow.ByPause]+rows[flow.ByFlow] != row {
				t.Errorf("a row of %v ago: %v, want %v by the pause", row, rows, want)
			}
		}
	})
}
