package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// Mute targets, which accept a call and never answer, hold neither a target of their
// app nor one that was never called before, and when their timers are gone nothing
// counts as overdue.
func TestMuteTargetsLeaveTheRestOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls = 64
		w.start()
		to := func(host string) func(*engine.Definition) {
			return func(d *engine.Definition) { d.App, d.Callback.URL = "app", "http://"+host+"/" }
		}
		var mute []engine.TimerID
		for i := range 40 {
			name := fmt.Sprint("mute", i)
			w.behave(name, func(*call) reply { return timedOut })
			mute = append(mute, w.make(timer(name, every(time.Second), to(fmt.Sprint("mute", i%2)), timeout(15*time.Second))))
		}
		from := w.now()
		healthy := w.make(timer("healthy", every(100*time.Millisecond), to("healthy")))
		time.Sleep(10*time.Second + 20*time.Millisecond)
		later := w.now()
		fresh := w.make(timer("fresh", every(100*time.Millisecond), to("fresh")))
		time.Sleep(20*time.Second + 30*time.Millisecond)
		now := w.now()
		if n := w.metric("xtimer_targets_limited"); n != 2 {
			t.Errorf("%v targets are limited", n)
		}
		if c := w.Calls(1); len(c.Targets) != 1 || c.Targets[0].Answering || c.Targets[0].Waiting < 100 || c.Silent > 32 || c.Places != 64 {
			t.Errorf("calls: %+v", c)
		}
		w.disable(healthy, 0)
		w.disable(fresh, 0)
		for _, id := range mute {
			w.disable(id, 0)
		}
		if n := w.metric("xtimer_tasks_overdue"); n != 0 {
			t.Errorf("%v tasks of disabled timers are overdue", n)
		}
		w.settle()
		w.exact("healthy", healthy, grid(from, now, 100, from), 0)
		w.exact("fresh", fresh, grid(later, now, 100, later), 0)
	})
}

// While memory is full fewer calls may be in flight; then as many as before.
func TestCallsFollowMemory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var full atomic.Bool
		w.config.MaxCalls = 160
		w.config.MemoryFull = func(int64) bool { return full.Load() }
		w.start()
		f := func(after time.Duration, want float64) {
			t.Helper()
			time.Sleep(after)
			if n := w.metric("xtimer_calls_limit"); n != want {
				t.Errorf("%v calls may be in flight, want %v", n, want)
			}
		}
		f(10*time.Second+500*time.Millisecond, 160) // between two looks at memory
		full.Store(true)
		f(2*time.Second, 10)
		full.Store(false)
		f(3*time.Second, 40)
		f(20*time.Second, 160)
	})
}
