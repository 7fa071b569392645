package resident

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/wheel"
)

// A task may leave memory after the lock of its shard is given up and before it is pushed into
// the queue. The queue hands it out all the same; it keeps no place of its flow key.
func TestPlaceOfATaskThatLeftBeforeItsPush(t *testing.T) {
	var m *Memory
	now, begun := int64(100_000), make(chan bool)
	clock := func() time.Time { return time.UnixMilli(now) }
	m = New(Config{
		Owned: engine.AllShards, Journal: &silent{}, Now: clock, MaxWaiting: 1000, Bodies: 1 << 20,
		Queue: fair.New(fair.Config[*Task]{Places: 4, PerApp: 4, PerTarget: 4, Run: func(tk *Task) fair.Result {
			a, _, _ := m.Begin(tk, now, &Body{})
			begun <- a != nil
			return fair.Result{}
		}}),
		Wheel:      wheel.New(wheel.Config{Now: clock}, func(int64, []Item) {}),
		MemoryFull: func(int64) bool { return false }, DiskCritical: func() bool { return false }, Ended: func(*engine.Task) {},
	})
	defer m.Queue.Close()
	m.Queue.SetRule(flow.Name{Kind: flow.OfFlow, App: "app", Key: "k"}, &flow.Rule{Started: true, Limit: &flow.Limit{Concurrency: 1, HoldTask: true}})
	def := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, Anchor: 1000, ValidFrom: 1}
	def.App, def.Schedule.Every, def.Callback.URL, def.Flow = "app", time.Second, "http://127.0.0.1:9/", engine.Flow("k")
	add := func(due int64, leaves bool) {
		t.Helper()
		sh := m.lock(1)
		tk, err := m.addRow(sh, def, engine.Owed{Key: engine.Key{Timer: 1, Due: due}, Generation: 1, NotBefore: due, Lane: def.Lane()}, nil, now)
		if err != nil || tk == nil {
			t.Fatal(tk, err)
		}
		if leaves {
			m.forget(sh, tk)
		}
		sh.mu.Unlock()
		m.Enqueue([]*Task{tk})
	}
	add(2000, true)
	if <-begun {
		t.Fatal("a task that left memory is called")
	}
	add(3000, false)
	select {
	case is := <-begun:
		if !is {
			t.Error("the next task is not called")
		}
	case <-time.After(10 * time.Second):
		t.Error("the next task waits for a place that nobody gives back")
	}
}
