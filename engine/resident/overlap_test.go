package resident

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/wheel"
)

// Tasks that wait for each other are called in the order of their dues, in whatever order
// workers come with them.
func TestQueueGoesByDue(t *testing.T) {
	now := int64(10_000)
	clock := func() time.Time { return time.UnixMilli(now) }
	m := New(Config{
		Owned:   engine.AllShards,
		Journal: &silent{}, Now: clock, MaxWaiting: 1000, Bodies: 1 << 20,
		Queue:        fair.New(fair.Config[*Task]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(*Task) fair.Result { return fair.Result{} }}),
		Wheel:        wheel.New(wheel.Config{Now: clock}, func(int64, []Item) {}),
		MemoryFull:   func(int64) bool { return false },
		DiskCritical: func() bool { return false },
		Ended:        func(*engine.Task) {},
	})
	def := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, Anchor: 1000, ValidFrom: 1}
	def.Schedule.Every, def.Overlap, def.Callback.URL = time.Second, engine.OverlapQueue, "http://127.0.0.1:9/"
	p, err := plan.Of(def)
	if err != nil {
		t.Fatal(err)
	}
	sh := m.shardOf(def.ID)
	lv := m.join(sh, def, &p)
	tasks := map[int64]*Task{}
	for due := int64(1000); due <= 5000; due += 1000 {
		tasks[due] = sh.take(lv, due, now)
	}
	begin := func(due int64) *Attempt {
		a, _, _ := m.Begin(tasks[due], now, &Body{})
		return a
	}
	for _, due := range []int64{3000, 2000} {
		if begin(due) != nil {
			t.Errorf("%d begins before 1000", due)
		}
	}
	for due := int64(1000); due <= 5000; due += 1000 {
		a := begin(due)
		if a == nil {
			t.Fatalf("%d does not begin in its turn, it is %v", due, tasks[due].state)
		}
		if due == 1000 && begin(5000) != nil {
			t.Error("5000 begins beside 1000")
		}
		a.Enter()
		a.Leave(true)
		a.End(clock(), engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: clock()})
	}
}
