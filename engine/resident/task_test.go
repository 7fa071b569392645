package resident

import (
	"testing"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
)

// A timer that left the roster and comes back has tasks of its former time there:
// what ended and is not settled is not called again.
func TestTakeAfterATimerCameBack(t *testing.T) {
	m, sh := &Memory{Lanes: NewLanes(1000), Queue: fair.New(fair.Config[*Task]{Places: 1, PerApp: 1, PerTarget: 1})}, &Shard{Timers: map[engine.TimerID]*Timer{}}
	def := &engine.Timer{ID: 1}
	def.Callback.URL = "http://127.0.0.1:9/"
	lv := m.Join(sh, def, &plan.Plan{})
	if sh.Take(lv, 1000, 1000) == nil || sh.Take(lv, 1000, 1000) != nil {
		t.Error("a due is not taken once")
	}
	delete(sh.Timers, 1)
	lv = m.Join(sh, def, &plan.Plan{})
	if sh.Take(lv, 1000, 1000) != nil {
		t.Error("a due is taken again by a timer that came back")
	}
	if sh.Take(lv, 2000, 2000) == nil {
		t.Error("its next due is not taken")
	}
}

// A redrive has the key of what was settled and is still in memory. When the redrive
// has left memory, nothing of its key is there.
func TestAttachTakesThePlace(t *testing.T) {
	sh, lv := &Shard{}, &Timer{LaneMemory: NewLanes(1000).Of(1), Def: &engine.Timer{ID: 1}}
	for range 2 {
		sh.Enlist(lv, engine.Key{Timer: 1, Due: 1000}, engine.FromRedrive, true, 1000)
	}
	first, second := sh.Order[0], sh.Order[1]
	if sh.Tasks.Find(first.Key) != second || sh.Tasks.Len != 1 {
		t.Errorf("%d tasks of one key", sh.Tasks.Len)
	}
	sh.Tasks.Remove(second)
	if sh.Tasks.Find(first.Key) != nil {
		t.Error("what a redrive took the place of is back")
	}
}
