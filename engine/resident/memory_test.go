package resident

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/wheel"
)

// quietConfig is of a memory that calls nothing and whose clock stands.
func quietConfig(now *int64) Config {
	clock := func() time.Time { return time.UnixMilli(*now) }
	return Config{
		Owned: engine.AllShards, Journal: &silent{}, Now: clock, MaxWaiting: 1000, Bodies: 1 << 20,
		Queue:        fair.New(fair.Config[*Task]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(*Task) fair.Result { return fair.Result{} }}),
		Wheel:        wheel.New(wheel.Config{}, func(int64, []Item) {}), // it does not run: by the test's clock it would have steps to notice
		MemoryFull:   func(int64) bool { return false },
		DiskCritical: func() bool { return false },
		Ended:        func(*engine.Task) {},
	}
}

// everySecond is the definition of a timer that is due each second.
func everySecond() *engine.Timer {
	def := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, Anchor: 1000, ValidFrom: 1}
	def.Schedule.Every, def.Callback.URL = time.Second, "http://127.0.0.1:9/"
	return def
}

// joined takes a timer into memory.
func joined(t *testing.T, m *Memory, def *engine.Timer) (*shard, *Timer) {
	t.Helper()
	p, err := plan.Of(def)
	if err != nil {
		t.Fatal(err)
	}
	sh := m.shardOf(def.ID)
	return sh, m.join(sh, def, &p)
}
