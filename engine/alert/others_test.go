package alert

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A state that several nodes have is one with the sum of theirs. No state is looked for among all
// others: there may be as many as open breakers. That would take 100 times as long.
func TestWithOthers(t *testing.T) {
	state := func(of, n int) State { return State{Word: "backlog", App: "shop", Of: fmt.Sprint(of), N: int64(n)} }
	a := &Alerter{lead: lead{states: map[string][]State{"b": {state(2, 1), state(3, 1)}, "c": {state(3, 1)}}}}
	got := a.withOthers([]State{state(1, 1), state(2, 1)})
	if want := []State{state(1, 1), state(2, 2), state(3, 2)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var own, others []State
	for i := range 5000 {
		own, others = append(own, state(i, 1)), append(others, state(5000+i, 1))
	}
	from := time.Now()
	all := slices.Clone(own)
	for _, s := range others {
		if !slices.ContainsFunc(all, func(x State) bool { return x.Word == s.Word && x.App == s.App && x.Of == s.Of }) {
			all = append(all, s)
		}
	}
	looked := time.Since(from)
	a.lead.states = map[string][]State{"b": others}
	from = time.Now()
	got = a.withOthers(own)
	if took := time.Since(from); took > looked/4 || !slices.Equal(got, all) {
		t.Errorf("%d states in %v, and in %v if each is looked for among all", len(got), took, looked)
	}
}
