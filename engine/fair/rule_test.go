package fair

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine/flow"
)

// A rule that is put again as it stands, from an object that was read again, touches no lane; any other is
// in force.
func TestAnEqualRuleIsLeft(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		x := flowName("a", "x")
		l := q.Lane("a", "t", "x")
		rule := func() *flow.Rule {
			return &flow.Rule{Limit: &flow.Limit{Rate: 1, Per: time.Second, Burst: 1}, Started: true}
		}
		first := rule()
		q.SetRule(x, first)
		isFirst := func() bool { return l.held.gates[0].rule.Limit == first.Limit }
		again := rule()
		again.Started = false // as somebody's write that changes nothing
		for _, r := range []*flow.Rule{rule(), again, first} {
			if q.SetRule(x, r); !isFirst() || !l.held.gates[0].rule.Started {
				t.Error("an equal rule has taken the place of the first")
			}
		}
		for i, change := range []func(*flow.Rule){
			func(r *flow.Rule) { r.Limit.Burst = 2 },
			func(r *flow.Rule) { r.Paused = flow.Never },
			func(r *flow.Rule) { r.Cooldown = time.Hour },
			func(r *flow.Rule) { r.Opened = 1 },
			func(r *flow.Rule) { r.PausedSince = 1 },
			func(r *flow.Rule) { r.Limit = nil },
		} {
			r := rule()
			change(r)
			if q.SetRule(x, r); *q.rules.Of(x) != *r || r.Limit != nil && l.held.gates[0].rule.Limit != r.Limit {
				t.Errorf("rule %d is not in force", i)
			}
		}
		q.SetRule(x, nil)
		q.SetRule(x, nil)
		if l.IsGated() {
			t.Error("held by a rule that is gone")
		}
	})
}

// A rule is in force for all lanes that it concerns, also those that are made while it is put, and no
// lane of others; lanes are forgotten meanwhile.
func TestARuleIsPutWhileLanesAreMade(t *testing.T) {
	q := New(Config[int]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(int) (r Result) { return r }})
	defer q.Close()
	name := func(i int) (app, to, key string) {
		return fmt.Sprint("app-", i%2), fmt.Sprint("http://t", i%3), fmt.Sprint("k", i)
	}
	lanes, made := make([]*Lane[int], 2*manyLanes), make(chan struct{})
	go func() {
		for i := range lanes {
			lanes[i] = q.Lane(name(i))
		}
		close(made)
	}()
	limit := &flow.Limit{Rate: 1, Per: time.Second, Burst: 1}
	names := []flow.Name{flowName("app-0", "k1*"), {Kind: flow.OfTarget, Key: flow.TargetOf("http://t1")}, {Kind: flow.OfApp, App: "app-1"}, {Kind: flow.OfQuota, App: "app-0"}}
	for put, done := 0, false; !done || put%8 != 6; put++ { // two of the four are in force at last
		var rule *flow.Rule
		if put%8 < 4 {
			rule = &flow.Rule{Limit: limit}
		}
		q.SetRule(names[put%4], rule)
		select {
		case <-made:
			done = true
		default:
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, l := range lanes {
		want := 0
		for _, n := range l.name.gates(l.target.key) {
			if q.rules.Match(n) != (flow.Rule{}) {
				want++
			}
		}
		has := 0
		if l.held != nil {
			has = len(l.held.gates)
		}
		if !l.dead.Load() && has != want {
			t.Fatalf("lane %d has %d gates, not %d", i, has, want)
		}
	}
	if len(q.lanes) == len(lanes) {
		t.Error("no lane was forgotten")
	}
}
