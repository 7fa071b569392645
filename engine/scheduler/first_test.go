package scheduler_test

import (
	"maps"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
)

// The lateness of a first attempt is told when it is made, and while a task waits for it.
func TestFirst(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 1, 1, 1
		var mu sync.Mutex
		told := map[string][]time.Duration{}
		w.config.First = func(_ engine.Key, app, name string, late time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			told[app+"/"+name] = append(told[app+"/"+name], late.Round(time.Second))
		}
		w.start()
		w.replies("a", slow(20*time.Second))
		due := w.now() + 2000
		w.make(timer("a", at(due)))
		w.make(timer("b", at(due+1000)))
		time.Sleep(12 * time.Second)
		if of := w.OverdueOf(); !maps.Equal(of, map[string]int64{"app": 1}) {
			t.Errorf("overdue are %v, want 1 of app", of)
		}
		mu.Lock()
		if b := told["app/b"]; len(b) == 0 || b[0] <= 0 || len(told["app/a"]) != 0 {
			t.Errorf("while b waits, %v was told", told)
		}
		mu.Unlock()
		time.Sleep(30 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if a, b := told["app/a"], told["app/b"]; len(a) != 1 || a[0] != 0 || b[len(b)-1] != 19*time.Second {
			t.Errorf("%v was told", told)
		}
	})
}
