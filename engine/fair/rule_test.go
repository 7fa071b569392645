package fair

import (
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
