package scheduler_test

import (
	"testing"
	"time"

	"xtimer/engine"
)

// TestPhases: what is before a call is told apart, and is all of its lateness.
func TestPhases(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		// Calls of 1.5 s every second, one after the other: each waits half a
		// second longer for its turn, and none of it in the wheel.
		id := w.make(timer("turns", engine.Schedule{Every: time.Second, MaxRuns: 4}, overlap(engine.OverlapQueue)))
		w.replies("turns", slow(1500*time.Millisecond))
		time.Sleep(10 * time.Second)
		w.settle()
		for i, task := range w.records(id) {
			a := task.Attempts[0]
			if p := a.Phases; p.Wheel+p.Queue != task.Lateness || p.Wheel >= 10*time.Millisecond || (p.Queue-time.Duration(i)*500*time.Millisecond).Abs() > 20*time.Millisecond {
				t.Errorf("call %d, %v late: %+v", i, task.Lateness, p)
			}
		}

		// A retry counts from its own time, not from the due.
		id = w.make(timer("again", delay(time.Second), retry(2, 3*time.Second, 1)))
		w.replies("again", reply{class: engine.ClassRetry, code: 503}, reply{})
		w.settle()
		as := w.records(id)[0].Attempts
		if len(as) != 2 || as[1].Phases.Wheel+as[1].Phases.Queue >= 10*time.Millisecond {
			t.Errorf("a retry: %+v", as)
		}

		// What was due while nobody was there was late before it came to the queue.
		id = w.make(timer("down", delay(time.Second)))
		w.crash(9 * time.Second)
		w.settle()
		task := w.records(id)[0]
		if p := task.Attempts[0].Phases; p.Wheel < 8*time.Second || p.Wheel+p.Queue != task.Lateness {
			t.Errorf("after a crash, %v late: %+v", task.Lateness, p)
		}

		// One that is never sent began when its dialling did.
		id = w.make(timer("unsent", delay(time.Second), retry(1, time.Second, 1)))
		w.replies("unsent", reply{class: engine.ClassNotSent, after: 2 * time.Second})
		w.settle()
		task = w.records(id)[0]
		if a := task.Attempts[0]; a.Started/1000-task.Key.Due >= 10 {
			t.Errorf("an attempt of %v that was not sent began %d ms after its due", a.Took, a.Started/1000-task.Key.Due)
		}
	})
}
