package resident

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/wheel"
)

// The clock is set back while a call is being prepared, as during a slow dial: no byte is sent
// before the due. The task waits for it again, and has its first attempt then.
func TestNoByteBeforeTheDue(t *testing.T) {
	now := int64(10_000)
	clock := func() time.Time { return time.UnixMilli(now) }
	m := New(Config{
		Owned: engine.AllShards, Journal: &silent{}, Now: clock, MaxWaiting: 1000, Bodies: 1 << 20,
		Queue:        fair.New(fair.Config[*Task]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(*Task) fair.Result { return fair.Result{} }}),
		Wheel:        wheel.New(wheel.Config{Now: clock}, func(int64, []Item) {}),
		MemoryFull:   func(int64) bool { return false },
		DiskCritical: func() bool { return false },
		Ended:        func(*engine.Task) {},
	})
	def := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, Anchor: 1000, ValidFrom: 1}
	def.Schedule.Every, def.Callback.URL = time.Second, "http://127.0.0.1:9/"
	p, err := plan.Of(def)
	if err != nil {
		t.Fatal(err)
	}
	sh := m.shardOf(def.ID)
	tk := sh.take(m.join(sh, def, &p), 10_000, now)
	a, _, _ := m.Begin(tk, now, &Body{})
	if now -= 1800; a.Enter() {
		t.Fatal("a byte is sent 1.8 s before the due")
	}
	if tk.state != Retrying || len(tk.Attempts) != 0 || tk.busy {
		t.Errorf("the task is %v, with %d attempts", tk.state, len(tk.Attempts))
	}
	now = 10_000
	if sh.wake(tk.Key, now) != tk {
		t.Fatal("the task is not called at its due")
	}
	if a, _, _ = m.Begin(tk, now, &Body{}); a == nil || a.Attempt != 1 || !a.Enter() {
		t.Error("the first attempt is not made at the due")
	}
}
