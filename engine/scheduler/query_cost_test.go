package scheduler_test

import (
	"testing"
	"time"

	"xtimer/engine"
)

// A list costs what it returns, however many tasks wait and however often each was
// tried: it copies the page, and of each task the last attempt.
func TestTasksCostsItsPage(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.make(timer("mute", every(10*time.Millisecond)))
		w.replies("mute", slow(time.Hour))
		time.Sleep(time.Minute + 5*time.Millisecond) // between two dues
		const limit = 10
		list := func() []*engine.Task {
			ts, next, err := w.Tasks(t.Context(), engine.TaskFilter{}, engine.Key{}, limit)
			if err != nil || len(ts) != limit || next != ts[limit-1].Key {
				t.Fatalf("%d tasks, next %s, %v", len(ts), next, err)
			}
			return ts
		}
		newest := list()
		for i, x := range newest {
			if x.Key.Due != newest[0].Key.Due-int64(10*i) {
				t.Errorf("task %d of the newest is %s", i, x.Key)
			}
		}
		if n := testing.AllocsPerRun(10, func() { list() }); n > 30*limit {
			t.Errorf("a page of %d of 6,000 tasks takes %v allocations", limit, n)
		}
	})
}

// A list and a timer's last task have the last attempt; the task itself has all.
func TestListsHaveTheLastAttempt(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", delay(time.Second), retry(4, time.Second, 1)))
		w.replies("a", fail, fail, fail, ok)
		check := func(what string, want int) {
			t.Helper()
			ts, _, err := w.Tasks(t.Context(), engine.TaskFilter{}, engine.Key{}, 10)
			if err != nil || len(ts) != 1 {
				t.Fatalf("%s: %d tasks, %v", what, len(ts), err)
			}
			v, err := w.Timer(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := w.Task(t.Context(), ts[0].Key)
			if err != nil || len(whole.Attempts) != want {
				t.Errorf("%s: %d attempts, want %d; %v", what, len(whole.Attempts), want, err)
			}
			for _, x := range []*engine.Task{ts[0], v.LastTask} {
				if len(x.Attempts) != 1 || x.LastAttempt() != want {
					t.Errorf("%s: %d attempts in a list, the last one is %d, want %d", what, len(x.Attempts), x.LastAttempt(), want)
				}
			}
		}
		time.Sleep(3500 * time.Millisecond)
		check("in memory", 3)
		time.Sleep(time.Second)
		w.settle()
		check("in history", 4)
	})
}
