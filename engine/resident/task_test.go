package resident

import (
	"fmt"
	"testing"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
)

// A timer that left the roster and comes back has tasks of its former time there:
// what ended and is not settled is not called again.
func TestTakeAfterATimerCameBack(t *testing.T) {
	q := fair.New(fair.Config[*Task]{Places: 1, PerApp: 1, PerTarget: 1})
	m, sh := &Memory{Lanes: newLanes(1000, q), Queue: q}, &shard{backlogs: &Backlogs{}, timers: map[engine.TimerID]*Timer{}}
	def := &engine.Timer{ID: 1}
	def.Callback.URL = "http://127.0.0.1:9/"
	lv := m.join(sh, def, &plan.Plan{})
	if sh.take(lv, 1000, 1000) == nil || sh.take(lv, 1000, 1000) != nil {
		t.Error("a due is not taken once")
	}
	delete(sh.timers, 1)
	lv = m.join(sh, def, &plan.Plan{})
	if sh.take(lv, 1000, 1000) != nil {
		t.Error("a due is taken again by a timer that came back")
	}
	if sh.take(lv, 2000, 2000) == nil {
		t.Error("its next due is not taken")
	}
}

// What a timer's turn costs does not grow with the tasks that wait for it: they are a list
// by due, which is nearly always the order in which they come.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("%d-waiting", n), func(b *testing.B) {
			lv := &Timer{def: &engine.Timer{}}
			for due := range n {
				lv.insert(&Task{timer: lv, state: Queued, Task: engine.Task{Key: engine.Key{Due: int64(due)}}})
			}
			for b.Loop() {
				t := lv.first()
				lv.remove(t)
				t.Key.Due += int64(n)
				lv.insert(t)
			}
		})
	}
}
