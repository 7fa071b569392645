package fair

import (
	"testing"
	"time"

	"xtimer/engine/flow"
)

// ask has the owner of the one key that has wants told, and grant the calls that it is asked for, with so many places.
func (q *hand) ask(t *testing.T, places int) Want {
	t.Helper()
	list, _ := q.Wants(10)
	if len(list) != 1 {
		t.Errorf("wants: %+v, want those of one key", list)
		return Want{}
	}
	w, g := list[0], &flow.Granted{Places: places}
	if w.Calls > 0 {
		g.Runs = []flow.Run{{N: w.Calls, For: time.Second}}
	}
	q.Grant(&w, g, q.now())
	return w
}

// A key that had a rate only gets places while a call is in flight: the owner does not know of its place before it was told.
func TestAPlaceOfANewLimitIsToldFirst(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.cfg.Wanting = func() {}
		all := func(flow.Name) bool { return true }
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}})
		q.push(q.keyed("a", "t", "k", 5))
		q.ask(t, 0)
		calls := q.look()
		if len(calls) != 1 || !q.HasTold(all) {
			t.Errorf("%d calls, told: %v; want a call, and nothing to tell", len(calls), q.HasTold(all))
		}
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Concurrency: 3}})
		if q.HasTold(all) {
			t.Error("the owner knows of a place that it was not told of")
		}
		if w := q.ask(t, 0); w.Holds != 1 || !q.HasTold(all) {
			t.Errorf("told: %+v, want one place", w)
		}
		endAll(calls)
	})
}

// The owner is told that a node has no place any more when the limit goes, and again when its answer was lost. Then the
// key is forgotten.
func TestAKeyWithoutItsLimitHasNoPlace(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.cfg.Wanting = func() {}
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Concurrency: 3}})
		q.push(q.keyed("a", "t", "k", 5))
		q.ask(t, 1)
		q.SetRule(flowName("a", "k"), nil)
		list, _ := q.Wants(10)
		if len(list) != 1 || list[0].Holds != 0 || list[0].Calls != 0 {
			t.Errorf("told: %+v, want no place", list)
		}
		for i := range list {
			q.Grant(&list[i], nil, q.now())
		}
		endAll(q.look())
		time.Sleep(retryAsk)
		if w := q.ask(t, 0); w.Holds != 0 {
			t.Errorf("told: %+v, want no place", w)
		}
		if list, next := q.Wants(10); len(list) > 0 || next != flow.Never {
			t.Errorf("a key without a limit wants %+v at %v", list, next)
		}
		for i := range manyLanes {
			q.Lane("b", "t", string(rune('a'+i)))
		}
		if _, ok := q.Gate(flowName("a", "k")); ok {
			t.Error("the key is not forgotten")
		}
	})
}
